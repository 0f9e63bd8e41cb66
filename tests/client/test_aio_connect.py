"""`aio.connect`: the client in programs on asyncio."""

import asyncio
import gc
import inspect
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import sniffio
import trio
import uvloop

import noizu_mcp
from noizu_mcp import (
    Accept,
    Client,
    ClientHandler,
    ConnectionClosed,
    Context,
    McpError,
    RequestTimeout,
    Server,
    Stdio,
    TransportError,
    aio,
    mcp,
)
from noizu_mcp.testing import Transcript

from .calculator import Calculator

ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


class Human(ClientHandler, sampling_tools=True):
    """A handler on asyncio, with one method in a thread."""

    def __init__(self):
        self.notices = asyncio.Queue()

    async def handle_elicitation(self, params):
        assert sniffio.current_async_library() == "asyncio"
        await asyncio.sleep(0)
        return Accept({"name": params["message"]})

    async def handle_notification(self, method, params):
        await self.notices.put(method)

    def list_roots(self):
        return ["file:///work"]


def run(main):
    asyncio.run(main())


@ERAS
@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_a_client_on_asyncio(version, runner):
    """Calls, questions, progress, notices, errors and listening work in the program's own loop."""

    async def main():
        handler, seen = Human(), []
        async with (
            asyncio.timeout(60),
            aio.connect(Calculator, handler=handler, version=version) as client,
        ):
            assert isinstance(client, Client)
            assert client.protocol_version == version
            assert client.server_info.name == "calculator"
            assert len(await client.list_tools()) == 4
            result = await client.call_tool("add", {"a": 1, "b": 2}, progress=seen.append)
            assert result.content[0].text == "3"
            assert [each.progress for each in seen] == [1]
            where = await client.call_tool("on_asyncio")
            assert where.content[0].text == str(id(asyncio.get_running_loop()))
            async with client.listen(tools=True) as agreed:
                assert agreed == {"toolsListChanged": True}
                assert (await client.call_tool("ask")).content[0].text == "who?"
                assert await handler.notices.get() == "notifications/tools/list_changed"
            with pytest.raises(McpError, match="Unknown tool"):
                await client.call_tool("nothing")
            await client.ping()

    runner(main())


@ERAS
def test_any_task_may_call(version):
    """Tasks share the client; a timeout of asyncio cancels the call at the server."""

    async def main():
        server = Calculator()
        async with asyncio.timeout(60), aio.connect(server, version=version) as client:
            async with asyncio.TaskGroup() as group:
                calls = [
                    group.create_task(client.call_tool("add", {"a": n, "b": n})) for n in range(20)
                ]
            assert [each.result().content[0].text for each in calls] == [
                str(2 * n) for n in range(20)
            ]
            waiting = asyncio.create_task(client.call_tool("wait"))
            await asyncio.to_thread(server.state.started.wait, 30)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await asyncio.to_thread(server.state.ended.wait, 30)
            with pytest.raises(RequestTimeout):
                await client.call_tool("wait", timeout=0.01)

    run(main)


def test_another_task_may_close():
    """Fixtures and exit stacks enter and leave in different tasks."""

    async def main():
        stack = AsyncExitStack()
        client = await asyncio.create_task(stack.enter_async_context(aio.connect(Calculator)))
        assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"
        await asyncio.create_task(stack.aclose())
        with pytest.raises((ConnectionClosed, RuntimeError)):
            await client.ping()

    run(main)


@ERAS
def test_another_task_ends_the_connection(version):
    """`aclose` ends the calls of all tasks; the block can go on and end normally."""

    async def main():
        server = Calculator()
        async with asyncio.timeout(60), aio.connect(server, version=version) as client:
            waiting = asyncio.create_task(client.call_tool("wait"))
            closed = asyncio.create_task(client.wait_closed())
            await asyncio.to_thread(server.state.started.wait, 30)
            await asyncio.create_task(client.aclose())
            await closed
            with pytest.raises(ConnectionClosed):
                await waiting
            with pytest.raises(ConnectionClosed):
                await client.ping()
        assert server.state.ended.is_set()

    run(main)


SMALL = """
import os, sys
from noizu_mcp import Server

class Small(Server, name="small", version="1"):
    pass

with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
Small().run()
"""


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_a_program_that_ends_without_closing(runner, caplog, recwarn, tmp_path):
    """The loop closes the connections, server processes end, and nothing is printed."""
    server, kept = Calculator(), []
    path = tmp_path / "pid"

    async def main():
        for target in (server, Stdio(sys.executable, "-c", SMALL, str(path))):
            opened = aio.connect(target)
            kept.append((opened, await opened.__aenter__()))
        kept.append(asyncio.create_task(kept[0][1].call_tool("wait")))
        await asyncio.to_thread(server.state.started.wait, 30)

    runner(main())
    assert server.state.ended.is_set()
    assert not trio.lowlevel.in_trio_run()
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)
    kept.clear()
    gc.collect()
    assert caplog.records == []
    assert [str(each.message) for each in recwarn] == []


