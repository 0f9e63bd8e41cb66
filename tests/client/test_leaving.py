"""The end of `async with connect(…)` while calls run: the server gets their cancellations."""

import json
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from noizu_mcp import RequestTimeout, Server, Stdio, Tool, connect, serve_http
from noizu_mcp.engine import single_failure
from noizu_mcp.transports import memory_pair

from .conftest import DISCOVERED, INITIALIZED

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


class Lost(Exception):
    """The exception of the block."""


@pytest.fixture
def clock():
    """A slow clock, which a test moves, so that no other timeout passes."""
    return MockClock(rate=0.1)


async def by_timeout(client, began, clock):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(client.call_tool, "hold", timeout=5))
        await began()
        clock.jump(5)


async def by_a_failure(client, began, _):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "hold")
        await began()
        raise Lost


async def by_its_own_scope(client, began, _):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "hold")
        await began()
        nursery.cancel_scope.cancel()


async def by_a_scope_around_it(client, began, _):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "hold")
        await began()
        SCOPE[-1].cancel()
        await trio.sleep_forever()


SCOPE = []
LEAVING = [by_timeout, by_a_failure, by_its_own_scope, by_a_scope_around_it]


@asynccontextmanager
async def left():
    """Run the block with a time limit, and swallow the exceptions with which a test leaves it."""
    scope = trio.CancelScope()
    SCOPE.append(scope)
    with trio.fail_after(10), suppress(Lost, RequestTimeout), single_failure(), scope:
        yield
    SCOPE.clear()


def a_server():
    """Make a server whose tool never returns."""
    began, ended = trio.Event(), trio.Event()

    class Hold(Tool):
        """Hold on."""

        async def call(self):
            began.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.set()

    class Holder(Server, name="holder", version="1"):
        tools = [Hold]

    return Holder, began, ended


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize("leave", LEAVING)
async def test_over_http(leave, version, clock):
    """The handler of a real server is cancelled."""
    server, began, ended = a_server()
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, server(), port=0))
        async with left(), connect(f"{host.urls[0]}/mcp", version=version) as client:
            await leave(client, began.wait, clock)
        with trio.fail_after(10):
            await ended.wait()
        host.stop()


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize("leave", LEAVING)
async def test_in_memory(leave, version, clock):
    """The handler is cancelled, and nothing remains."""
    server, began, ended = a_server()
    async with left(), connect(server, version=version) as client:
        await leave(client, began.wait, clock)
    assert ended.is_set()


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize("leave", LEAVING)
async def test_on_a_stream(leave, version, clock):
    """The last message names the call, in both eras."""
    ours, theirs = memory_pair()
    began, heard = trio.Event(), []

    async def answer():
        while arrived := await theirs.receive():
            for received in arrived:
                heard.append(json.loads(received.data))
                method, id_ = heard[-1]["method"], heard[-1].get("id")
                result = INITIALIZED if method == "initialize" else DISCOVERED
                if method == "tools/call":
                    began.set()
                elif id_ is not None:
                    said = {"jsonrpc": "2.0", "id": id_, "result": {**result}}
                    said["result"]["protocolVersion"] = version
                    await theirs.send([json.dumps(said).encode()])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        async with left(), connect(ours, version=version) as client:
            await leave(client, began.wait, clock)
    (call,) = [each for each in heard if each["method"] == "tools/call"]
    assert heard[-1]["method"] == "notifications/cancelled"
    assert heard[-1]["params"]["requestId"] == call["id"]


COMMAND = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    with open(sys.argv[1], "a") as file:
        file.write(message["method"] + "\\n")
"""


@pytest.mark.parametrize("leave", LEAVING)
async def test_on_stdio(leave, tmp_path, clock):
    """A command reads the cancellation before EOF on its stdin."""
    path = tmp_path / "heard"

    async def began():
        with trio.fail_after(10):
            while "tools/call" not in (path.read_text() if path.exists() else ""):
                await trio.lowlevel.checkpoint()

    command = Stdio(sys.executable, "-c", COMMAND, str(path))
    async with left(), connect(command, version="2025-11-25") as client:
        await leave(client, began, clock)
    assert path.read_text().split() == [
        "initialize",
        "notifications/initialized",
        "tools/call",
        "notifications/cancelled",
    ]


async def test_a_block_that_is_cancelled_before_it_begins():
    """If the surrounding scope is cancelled, the block ends, whatever it has just started."""
    reached = []
    with trio.CancelScope() as scope:
        scope.cancel()
        async with connect(type(Server)("Empty", (Server,), {}, name="empty", version="1")):
            reached.append("the block")

    assert (scope.cancelled_caught, reached) == (True, [])
