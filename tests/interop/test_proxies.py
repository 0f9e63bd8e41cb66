"""Conversations of both eras through nginx and HAProxy."""

import json
import re
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from noizu_mcp import Server, Toolkit, connect, mcp
from noizu_mcp.transports.http import serve_http

from ..kit.messages import META
from .proxies import HAPROXY, PROXIES, proxied, running

HANDSHAKE, STATELESS = VERSIONS = ("2025-11-25", "2026-07-28")
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deployment.md"
#: Bytes of a large text, whose message is below the 16 MiB of a server and of the proxies.
LARGE = 5 * 1024 * 1024
PATIENCE = 120


class Kit(Toolkit):
    """Tools whose calls the test follows."""

    @mcp
    async def echo(self, *, text: str) -> str:
        """Say it again."""
        await trio.lowlevel.checkpoint()
        return text

    @mcp
    async def report(self, args, ctx) -> str:
        """Report progress, and go on when the client has it."""
        await ctx.report_progress(1, message="reported")
        try:
            await ctx.server.go_on.wait()
        finally:
            ctx.server.ended.set()
        return "went on"


class Followed(Server, name="followed", version="1"):
    tools = [Kit]

    def __init__(self):
        super().__init__()
        self.go_on, self.ended = trio.Event(), trio.Event()


@pytest.fixture(params=PROXIES)
async def proxy(request, nursery, tmp_path):
    """Serve behind a proxy; yields the server and the port of the proxy."""
    server = Followed()
    # By default nginx sends the name of its server group as Host.
    hosts = ["127.0.0.1", "server"]
    serve = partial(serve_http, server, port=0, allowed_hosts=hosts)
    host = await nursery.start(serve)
    with trio.fail_after(PATIENCE), proxied(request.param, host.port, tmp_path) as port:
        yield server, port
        host.stop()


def _call(name, **params):
    meta = {"progressToken": 1, **params.pop("_meta", {})}
    params = {"name": name, "arguments": {}, "_meta": meta, **params}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_conversation_goes_through(proxy, version):
    """Lists, calls, large messages both ways, changes, and unbuffered progress pass."""
    server, port = proxy

    def reported(progress):
        server.go_on.set()

    async with connect(f"http://127.0.0.1:{port}/mcp", version=version) as client:
        assert client.protocol_version == version
        assert {tool.name for tool in await client.list_tools()} == {"echo", "report"}
        text = "x" * LARGE
        result = await client.call_tool("echo", {"text": text})
        assert result.content[0].text == text
        # The handler waits for what the client does after the progress.
        result = await client.call_tool("report", progress=reported)
        assert result.content[0].text == "went on"


async def test_a_client_that_leaves_cancels_its_call(proxy):
    """On 2026-07-28 the proxy closes its connection to the server, too."""
    server, port = proxy
    named = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "report"}
    async with _sent(port, "POST", _call("report", _meta=META), named) as stream:
        await _read_until(stream, rb"reported")
        assert not server.ended.is_set()
    await server.ended.wait()
    assert not server.go_on.is_set()


async def test_a_client_that_comes_back_has_the_rest(proxy):
    """Before 2026-07-28 the call goes on, and its result waits for the client."""
    server, port = proxy
    session = await _begin(port)
    async with _sent(port, "POST", _call("report"), session) as stream:
        found = await _read_until(stream, rb"(?s).*id: (\S+)\n.*reported")
    server.go_on.set()
    async with _sent(port, "GET", None, {**session, "last-event-id": found[1].decode()}) as stream:
        await _read_until(stream, rb"went on")


def _documented(kind, ports):
    """Return a function that writes the documented configuration, for two servers."""
    blocks = re.findall(r"(?ms)^```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"))
    found = {block.split()[0]: block for block in blocks}
    upstream, backend = found["upstream"], found["backend"]
    for number, port in enumerate(ports, 8001):
        upstream, backend = (
            text.replace(f"127.0.0.1:{number}", f"127.0.0.1:{port}") for text in (upstream, backend)
        )
    site = found["proxy_http_version"].replace("http://127.0.0.1:8000", "http://mcp")

    def write(address, fd):
        if kind == "nginx":
            return f"{upstream} server {{ listen {address};\n{site} }}"
        return HAPROXY.format(fd=fd, settings="", client=60, content=backend)

    return write


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
async def test_the_configuration_of_the_documentation_keeps_sessions_together(
    kind, nursery, tmp_path
):
    """Of two servers each session stays with its own, whatever connection it uses."""
    hosts = [await nursery.start(partial(serve_http, Followed(), port=0)) for _ in range(2)]
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    write = _documented(kind, [host.port for host in hosts])
    with trio.fail_after(PATIENCE), running(kind, tmp_path, write) as port:
        for session in [await _begin(port) for _ in range(4)]:
            for _ in range(4):
                async with _sent(port, "POST", ask, session) as stream:
                    await _read_until(stream, rb'HTTP/1.1 200(?s:.*)"tools"')
    for host in hosts:
        host.stop()


async def _begin(port):
    """Do the handshake; return the headers of the session."""
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}}
    params["clientInfo"] = {"name": "test", "version": "1"}
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    async with _sent(port, "POST", begin) as stream:
        found = await _read_until(stream, rb"(?i)mcp-session-id: (\S+)")
    session = {"mcp-session-id": found[1].decode()}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with _sent(port, "POST", ready, session) as stream:
        await _read_until(stream, rb"HTTP/1.1 202")
    return session


@asynccontextmanager
async def _sent(port, method, body, headers=()):
    """Send a request on a new connection; the client leaves at the end of the block."""
    data = b"" if body is None else json.dumps(body).encode()
    given = {
        "host": "127.0.0.1",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "content-length": len(data),
        **dict(headers),
    }
    lines = [f"{method} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all("\r\n".join([*lines, "", ""]).encode() + data)
        yield stream


async def _read_until(stream, pattern):
    """Read until a response matches a pattern."""
    got = b""
    while (found := re.search(pattern, got)) is None:
        part = await stream.receive_some()
        assert part, got
        got += part
    return found
