"""Hooks of a mounted server for sessions and subscriptions."""

from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
import trio
import trio.testing

from noizu_mcp import (
    ClientHandler,
    ConnectionClosed,
    McpError,
    Mount,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
    connect,
)
from noizu_mcp.types import Principal

SESSION, STATELESS = VERSIONS = ["2025-11-25", "2026-07-28"]


class Told(Tool):
    async def call(self, ctx):
        return str(dict(ctx.session))


class Open(Resource, uri="db://open", subscribable=True):
    async def read(self, uri, ctx):
        return "open"


class Row(ResourceTemplate, uri_template="db://row/{number}"):
    async def read(self, uri, args, ctx):
        return args.number


class Hooked(Server, name="hooked", version="1"):
    """Notes the calls of its hooks."""

    tools = [Told]
    resources = [Open, Row]

    def __init__(self):
        self.calls = []
        self.served = False

    @asynccontextmanager
    async def lifespan(self):
        self.served = True
        try:
            yield "open"
        finally:
            self.served = False

    async def init(self, ctx):
        assert self.served
        self.calls.append(("init", ctx.state))
        await ctx.put_session("inner", ctx.session.get("outer"))

    async def can_watch(self, uri, ctx):
        self.calls.append(("can_watch", uri))
        return uri != "db://row/13"

    async def unsubscribe(self, uri, ctx):
        assert self.served
        self.calls.append(("unsubscribe", uri, ctx.server is self))


class Taking(Hooked, name="taking", version="1"):
    """Takes every subscription, whatever `can_watch` says."""

    async def subscribe(self, uri, ctx):
        assert self.served
        if uri == "db://row/7":
            raise McpError(-32600, "not this one")
        self.calls.append(("subscribe", uri, ctx.state))


class Own(Resource, uri="own://one", subscribable=True):
    async def read(self, uri, ctx):
        return "own"


def front(inner, depth=1, base=Server, **body):
    """Mount a server at the given depth."""
    mount = Mount(inner, prefix="h")
    if depth == 2:
        mount = Mount(type("Middle", (Server,), {"providers": [mount]}, name="m", version="1"))
    given = {"providers": [mount], "resources": [Own], **body}
    return type("Front", (base,), given, name="front", version="1")()


async def watch(client, version, *uris):
    """Watch several resources; return the accepted URIs and the end of the subscription."""
    if version == STATELESS:
        async with client.listen(uris=uris) as agreed:
            yield agreed["resourceSubscriptions"]
        return
    taken = []
    for uri in uris:
        with suppress(McpError):
            await client.subscribe(uri)
            taken.append(uri)
    yield taken
    for uri in taken:
        await client.unsubscribe(uri)


watching = asynccontextmanager(watch)


def told(server, *kinds):
    """Return the calls of some hooks, and clear the record."""
    calls, server.calls = server.calls, []
    return [call for call in calls if call[0] in kinds]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("version", VERSIONS)
async def test_init_sets_up_each_session(version, depth):
    """`init` of the mounted server runs after the parent's; on 2026-07-28 there are no sessions."""

    class Base(Server, name="base", version="1"):
        async def init(self, ctx):
            await ctx.put_session("outer", ctx.server.options.name)

    inner = Hooked()
    async with connect(front(inner, depth, Base), version=version) as client:
        text = (await client.call_tool("h_told")).text
    if version == SESSION:
        assert text == "{'outer': 'front', 'inner': 'front'}"
        assert inner.calls == [("init", "open")]
    else:
        assert (text, inner.calls) == ("{}", [])


async def test_an_init_that_fails_ends_the_session(caplog):
    """A failure of any server's `init` ends the session; later ones are not called."""

    class Failing(Server, name="failing", version="1"):
        async def init(self, ctx):
            raise RuntimeError("no")

    inner = Hooked()
    server = front(Failing)
    server.providers.add(Mount(inner, prefix="x"))
    with pytest.raises((McpError, ConnectionClosed)):
        async with connect(server, version=SESSION) as client:
            await client.call_tool("x_told")
    assert "init of <Failing failing 1> failed" in caplog.text
    assert inner.calls == []


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("version", VERSIONS)
async def test_can_watch_decides_about_the_resources_of_its_server(version, depth):
    """`can_watch` gets the server's own URIs, also of resources that are not subscribable."""
    inner = Hooked()
    server = front(inner, depth)
    uris = [f"h+db://{each}" for each in ("open", "row/1", "row/13", "row")]
    async with connect(server, version=version) as client:
        async with watching(client, version, *uris, "own://one") as taken:
            assert sorted(taken) == ["h+db://open", "h+db://row/1", "own://one"]
            asked = {uri for _, uri in told(inner, "can_watch")}
            assert asked == {"db://open", "db://row/1", "db://row/13"}
        await trio.testing.wait_all_tasks_blocked()
        ended = [("unsubscribe", uri, True) for uri in ("db://open", "db://row/1")]
        assert sorted(told(inner, "unsubscribe")) == ended