def test_two_clients_at_a_time():
    """They share one trio loop, in whatever order they end."""

    async def main():
        async with AsyncExitStack() as first:
            one = await first.enter_async_context(aio.connect(Calculator))
            async with aio.connect(Calculator) as two:
                await two.ping()
                await first.aclose()
                await two.ping()
            with pytest.raises((ConnectionClosed, RuntimeError)):
                await one.ping()
        assert not trio.lowlevel.in_trio_run()

    run(main)


def test_a_server_that_cannot_be_reached():
    """It raises the same single exception as on trio."""

    async def main():
        with pytest.raises(TransportError):
            async with aio.connect(Stdio("/nonexistent/command")):
                pass
        with pytest.raises(TypeError, match="handler must be an instance"):
            async with aio.connect(Calculator, handler=Human):
                pass

    run(main)


def test_a_server_that_crashes_ends_the_block():
    """The exception of a server in memory is raised by the block, even if that waits for others."""

    class Breaks(Server, name="breaks", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            async with trio.open_nursery() as nursery:
                self.fail = lambda: nursery.start_soon(self.broken)
                yield

        async def broken(self):
            raise ValueError("broken")

    async def main():
        server = Breaks()

        async def block():
            async with asyncio.timeout(60), aio.connect(server):
                server.fail()
                await asyncio.Event().wait()

        with pytest.raises(ValueError, match="broken"):
            await block()

    run(main)


def test_an_exception_of_the_block_passes():
    """The block raises it, and the connection is closed normally."""

    async def main():
        server, tap, calls = Calculator(), Transcript(), []

        async def block():
            async with aio.connect(server, tap=tap) as client:
                calls.append(asyncio.create_task(client.call_tool("wait")))
                await asyncio.to_thread(server.state.started.wait, 30)
                raise KeyError

        with pytest.raises(KeyError):
            await block()
        assert server.state.ended.is_set()
        with pytest.raises((ConnectionClosed, RuntimeError)):
            await calls[0]
        assert any("notifications/cancelled" in str(entry) for entry in tap.entries)

    run(main)


def test_a_client_inside_of_an_asyncio_handler():
    """In a trio program a handler on asyncio can call another server."""

    class Gateway(Server, name="gateway", version="1", loop="asyncio"):
        @asynccontextmanager
        async def lifespan(self):
            async with aio.connect(Calculator) as client:
                yield client

    @mcp(loop="asyncio")
    async def forward(ctx: Context) -> str:
        result = await ctx.state.call_tool("add", {"a": 1, "b": 2})
        async with aio.connect(Calculator) as client:
            await client.ping()
        return result.content[0].text

    async def main():
        server = Gateway()
        server.tools.add(forward)
        async with noizu_mcp.connect(server) as client:
            return (await client.call_tool("forward")).content[0].text

    assert trio.run(main) == "3"


def test_the_client_of_trio_says_what_to_write():
    """`connect` under `asyncio.run` raises an error that says what to write."""

    async def main():
        async with noizu_mcp.connect(Calculator):
            pass

    with pytest.raises(RuntimeError, match=r"noizu_mcp\.aio\.connect") as caught:
        run(main)
    assert caught.value.__cause__ is None


def test_it_has_the_options_of_connect():
    """Both have the same signature."""
    assert inspect.signature(aio.connect) == inspect.signature(noizu_mcp.connect)


@pytest.mark.parametrize(
    ("name", "sync"), [("connect", "SyncClient"), ("connect_all", "SyncClients")]
)
async def test_in_a_trio_program_it_is_refused(name, sync):
    """The error says what to write there."""
    opened = getattr(aio, name)(Calculator)
    with pytest.raises(RuntimeError) as caught:
        await opened.__aenter__()
    assert str(caught.value) == (
        f"aio.{name} is for asyncio programs, and no asyncio loop runs here; in a trio program"
        f" write `async with noizu_mcp.{name}(…)`, without any loop `with {sync}(…)`"
    )
    assert caught.value.__cause__ is None


async def ping(client):
    await client.ping()


async def call(client):
    await client.call_tool("add", {"a": 1, "b": 2})


async def follow(client):
    async with client.tools:
        pass


@pytest.mark.parametrize("runner", [trio.run, lambda function, *args: asyncio.run(function(*args))])
@pytest.mark.parametrize("use", [ping, call, follow])
def test_a_client_on_another_loop(use, runner):
    """It is refused in a thread with another loop, and works on its own."""

    def in_thread(client):
        with pytest.raises(RuntimeError, match="belongs to an asyncio loop that does not run here"):
            runner(use, client)

    async def main():
        async with asyncio.timeout(60), aio.connect(Calculator) as client:
            await asyncio.to_thread(in_thread, client)
            await use(client)

    run(main)


@pytest.mark.parametrize("use", [ping, call, follow])
def test_a_client_after_its_block(use):
    """It is closed, on its loop and on any other."""
    kept = []

    async def main():
        async with aio.connect(Calculator) as client:
            kept.append(client)
        await later()

    async def later():
        with pytest.raises(ConnectionClosed, match="has ended"):
            await use(kept[0])

    run(main)
    run(later)
