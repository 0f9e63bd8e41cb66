"""The end of a connection: by its client, by the server, with calls and listeners open."""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from noizu_mcp import ConnectionClosed, Server, Stdio, Tool, TransportError, connect

STATELESS = "2026-07-28"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

stateless = pytest.mark.parametrize("revision", [STATELESS], indirect=True)
in_memory = pytest.mark.parametrize("transport", ["memory"], indirect=True)


class Waiting(Tool):
    """Waits until the test releases it."""

    def __init__(self):
        self.released = trio.Event()

    async def call(self, args, ctx):
        await ctx.report_progress(1)
        await self.released.wait()


@in_memory
async def test_running_calls_get_a_grace_period(opened):
    """After `stop` nothing is read; running calls may end and are answered."""
    async with opened("Empty", grace=5) as wire:
        tool = Waiting()
        wire.connection.running.server.tools.add(tool)
        held = await wire.begin_call("waiting", progressToken=1)
        await wire.notice("notifications/progress")
        wire.connection.stop()
        await trio.testing.wait_all_tasks_blocked()
        tool.released.set()
        assert "result" in await wire.answer(held)
        assert await wire.end() == []


@in_memory
async def test_what_outlives_the_grace_period_is_answered_with_an_error(opened):
    """Every request has one response when the server stops."""
    async with opened("Kitchen", grace=0.01) as wire:
        held = await wire.begin_call("hold", {"key": "k"}, progressToken=1)
        blocked = await wire.begin_call("block", {"key": "k"}, progressToken=2)
        for _ in range(2):
            await wire.notice("notifications/progress")
        wire.connection.stop()
        for id_ in (held, blocked):
            error = (await wire.answer(id_))["error"]
            assert error == {"code": -32603, "message": "The server is shutting down"}
        assert await wire.end() == []


@in_memory
@stateless
async def test_open_listen_requests_end_with_their_result(opened):
    """On `stop` a listener gets both forms of the specification."""
    async with opened("Kitchen") as wire:
        for id_ in (5, "5"):
            await wire.begin("subscriptions/listen", {"notifications": {}}, id_=id_)
            await wire.notice("notifications/subscriptions/acknowledged")
        wire.connection.stop()
        for id_ in (5, "5"):
            result = (await wire.answer(id_))["result"]
            assert result["_meta"][SUBSCRIPTION] == id_
            assert (await wire.notice("notifications/cancelled"))["requestId"] == id_
        assert await wire.end() == []


async def test_the_end_of_the_input_ends_the_server(opened):
    """Running calls, blocked threads and queued calls end, and nothing remains."""
    async with opened("Kitchen", grace=0.01) as wire:
        for key in "ab":
            await wire.begin_call("one_at_a_time", {"key": key}, progressToken=key)
        await wire.begin_call("block", {"key": "t"}, progressToken="t")
        for _ in range(2):
            await wire.notice("notifications/progress")


@pytest.mark.parametrize("transport", ["stdio"], indirect=True)
async def test_answers_are_written_before_the_server_goes(opened):
    """A client may send everything, close its side, and read the responses afterwards."""
    async with opened("Kitchen", grace=5) as wire:
        big = {"message": "x" * 20000, "repeat": 10}
        ids = [await wire.begin_call("echo", big) for _ in range(20)]
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, wire.stream._write_fd)
        os.close(null)
        for id_ in ids:
            assert "result" in await wire.answer(id_)
        assert await wire.end() == []


async def test_calls_fail_when_the_server_goes(opened, revision):
    """Each waiting caller gets one `ConnectionClosed`, and so does each later one."""
    async with opened("Kitchen", start=False, grace=0) as wire:
        async with connect(wire.stream, version=revision) as client:
            async with trio.open_nursery() as nursery:
                failed = []

                async def call(name):
                    try:
                        await client.call_tool(name, {"key": "k"})
                    except ConnectionClosed as error:
                        failed.append(str(error))

                nursery.start_soon(call, "hold")
                await client.ping()
                await wire.stream.aclose()
            assert failed == ["the connection ended before tools/call was answered"]
            await call("quick")
            assert failed[1] == "the connection ended before tools/call was sent"


async def test_a_failing_lifespan_is_one_exception():
    """An exception of a lifespan is raised alone, not in a group."""

    class Failing(Server, name="failing", version="1"):
        tools = [Waiting]

        @asynccontextmanager
        async def lifespan(self):
            raise OSError("no database")
            yield

    with pytest.raises(OSError, match="no database"):
        async with connect(Failing):
            raise AssertionError


async def test_a_lifespan_surrounds_its_connections():
    """It begins before the first request and ends after the last."""
    log = []

    class State(Tool, inline=True):
        def call(self, args, ctx):
            log.append(ctx.state)

    class Living(Server, name="living", version="1"):
        tools = [State]

        @asynccontextmanager
        async def lifespan(self):
            log.append("in")
            yield "state"
            log.append("out")

    async with connect(Living) as client:
        await client.call_tool("state")
    assert log == ["in", "state", "out"]


async def test_what_cannot_be_connected_to():
    """Anything that is not a server or a command is a `TransportError`."""
    with pytest.raises(TransportError, match="cannot connect to 5"):
        async with connect(5):
            raise AssertionError


@pytest.mark.slow
async def test_a_server_that_is_started_for_real(servers, revision):
    """A complete run: a command, a handshake, a call, and a normal exit."""
    path = os.pathsep.join(map(str, Path(servers.__file__).parents[:3]))
    program = "import servers; servers.Kitchen().run()"
    target = Stdio(sys.executable, "-c", program, env={"PYTHONPATH": path})
    async with connect(target, version=revision) as client:
        assert client.protocol_version == revision
        assert (await client.call_tool("text")).content[0].text == "plain"
