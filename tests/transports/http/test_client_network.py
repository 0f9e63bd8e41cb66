"""The network below the HTTP library: requests in one write, proxies of the environment."""

import socket
import struct
from functools import partial

import httpcore2
import pytest
import trio

from noizu_mcp import Http, TransportError, connect
from noizu_mcp.engine import single_failure

from .scripted import PATIENCE, Script, serving

HOST = "127.0.0.1"
DONE = {"content": [{"type": "text", "text": "done"}]}


@pytest.mark.parametrize("size", [100, 8192, 300_000])
async def test_a_request_arrives_whole(size):
    """A body of any size follows its head; a small one is in the same write."""
    sizes = []

    async def call(heard):
        sizes.append(len(heard.message["params"]["arguments"]["text"]))
        await heard.result(DONE)

    async with serving(Script(tools_call=call)) as script, connect(script.url) as client:
        await client.call_tool("t", {"text": "x" * size})
    assert sizes == [size]


async def test_a_small_request_is_one_write():
    """The server reads head and body at once."""
    pieces = []

    async def serve(stream):
        pieces.append(await stream.receive_some())

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host=HOST))
        port = listener.socket.getsockname()[1]
        with trio.fail_after(PATIENCE):
            with pytest.raises(Exception, match="cannot reach"):
                async with connect(f"http://{HOST}:{port}/mcp"):
                    raise AssertionError
        nursery.cancel_scope.cancel()
    (piece,) = pieces
    assert b'"method":"server/discover"' in piece


class Answered(httpcore2.AsyncNetworkStream):
    """A connection whose server has answered, and reads nothing more."""

    async def write(self, buffer, timeout=None):
        raise httpcore2.WriteError

    async def read(self, max_bytes, timeout=None):
        return b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    async def aclose(self):
        pass


async def test_an_early_answer_is_read(monkeypatch):
    """A server may answer and close before it has read the request."""

    async def connect_tcp(self, *args, **options):
        return Answered()

    monkeypatch.setattr(httpcore2.TrioBackend, "connect_tcp", connect_tcp)
    with pytest.raises(TransportError, match="answered 503 Busy"), single_failure():
        async with connect("http://mcp.invalid/mcp"):
            raise AssertionError


async def test_a_proxy_of_the_environment(monkeypatch):
    """Requests go through the proxy of the environment, also for hosts that do not resolve."""

    async def call(heard):
        await heard.result(DONE)

    async with serving(Script(tools_call=call)) as script:
        monkeypatch.setenv("http_proxy", script.url.removesuffix("/mcp"))
        async with connect("http://mcp.invalid/mcp") as client:
            assert (await client.call_tool("t")).text == "done"
    assert {heard.headers["host"] for heard in script.heard} == {"mcp.invalid"}


@pytest.mark.parametrize("through_proxy", [True, False])
async def test_cookies_are_not_kept(monkeypatch, through_proxy):
    """Cookies of a response are not sent with other requests, which may be of another user."""

    async def call(heard):
        await heard.result(DONE, set_cookie="session=alice; Path=/")

    async def begin(heard):
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "cookies", "version": "1"}
        await heard.result(result, set_cookie="node=7; Path=/")

    async with serving(Script(tools_call=call, initialize=begin)) as script:
        own = {}
        if through_proxy:
            monkeypatch.setenv("http_proxy", script.url.removesuffix("/mcp"))
            own = {"Cookie": "mine=1"}
        async with connect(Http(script.url, headers=own)) as client:
            await client.call_tool("t")
            await client.call_tool("t")
    sent = {heard.headers.get("cookie") for heard in script.heard}
    assert sent == {own.get("Cookie")}


async def test_a_connection_that_is_reset():
    """The error has the reason from the operating system."""

    async def serve(stream):
        await stream.receive_some()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host=HOST))
        port = listener.socket.getsockname()[1]
        with trio.fail_after(PATIENCE):
            with pytest.raises(TransportError, match="reset by peer"):
                async with connect(f"http://{HOST}:{port}/mcp"):
                    raise AssertionError
        nursery.cancel_scope.cancel()
