"""Each subscription that `subscribe` accepted ends once in `unsubscribe`, however it ends."""

import logging
from contextlib import suppress

import pytest
import trio
import trio.testing

from noizu_mcp import ConnectionClosed, Limits, McpError, Server, connect
from noizu_mcp.server import open_session
from noizu_mcp.transports import memory_pair

SESSION, STATELESS = "2025-11-25", "2026-07-28"
ERAS = pytest.mark.parametrize("version", [SESSION, STATELESS])


class Feeds(Server, name="feeds", version="1", limits=Limits(subscriptions=4)):
    """Keeps a watcher for each resource that somebody watches."""

    def __init__(self):
        self.said = []
        self.contexts = []
        self.entered = trio.Event()
        self.go_on = trio.Event()

    async def read_resource(self, uri, ctx):
        return uri

    async def subscribe(self, uri, ctx):
        if uri == "x:secret":
            raise McpError(-32600, "not for you")
        if uri == "x:broken":
            raise RuntimeError("no feed")
        if uri.startswith("x:slow"):
            with trio.CancelScope(shield=True):
                self.entered.set()
                await self.go_on.wait()
        self.said.append(f"+{uri}")

    async def unsubscribe(self, uri, ctx):
        await trio.lowlevel.checkpoint()  # as a real hook does: it gets time for this
        self.said.append(f"-{uri}")
        self.contexts.append(ctx)
        if uri == "x:fails":
            raise RuntimeError("no way out")
        if uri == "x:hangs":
            await trio.sleep_forever()

    def told(self):
        """Return the calls of the hooks, and clear the record."""
        said, self.said = sorted(self.said), []
        return said


async def watch(client, *uris):
    """Watch resources in a session."""
    for uri in uris:
        await client.subscribe(uri)


async def test_the_end_of_a_session():
    """The end of a session unsubscribes each resource that is still watched, once."""
    server = Feeds()
    async with connect(server, version=SESSION) as client:
        await watch(client, "x:1", "x:2", "x:3", "x:1")
        await client.unsubscribe("x:2")
        await client.unsubscribe("x:2")
        await client.unsubscribe("x:never")
        assert server.told() == ["+x:1", "+x:2", "+x:3", "-x:2"]
    assert server.told() == ["-x:1", "-x:3"]
    assert server.contexts[-1].protocol_version == SESSION
    assert server.contexts[-1].server is server


async def test_the_end_of_a_listen_request():
    """A listen request subscribes and unsubscribes as a session does, without refused URIs."""
    server = Feeds()
    async with connect(server, version=STATELESS) as client:
        async with client.listen(uris=["x:2", "x:1", "x:secret"]) as agreed:
            assert agreed == {"resourceSubscriptions": ["x:1", "x:2"]}
            assert server.told() == ["+x:1", "+x:2"]
        await trio.testing.wait_all_tasks_blocked()
        assert server.told() == ["-x:1", "-x:2"]
        async with client.listen(tools=True):
            pass
    assert server.told() == []


@ERAS
@pytest.mark.parametrize("hard", [False, True])
async def test_the_end_of_a_connection(version, hard):
    """The watchers stop when the client leaves and when the server is cancelled."""
    server = Feeds()
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:
        serving = trio.CancelScope()

        async def run():
            with serving:
                async with open_session(server, theirs, transport="memory") as connection:
                    await connection.run(1.0)

        nursery.start_soon(run)
        async with connect(ours, version=version) as client, trio.open_nursery() as listening:
            if version == SESSION:
                await watch(client, "x:1", "x:2")
            else:
                await listening.start(listen_for_ever, client, ["x:1", "x:2"])
            assert server.told() == ["+x:1", "+x:2"]
            if hard:
                serving.cancel()
            else:
                await ours.aclose()
            await trio.testing.wait_all_tasks_blocked()
            assert server.told() == ["-x:1", "-x:2"]
            listening.cancel_scope.cancel()
    assert server.told() == []


async def listen_for_ever(client, uris, task_status=trio.TASK_STATUS_IGNORED):
    """Keep a listen request open."""
    with suppress(ConnectionClosed):
        async with client.listen(uris=uris):
            task_status.started()
            await trio.sleep_forever()


async def test_a_bad_end_is_no_end_of_the_others(caplog, autojump_clock):
    """If one hook raises and one hangs, all are called, and all end within seconds."""
    caplog.set_level(logging.WARNING, "noizu_mcp")
    server = Feeds()
    async with connect(server, version=SESSION) as client:
        await watch(client, "x:fails", "x:hangs", "x:1")
        server.told()
        start = trio.current_time()
    assert server.told() == ["-x:1", "-x:fails", "-x:hangs"]
    assert trio.current_time() - start == pytest.approx(2.0)
    texts = [record.getMessage() for record in caplog.records]
    assert texts == [
        "unsubscribe of <Feeds feeds 1> failed for x:fails",
        "unsubscribe of <Feeds feeds 1> took longer than 2.0 s and was cancelled",
    ]


async def test_what_has_no_room_is_left_again():
    """A subscription for which no room is left is ended, since its hook has run."""
    server = Feeds()
    async with connect(server, version=SESSION) as client:
        await watch(client, "x:1", "x:2", "x:3", "x:4")
        server.told()
        with pytest.raises(McpError, match="More than 4 subscriptions"):
            await client.subscribe("x:5")
        await trio.testing.wait_all_tasks_blocked()
        assert server.told() == ["+x:5", "-x:5"]


@ERAS
async def test_a_cancelled_subscription_is_not_opened(version):
    """A hook that swallows its cancellation gets `unsubscribe`, and nothing is opened."""
    server = Feeds()
    uris = ["x:1", "x:slow"]
    async with connect(server, version=version) as client:
        async with trio.open_nursery() as nursery:
            if version == SESSION:
                nursery.start_soon(client.subscribe, "x:slow")
            else:
                nursery.start_soon(listen_for_ever, client, uris)
            with trio.fail_after(60):
                await server.entered.wait()
            nursery.cancel_scope.cancel()
        await client.ping() if version == SESSION else await client.request("server/discover", {})
        server.go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        expected = ["x:slow"] if version == SESSION else uris
        assert server.told() == [*(f"+{u}" for u in expected), *(f"-{u}" for u in expected)]
        if version == STATELESS:
            async with client.listen(uris=["x:1", "x:2", "x:3"]):
                pass  # no room is taken
    assert "-x:slow" not in server.told()


async def test_a_hook_that_fails_leaves_nothing(caplog):
    """The listen request fails, and earlier subscriptions of it are ended."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    server = Feeds()
    async with connect(server, version=STATELESS) as client:
        with pytest.raises(McpError, match="Request handler failed"):
            async with client.listen(uris=["x:1", "x:broken", "x:2"]):
                raise AssertionError
        await trio.testing.wait_all_tasks_blocked()
        assert server.told() == ["+x:1", "+x:2", "-x:1", "-x:2"]


async def test_too_much_is_refused_before_anybody_is_asked():
    """A filter that exceeds the limit is refused before any hook is called."""
    server = Feeds()
    async with connect(server, version=STATELESS) as client:
        with pytest.raises(McpError, match="More than 4 subscriptions"):
            async with client.listen(uris=["x:1", "x:2", "x:3", "x:4"]):
                raise AssertionError
        assert server.told() == []
