"""`serve_over`: servers of this process on each transport, and context managers as targets."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from noizu_mcp import (
    ConnectionClosed,
    Context,
    Http,
    Server,
    Stdio,
    SyncClient,
    TransportError,
    aio,
    connect,
)
from noizu_mcp.testing import serve_over
from noizu_mcp.transports import memory_pair

TRANSPORTS = ("memory", "stdio", "http")


def where(ctx: Context) -> str:
    """Return the transport."""
    return ctx.transport


class Demo(Server, name="demo", version="1.0.0"):
    tools = [where]


async def ask(client: Any) -> str:
    result = await client.call_tool("where")
    return result.content[0].text


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_server_is_served_over_each_transport(transport: Any) -> None:
    """With a class, an instance or a target for it the handler sees the transport."""
    for target in (Demo, Demo(), serve_over(Demo, "memory")):
        async with connect(serve_over(target, transport)) as client:
            assert await ask(client) == transport


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_plain_code_uses_it(transport: Any) -> None:
    """The server runs on the loop of a `SyncClient`."""
    with SyncClient(serve_over(Demo, transport)) as client:
        assert client.call_tool("where").content[0].text == transport


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_asyncio_uses_it(transport: Any) -> None:
    """The server runs on the trio loop beside that of asyncio."""
    import asyncio

    async def main() -> str:
        async with aio.connect(serve_over(Demo, transport)) as client:
            return await ask(client)

    assert asyncio.run(main()) == transport


async def test_a_text_names_a_server(tmp_path: Any) -> None:
    """`serve_over` accepts the same targets as `connect`."""
    file = tmp_path / "served_app.py"
    file.write_text("from noizu_mcp import Server\nclass A(Server, name='a', version='1'): pass\n")

    async with connect(serve_over(file, "stdio")) as client:
        assert client.server_info.name == "a"


async def test_a_stream_is_used_as_it_is() -> None:
    """A stream already has a server at its other end."""
    ours, theirs = memory_pair()
    async with serve_over(ours, "http") as reached:
        assert reached is ours
    await theirs.aclose()


async def test_a_command_and_a_url_have_one_transport() -> None:
    """They are passed on, or refused."""
    command, url = Stdio(sys.executable), Http("http://127.0.0.1:1/mcp")
    async with serve_over(command, "stdio") as first, serve_over(url, "http") as second:
        assert (first, second) == (command, url)
    for target, only in ((command, "stdio"), (url, "http")):
        with pytest.raises(TransportError, match=f"is reached over {only} only, not over memory"):
            async with connect(serve_over(target, "memory")):
                pass


async def test_what_is_no_server_is_refused() -> None:
    """A wrong transport is refused at once, a wrong target when it is entered."""
    with pytest.raises(ValueError, match="no transport 'sse'; there are: memory, stdio, http"):
        serve_over(Demo, "sse")  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TransportError, match="cannot serve 3: give a Server"):
        async with connect(serve_over(3, "http")):
            pass


async def test_a_context_manager_surrounds_the_connection() -> None:
    """It is entered before the connection, and left after it, also after a failure."""
    steps: list[str] = []

    class Noting(Server, name="noting", version="1"):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            steps.append("served")
            yield
            steps.append("ended")

    @asynccontextmanager
    async def target() -> AsyncIterator[type[Server]]:
        steps.append("entered")
        try:
            yield Noting
        finally:
            steps.append("left")

    with pytest.raises(ZeroDivisionError):
        async with connect(target()):
            raise ZeroDivisionError

    assert steps == ["entered", "served", "ended", "left"]


async def test_its_failure_is_the_failure_of_connect() -> None:
    """An exception of the context manager is raised unchanged and alone."""

    @asynccontextmanager
    async def target() -> AsyncIterator[type[Server]]:
        raise OSError("no such machine")
        yield Demo

    with pytest.raises(OSError, match="no such machine"):
        async with connect(target()):
            pass


async def test_a_server_that_is_a_context_manager_is_a_server() -> None:
    """Its own `async with` has another purpose."""

    class Managed(Server, name="managed", version="1"):
        async def __aenter__(self) -> None:
            raise AssertionError

        async def __aexit__(self, *_: object) -> None:
            raise AssertionError

    for transport in TRANSPORTS:
        async with connect(serve_over(Managed(), transport)) as client:  # type: ignore[arg-type]
            assert client.server_info.name == "managed"


@pytest.mark.parametrize("transport", ["memory", "stdio"])
async def test_a_crash_of_the_server_is_raised(transport: Any) -> None:
    """A lifespan that fails ends the block with its own exception."""

    class Broken(Server, name="broken", version="1"):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            raise KeyError("database")
            yield

    with pytest.raises((KeyError, ConnectionClosed)) as caught:
        async with connect(serve_over(Broken, transport)):
            await trio.sleep_forever()

    assert "database" in str(caught.value)


async def test_a_connection_in_a_cancelled_scope_ends() -> None:
    """A target may fail and cancel `connect` before it has begun."""
    with trio.CancelScope() as scope:
        scope.cancel()
        async with connect(Demo):
            raise AssertionError

    assert scope.cancelled_caught


@pytest.mark.slow
def test_nothing_is_left_behind() -> None:
    """Each descriptor is closed; otherwise the interpreter would print a warning."""
    code = (
        "import os, trio\n"
        "from noizu_mcp import Server, connect\n"
        "from noizu_mcp.testing import serve_over\n"
        "class Demo(Server, name='demo', version='1'): pass\n"
        "async def main():\n"
        "    for transport in ('stdio', 'http') * 3:\n"
        "        async with connect(serve_over(Demo, transport)) as client:\n"
        "            await client.list_tools() if client.capabilities.has('tools') else None\n"
        "    return len(os.listdir('/proc/self/fd')) if os.path.exists('/proc/self/fd') else 0\n"
        "print(trio.run(main) == trio.run(main))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )

    assert (done.stdout.split(), done.stderr) == (["True"], "")