async def test_the_server_that_mounts_has_the_first_word():
    """The parent's `can_watch` may refuse what the mounted server would allow."""

    class Strict(Server, name="strict", version="1"):
        async def can_watch(self, uri, ctx):
            return uri != "h+db://open" and await super().can_watch(uri, ctx)

    inner = Taking()
    server = front(inner, base=Strict)
    async with connect(server, version=SESSION) as client:
        with pytest.raises(McpError, match="not subscribable: h\\+db://open"):
            await client.subscribe("h+db://open")
        assert told(inner, "subscribe") == []
        await client.subscribe("own://one")
        await client.subscribe("h+db://row/1")
        assert told(inner, "subscribe") == [("subscribe", "db://row/1", "open")]


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("version", VERSIONS)
async def test_subscribe_and_unsubscribe_come_in_pairs(version, depth, loop):
    """Both hooks are called in pairs, for resources of their own server only."""

    class Inner(Taking, name="inner", version="1", loop=loop):
        pass

    inner = Inner()
    server = front(inner, depth)
    server.providers.add(Mount(other := Taking()))
    uris = ["h+db://open", "h+db://row/7", "h+db://row/13", "own://one"]
    async with connect(server, version=version) as client:
        async with watching(client, version, *uris) as taken:
            assert sorted(taken) == ["h+db://open", "h+db://row/13", "own://one"]
            assert sorted(told(inner, "subscribe")) == [
                ("subscribe", "db://open", "open"),
                ("subscribe", "db://row/13", "open"),
            ]
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(uri for _, uri, _ in told(inner, "unsubscribe")) == [
            *("db://open", "db://row/13")
        ]
    assert told(other, "subscribe", "unsubscribe") == []


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_end_of_a_connection_ends_subscriptions(version, depth):
    """Each subscription ends once, within the lifespan of the mounted server."""
    inner = Taking()
    async with connect(front(inner, depth), version=version) as client:
        stack = AsyncExitStack()
        if version == SESSION:
            await client.subscribe("h+db://open")
            await client.subscribe("h+db://row/1")
        else:
            await stack.enter_async_context(client.listen(uris=["h+db://open", "h+db://row/1"]))
        told(inner)
        await stack.aclose()
    ended = [("unsubscribe", uri, True) for uri in ("db://open", "db://row/1")]
    assert (sorted(told(inner, "unsubscribe")), inner.served) == (ended, False)


async def test_unmounting_ends_subscriptions(caplog):
    """Unmounting does not wait for clients that watch, and a failing hook delays no other."""

    class Failing(Taking, name="failing", version="1"):
        async def unsubscribe(self, uri, ctx):
            await super().unsubscribe(uri, ctx)
            if uri == "db://row/2":
                raise RuntimeError("no way out")

    inner = Failing()
    server = front(inner)
    (mount,) = server.providers
    async with connect(server, version=SESSION) as client:
        for number in range(3):
            await client.subscribe(f"h+db://row/{number}")
        told(inner)
        server.providers.remove(mount)
        await trio.testing.wait_all_tasks_blocked()
        assert not inner.served
        ended = [("unsubscribe", f"db://row/{number}", True) for number in range(3)]
        assert sorted(told(inner, "unsubscribe")) == ended
        await client.unsubscribe("h+db://row/1")
        assert inner.calls == []
    assert "unsubscribe of <Failing failing 1> failed for db://row/2" in caplog.text


async def test_unmounting_while_a_client_subscribes():
    """A subscription that is made while its server is unmounted ends at once."""

    class Slow(Taking, name="slow", version="1"):
        async def subscribe(self, uri, ctx):
            await super().subscribe(uri, ctx)
            began.set()
            await go_on.wait()

    began, go_on = trio.Event(), trio.Event()
    inner = Slow()
    server = front(inner)
    (mount,) = server.providers
    async with connect(server, version=SESSION) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.subscribe, "h+db://open")
        await began.wait()
        server.providers.remove(mount)
        go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        assert [call[0] for call in inner.calls][-2:] == ["subscribe", "unsubscribe"]
        assert not inner.served


class Ears(ClientHandler):
    def __init__(self):
        self.heard = []

    async def handle_notification(self, method, params):
        self.heard.append(params.get("uri"))


async def test_updates_have_the_prefixed_uri():
    """Updates have the prefixed URI, also if only the mounted `can_watch` allows them."""
    inner, ears = Hooked(), Ears()
    ada = Principal(subject="ada")
    async with connect(front(inner), version=SESSION, handler=ears, principal=ada) as client:
        await client.subscribe("h+db://row/1")
        inner.notify_resource_updated("db://row/1")
        await client.ping()
        await trio.testing.wait_all_tasks_blocked()
    assert ears.heard == ["h+db://row/1"]


async def test_two_subscriptions_of_one_resource_have_two_ends():
    """Each listen request ends its own subscription."""
    inner = Taking()
    async with connect(front(inner), version=STATELESS) as client:
        async with client.listen(uris=["h+db://open"]), client.listen(uris=["h+db://open"]):
            assert len(told(inner, "subscribe")) == 2
        await trio.testing.wait_all_tasks_blocked()
        assert len(told(inner, "unsubscribe")) == 2


async def test_a_server_that_was_unmounted_takes_nothing():
    """Subscriptions are refused even if the request found its resource before the unmounting."""

    class Leaving(Server, name="leaving", version="1"):
        async def subscribe(self, uri, ctx):
            await ctx.read_resource(uri)
            (mount,) = self.providers
            self.providers.remove(mount)
            await super().subscribe(uri, ctx)

    inner = Taking()
    async with connect(front(inner, base=Leaving), version=SESSION) as client:
        with pytest.raises(McpError, match="is not served now"):
            await client.subscribe("h+db://open")
    assert told(inner, "subscribe") == []
