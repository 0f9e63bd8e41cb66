"""Several servers over HTTP, one of which stops and returns."""

import pytest
import trio

from noizu_mcp import ClientHandler, Server, TransportError, connect_all, serve_http


def ping() -> str:
    """Answer."""
    return "pong"


class Pong(Server, name="pong", version="1"):
    """A server."""

    tools = [ping]


class Host(ClientHandler):
    """Waits for a notice."""

    def __init__(self):
        self.noticed = trio.Event()

    async def handle_notification(self, method, params):
        assert method == "notifications/tools/list_changed"
        self.noticed.set()


async def serve(port, *, task_status):
    """Serve until the caller cancels the scope; yields the scope, the port and the end."""
    ended = trio.Event()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            host = await nursery.start(serve_http, Pong(), "127.0.0.1", port)
            task_status.started((scope, host.port, ended))
    ended.set()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_server_over_http_that_comes_back(version):
    """While it is down calls fail; once it is back its handler is notified, and calls succeed."""
    host = Host()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            scope, port, ended = await nursery.start(serve, 0)
            servers = {"far": f"http://127.0.0.1:{port}/mcp", "near": Pong}
            async with connect_all(servers, version=version, handler=host) as clients:
                assert (await clients.call_tool("far_ping")).content[0].text == "pong"
                scope.cancel()
                await ended.wait()
                with pytest.raises(TransportError, match="cannot reach"):
                    await clients.call_tool("far_ping")
                assert (await clients.call_tool("near_ping")).content[0].text == "pong"
                assert not host.noticed.is_set()
                scope, _, _ = await nursery.start(serve, port)
                await host.noticed.wait()
                assert (await clients.call_tool("far_ping")).content[0].text == "pong"
            scope.cancel()
