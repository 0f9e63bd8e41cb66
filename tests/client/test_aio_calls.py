"""Calls of tools by asyncio tasks: they wait in these tasks, and fail like calls on trio."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import trio

from noizu_mcp import ConnectionClosed, McpError, ProtocolError, Server, aio
from noizu_mcp.engine import SessionEnded, Unanswered
from noizu_mcp.jsonrpc import HEADER_MISMATCH, ErrorResponse
from noizu_mcp.transports import TappedStream, memory_pair

OVER = 1  # the code of an error that stands for the end of the session
DONE = {"content": [{"type": "text", "text": "done"}]}
ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


class HttpLike(TappedStream):
    """A stream with sessions that can end, and with headers for calls, as over HTTP."""

    def __init__(self, stream):
        super().__init__(stream, lambda *_: None)
        self.mirrored = {}

    async def receive(self):
        return [_read(each) for each in await super().receive()]


def _read(received):
    answer = received.message
    if isinstance(answer, ErrorResponse) and answer.code == OVER:
        return Unanswered(answer.id, SessionEnded("over"))
    return received


@pytest.fixture
def scripted(script_on):
    """Return a function that makes a target, and its script."""

    def make(answers):
        ours, theirs = memory_pair()
        script = script_on(theirs, {"tools/call": answers, "tools/list": {"tools": []}})

        @asynccontextmanager
        async def target():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(script.run)
                yield HttpLike(ours)
                nursery.cancel_scope.cancel()

        return target(), script

    return make


def methods(script):
    return [each["method"] for each in script.received if "tools" in each["method"]]


def run(main):
    async def within():
        async with asyncio.timeout(60):
            await main()

    asyncio.run(within())


class Spawned(trio.abc.Instrument):
    """Counts the tasks of trio that start."""

    count = 0

    def task_spawned(self, task):
        self.count += 1


@ERAS
def test_a_call_needs_no_task_of_trio(version):
    """Only the asyncio task waits for the result."""

    async def double(number: int) -> int:
        return number * 2

    class One(Server, name="one", version="1"):
        tools = [double]

    async def main():
        async with aio.connect(One, version=version) as client:
            await client.list_tools()  # the tool has an output schema from here on
            await client.call_tool("double", {"number": 1})
            spawned = Spawned()
            trio.lowlevel.add_instrument(spawned)
            for number in range(3):
                result = await client.call_tool("double", {"number": number})
                assert result.text == str(number * 2)
            trio.lowlevel.remove_instrument(spawned)
            assert spawned.count == 0

    run(main)


def test_a_call_of_one_server_of_several():
    """A call of a tool that was listed needs no trio task, either."""

    async def double(number: int) -> int:
        return number * 2

    class One(Server, name="one", version="1"):
        tools = [double]

    async def main():
        async with aio.connect_all({"a": One, "b": One}) as clients:
            assert len(await clients.list_tools()) == 2
            await clients.call_tool("b_double", {"number": 1})
            spawned = Spawned()
            trio.lowlevel.add_instrument(spawned)
            assert (await clients.call_tool("b_double", {"number": 2})).text == "4"
            trio.lowlevel.remove_instrument(spawned)
            assert spawned.count == 0

    run(main)


def test_a_call_in_a_session_that_is_over(scripted):
    """It is sent again in a new session."""
    target, script = scripted([Exception(OVER, "over"), Exception(OVER, "over"), DONE])

    async def main():
        async with aio.connect(target, version="2025-11-25") as client:
            assert (await client.call_tool("x")).text == "done"

    run(main)
    assert [each["method"] for each in script.received].count("initialize") == 2


def test_calls_while_no_session_can_begin(scripted):
    """A call in a lost session waits for the next one, and fails with its reason."""
    target, script = scripted([Exception(OVER, "over"), Exception(OVER, "over"), DONE])

    async def main():
        async with aio.connect(target, version="2025-11-25", timeout=5) as client:
            begin, script.answers["initialize"] = script.answers["initialize"], Exception(-1, "no")
            for _ in range(2):
                with pytest.raises(ConnectionClosed, match="no new one began: no"):
                    await client.call_tool("x")
            script.answers["initialize"] = begin
            assert (await client.call_tool("x")).text == "done"

    run(main)


def test_headers_that_are_wrong(scripted):
    """The tools are listed, and the call is sent again; other errors are raised."""
    wrong = Exception(HEADER_MISMATCH, "wrong headers")
    target, script = scripted([wrong, wrong, DONE, Exception(-32602, "Unknown tool")])

    async def main():
        async with aio.connect(target, version="2026-07-28") as client:
            assert (await client.call_tool("x")).text == "done"
            with pytest.raises(McpError, match="Unknown tool"):
                await client.call_tool("y")

    run(main)
    assert methods(script) == ["tools/call"] * 2 + ["tools/list"] + ["tools/call"] * 2


def test_results_are_checked(scripted):
    """In the mode `strict` the tools are listed before the call."""
    target, script = scripted(lambda _: DONE)
    schema = {"type": "object"}
    tool = {"name": "x", "inputSchema": schema, "outputSchema": schema}
    script.answers["tools/list"] = {"tools": [tool]}

    async def main():
        async with aio.connect(target, version="2025-11-25", strictness="strict") as client:
            with pytest.raises(ProtocolError, match="no structuredContent"):
                await client.call_tool("x")

    run(main)
    assert methods(script)[:2] == ["tools/list", "tools/call"]


def test_a_call_that_is_cancelled(scripted):
    """The cancellation is sent to the server, and the connection goes on."""
    target, script = scripted([None, DONE])

    async def main():
        async with aio.connect(target, version="2025-11-25") as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await client.call_tool("x")
            assert (await client.call_tool("x")).text == "done"

    run(main)
    ended = [each for each in script.received if each["method"] == "notifications/cancelled"]
    (call, _) = [each for each in script.received if each["method"] == "tools/call"]
    assert [each["params"]["requestId"] for each in ended] == [call["id"]]


def test_a_call_after_the_end(scripted):
    """It fails at once."""
    target, _ = scripted([])

    async def main():
        async with aio.connect(target, version="2025-11-25") as client:
            await client.aclose()
            with pytest.raises(ConnectionClosed):
                await client.call_tool("x")

    run(main)
