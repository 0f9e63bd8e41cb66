"""Serving a server over HTTP as a task: allowed hosts, and its end."""

import signal
import socket
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from trio.abc import HostnameResolver

from noizu_mcp import Server, Tool, TransportError, connect, serve_http
from noizu_mcp.transports.http import HttpLimits, HttpOptions

from ...kit.http_client import RawClient
from ...kit.messages import http_request, message, modern_request
from ...kit.servers import Small


async def test_it_serves_until_it_is_stopped():
    """The host has its address, and stops it."""
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, Small(), port=0))
        async with connect(f"{host.urls[0]}/mcp") as client:
            assert client.server_info.name == "small"
        host.stop()
    with pytest.raises(TransportError):
        async with connect(f"{host.urls[0]}/mcp"):
            raise AssertionError


async def test_a_failure_comes_out_alone():
    """A port that is in use raises one error, not a group."""
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, Small(), port=0))
        with pytest.raises(OSError, match="address already in use"):
            await serve_http(Small(), port=host.port)
        host.stop()


async def test_readiness_turns_false_before_nothing_is_accepted():
    """`/readyz` is 503 on a new connection while requests are still served."""
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, Small(), port=0, lead=60))
        assert await _readiness(host.port) == b"HTTP/1.1 200 "
        host.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert await _readiness(host.port) == b"HTTP/1.1 503 "
        async with connect(f"{host.urls[0]}/mcp") as client:
            assert client.server_info.name == "small"
        nursery.cancel_scope.cancel()


async def _readiness(port, path=b"/readyz"):
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n" % path)
        return (await stream.receive_some())[:13]


async def test_a_port_for_health_checks_answers_to_the_end():
    """It reports "not ready" while a call still runs; it does not serve clients."""

    class Wait(Tool, timeout=None):
        async def call(self):
            started.set()
            await trio.sleep_forever()

    class Waiting(Server, name="waiting", version="1"):
        tools = [Wait]

    started = trio.Event()
    async with trio.open_nursery() as nursery:
        options = {"health_port": 0, "max_connections": 1, "limits": HttpLimits(grace=60)}
        serve = partial(serve_http, Waiting(), port=0, **options)
        host = await nursery.start(serve)
        port = int(host.health_urls[0].rpartition(":")[2])
        async with connect(f"{host.urls[0]}/mcp", version="2026-07-28") as client:
            nursery.start_soon(_call, client)
            await started.wait()
            assert await _readiness(host.port) == await _readiness(port) == b"HTTP/1.1 200 "
            host.stop()
            await trio.testing.wait_all_tasks_blocked()
            assert await _readiness(port) == b"HTTP/1.1 503 "
            assert await _readiness(port, b"/healthz") == b"HTTP/1.1 200 "
            assert await _readiness(port, b"/mcp") == b"HTTP/1.1 404 "
            nursery.cancel_scope.cancel()


async def _call(client):
    await client.call_tool("wait", timeout=None)


async def test_a_port_for_health_checks_needs_them():
    """It is refused without health checks, since it could only answer 404."""
    with pytest.raises(ValueError, match="health_port needs health=True"):
        await serve_http(Small(), port=0, health=False, health_port=0)


async def test_an_option_that_does_not_exist_is_named():
    """The error suggests the right option, and lists the servers."""
    with pytest.raises(TypeError, match="no option 'certfle'; did you mean 'certfile'"):
        await serve_http(Small(), port=0, certfle="x")
    with pytest.raises(TypeError, match="serving over HTTP has no option 'options'"):
        await serve_http(Small(), port=0, options=HttpOptions())
    with pytest.raises(ValueError, match="server must be one of noizu, hypercorn, not 'apache'"):
        await serve_http(Small(), port=0, server="apache")


async def test_it_serves_on_hypercorn():
    """All options of a host work, and its end is orderly."""
    options = {"server": "hypercorn", "path": "/elsewhere", "drain_timeout": 0.1}
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, Small(), port=0, **options))
        async with connect(f"{host.urls[0]}/elsewhere") as client:
            assert client.server_info.name == "small"
        assert await _readiness(host.port) == b"HTTP/1.1 200 "
        host.stop()


async def test_a_signal_before_it_listens_ends_it():
    """The server ends at once."""

    class Slow(Small, name="slow", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            signal.raise_signal(signal.SIGTERM)
            await trio.sleep_forever()
            yield

    with trio.fail_after(60):
        await serve_http(Slow(), port=0, handle_signals=True)


class Names(HostnameResolver):
    """Resolves every name to this machine."""

    async def getaddrinfo(self, host, port, *_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    async def getnameinfo(self, *_):
        raise AssertionError


@pytest.fixture
async def names():
    """Let every name stand for this machine while the test runs."""
    trio.socket.set_custom_hostname_resolver(Names())


@asynccontextmanager
async def asked_for(host, **options):
    """Serve at an address; yields a function that returns the status for a `Host` header."""
    async with trio.open_nursery() as nursery:
        served = await nursery.start(partial(serve_http, Small(), host=host, port=0, **options))
        address = {"127.0.0.2": host, "0:0:0:0:0:0:0:1": "::1"}.get(host, "127.0.0.1")

        async def ask(name):
            body, headers = modern_request(message("server/discover", {}, 1))
            async with await trio.open_tcp_stream(address, served.port) as stream:
                await stream.send_all(http_request(body, headers, host=name))
                status, _ = await RawClient(stream).head()
                return status

        yield ask
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1", "localhost"),
        ("localhost", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.2"),
        ("0:0:0:0:0:0:0:1", "[0:0:0:0:0:0:0:1]"),
        ("fe80::1%nowhere", "[fe80::1]"),
        ("mcp.example.com", "mcp.example.com"),
    ],
)
async def test_requests_for_the_address_are_served(names, host, name, caplog):
    """The address to listen at is an allowed host, and so is localhost."""
    async with asked_for(host) as ask:
        assert [await ask(name), await ask("localhost")] == [200, 200]
        assert await ask("evil.example") == 421
    assert "listening at" not in caplog.text


async def test_a_name_that_no_host_can_be_is_not_served(names, caplog):
    """A warning names the hosts that are served."""
    async with asked_for("bücher.example") as ask:
        assert await ask("localhost") == 200
    assert "listening at 'b\\xfccher.example', but serving only" in caplog.text


async def test_every_address_is_no_name(caplog):
    """A warning says that remote clients will be refused, unless there are explicit names."""
    async with asked_for("0.0.0.0") as ask:
        assert [await ask("localhost"), await ask("mcp.example.com")] == [200, 421]
    assert "set allowed_hosts" in caplog.text
    caplog.clear()
    async with asked_for("0.0.0.0", allowed_hosts=["mcp.example.com"]) as ask:
        assert [await ask("localhost"), await ask("mcp.example.com")] == [421, 200]
    assert "set allowed_hosts" not in caplog.text
