"""Providers that fail: only their own items disappear, and they recover."""

import logging

import pytest
import trio
import trio.testing

from noizu_mcp import McpError, Server, Tool, ToolProvider, connect, tool
from noizu_mcp.engine import logger
from noizu_mcp.telemetry import Metrics
from noizu_mcp.transports.http import HttpApp, HttpOptions

SESSION, STATELESS = "2025-11-25", "2026-07-28"
#: Seconds before a provider is asked again after a failure.
FIRST_PAUSE, LONGEST_PAUSE = 1, 60
#: A `watch` that ran for this many seconds before it failed counts as having worked.
SETTLED = 60


@pytest.fixture(params=[SESSION, STATELESS])
def version(request):
    return request.param


@pytest.fixture(autouse=True)
def _logged(caplog):
    caplog.set_level(logging.INFO, logger=logger.name)


def told(caplog):
    return [record.getMessage() for record in caplog.records]


# The tools are async: a mock clock does not wait for threads.
class Steady(Tool):
    async def call(self) -> str:
        return "steady"


def saying(word):
    """Make a tool that says its name."""

    async def say() -> str:
        return word

    return tool(say, name=word)


class Moody(ToolProvider, timeout=2.0):
    """Lists one tool, or fails to."""

    def __init__(self, **options):
        vars(self).update(options)
        self.error = None
        self.asked = 0
        self.item = saying("moody")

    async def tools(self, ctx):
        self.asked += 1
        if self.error == "slow":
            await trio.sleep(100)
        if self.error is not None:
            raise self.error
        return [self.item]


def serving(*providers):
    given = {"tools": [Steady], "providers": list(providers)}
    return type("Work", (Server,), given, name="work", version="1")()


async def names(client):
    return [each.name for each in await client.list_tools()]


async def test_a_failure_hides_one_provider(version, caplog, autojump_clock):
    """The tools of other providers stay listed; the failure is logged once."""
    moody, other = Moody(), Moody()
    other.item = saying("other")
    server = serving(moody, other)
    async with connect(server, version=version) as client:
        moody.error = ValueError("no database")
        for _ in range(3):
            assert await names(client) == ["steady", "other"]
            with pytest.raises(McpError, match="Unknown tool: moody"):
                await client.call_tool("moody", {})
        assert (moody.asked, other.asked) == (1, 1)
        assert told(caplog) == ["Moody failed to list tools; its items are left out"]
        assert server.providers.health() == [("Moody", ("tools failed",), 1, {"tools": 1})]
        moody.error = "slow"
        await trio.sleep(FIRST_PAUSE)
        assert await names(client) == ["steady", "other"]
        assert (moody.asked, len(told(caplog))) == (2, 1)
        moody.error = None
        await trio.sleep(2 * FIRST_PAUSE)
        assert await names(client) == ["steady", "moody", "other"]
        assert told(caplog)[1:] == ["Moody gives its tools again"]
        assert server.providers.health() == [("Moody", (), 2, {"tools": 2})]
        assert other.asked == 1


async def test_a_slow_provider(version, caplog, autojump_clock):
    """A slow provider gets its full timeout only once in a while, and delays no registered tool."""
    moody = Moody(timeout=3.0)
    moody.error = "slow"
    async with connect(serving(moody), version=version) as client:
        start = trio.current_time()
        await client.call_tool("steady", {})
        assert trio.current_time() == start
        assert await names(client) == ["steady"]
        assert trio.current_time() == pytest.approx(start + 3)
        assert await names(client) == ["steady"]
        assert trio.current_time() == pytest.approx(start + 3)
    text = "Moody took longer than 3.0 s to list tools; its items are left out"
    assert told(caplog) == [text]


async def test_the_pauses_grow(autojump_clock):
    """A provider that keeps failing is asked after ever longer pauses."""
    moody = Moody()
    moody.error = ValueError()
    async with connect(serving(moody)) as client:
        for _ in range(int(3 * LONGEST_PAUSE)):
            await names(client)
            await trio.sleep(1)
    assert 7 <= moody.asked <= 9


async def test_a_change_ends_a_pause(version):
    """A provider that reports a change is asked again at once."""
    moody = Moody()
    moody.error = ValueError()
    server = serving(moody)
    async with connect(server, version=version) as client:
        assert await names(client) == ["steady"]
        moody.error = None
        server.notify_changed("tools")
        assert await names(client) == ["steady", "moody"]


@pytest.mark.parametrize("shared", [False, True])
async def test_a_stale_list(version, shared, caplog, autojump_clock):
    """The last list of a provider with `stale` is served for that many seconds while it fails."""
    moody = Moody(stale=10.0, shared=shared)
    server = serving(moody)
    async with connect(server, version=version) as client:
        assert await names(client) == ["steady", "moody"]
        moody.error = ValueError()
        server.notify_changed("tools")
        await trio.sleep(1)
        for _ in range(3):
            assert await names(client) == ["steady", "moody"]
            assert (await client.call_tool("moody", {})).text == "moody"
            await trio.sleep(2.9)
        await trio.sleep(1)
        assert await names(client) == ["steady"]
        assert told(caplog) == ["Moody failed to list tools; its last list is served"]
        moody.error = None
        await trio.sleep(LONGEST_PAUSE)
        assert await names(client) == ["steady", "moody"]


async def test_clients_hear_of_a_shared_provider_that_fails(autojump_clock):
    """Its items vanish from the lists of all clients, and return."""
    moody = Moody(shared=True)
    server = serving(moody)
    async with connect(server, version=STATELESS) as client, client.listen(tools=True):
        heard = []
        server.bus.add(heard.append)
        await names(client)
        moody.error = ValueError()
        server.notify_changed("tools")
        await names(client)
        assert heard == ["tools", "tools"]
        moody.error = None
        await trio.sleep(LONGEST_PAUSE)
        await names(client)
        assert heard == ["tools", "tools", "tools"]


async def test_a_cancelled_request_is_no_failure(version):
    """A request that is cancelled during a provider's list causes no failure."""
    moody, held = Moody(shared=True, timeout=1e9), trio.Event()
    server = serving(moody)

    class Holding:
        async def __call__(self, ctx):
            moody.asked += 1
            held.set()
            await trio.sleep_forever()

    async with connect(server, version=version) as client, trio.open_nursery() as nursery:
        plain = moody.tools
        moody.tools = Holding()
        nursery.start_soon(names, client)
        await held.wait()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            moody.tools = plain
            assert await names(client) == ["steady", "moody"]
    assert server.providers.health() == [("Moody", (), 0, {"tools": 1})]


# Watching


class Watched(ToolProvider):
    def __init__(self, *ends):
        self.ends = list(ends)
        self.began = []
        self.running = 0
        self.asked = 0

    async def tools(self, ctx):
        self.asked += 1
        return ()

    async def watch(self, changed):
        self.began.append(trio.current_time())
        self.running += 1
        try:
            if self.ends:
                seconds, error = self.ends.pop(0)
                await trio.sleep(seconds)
                if error is None:
                    return
                raise error
            await trio.sleep_forever()
        finally:
            self.running -= 1


async def test_a_watch_that_fails_begins_again(caplog, autojump_clock):
    """It is restarted after growing pauses, logged once per period, and the list is requested."""
    failing = [(0, ValueError())] * 3
    watched = Watched(*failing, (SETTLED + 1, ValueError()))
    start = trio.current_time()
    async with connect(serving(watched)) as client:
        await names(client)
        await trio.sleep(SETTLED + 20)
        assert watched.running == 1
        times = [round(each - start) for each in watched.began]
        assert times == [0, 1, 3, 7, 7 + SETTLED + 1 + 1]
        assert (
            told(caplog)
            == ["watch of Watched failed; it is started again, with growing pauses"] * 2
        )
        await names(client)
        assert watched.asked == 2
    assert watched.running == 0


async def test_a_watch_that_returns(caplog, autojump_clock):
    """A watch that returns has finished, and is not restarted."""
    watched = Watched((1, None))
    async with connect(serving(watched)):
        await trio.sleep(100)
    assert (len(watched.began), told(caplog)) == (1, [])


async def test_one_watch_for_a_server(version):
    """Two connections share a watch; it moves to the other when its connection ends."""
    watched = Watched()
    server = serving(watched)
    async with trio.open_nursery() as nursery:

        async def serve(task_status):
            with trio.CancelScope() as scope:
                async with connect(server, version=version):
                    task_status.started(scope)
                    await trio.sleep_forever()

        first = await nursery.start(serve)
        second = await nursery.start(serve)
        await trio.testing.wait_all_tasks_blocked()
        assert (len(watched.began), watched.running) == (1, 1)
        first.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert (len(watched.began), watched.running) == (2, 1)
        second.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert watched.running == 0
        assert server.bus.running == {}


async def test_a_provider_that_is_removed_while_it_is_asked(version):
    """A list that arrives after its provider was removed is dropped."""
    held, go_on = trio.Event(), trio.Event()

    class Late(Moody):
        async def tools(self, ctx):
            held.set()
            await go_on.wait()
            return [self.item]

    late = Late(shared=True)
    server = serving(late)
    async with connect(server, version=version) as client, trio.open_nursery() as nursery:
        nursery.start_soon(names, client)
        await held.wait()
        server.providers.remove(late)
        assert await names(client) == ["steady"]
        go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        assert await names(client) == ["steady"]


# Health


async def test_health_over_http():
    """`/readyz` names the failing provider, and still reports ready; metrics count failures."""
    moody = Moody()
    moody.error = ValueError("secret")
    server = serving(moody, Moody())
    metrics = Metrics(server)
    app = HttpApp(server, HttpOptions(health=True, metrics=metrics))
    async with connect(server) as client, app.lifespan():
        assert await ask(app, "/readyz") == (200, "ok\n")
        await names(client)
        assert await ask(app, "/readyz") == (200, "ok\nprovider Moody: tools failed\n")
        assert await ask(app, "/healthz") == (200, "ok\n")
        _, text = await ask(app, "/metrics")
    assert 'mcp_provider_failing{provider="Moody"} 1.0' in text
    assert 'mcp_provider_failures_total{provider="Moody"} 1.0' in text


async def ask(app, path):
    """Send a GET request to an application."""
    sent = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1")],
        "http_version": "1.1",
    }

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:]).decode()


@pytest.mark.parametrize("given", ["hello", b"hello", {"hello": Steady}, None, Steady])
async def test_a_malformed_list(version, caplog, given):
    """Another value than a list is logged as one failure, not one per element."""

    class Wrong(ToolProvider):
        async def tools(self, ctx):
            return given

    class Serving(Server, name="serving", version="1"):
        tools = [Steady]
        providers = [Wrong()]

    async with connect(Serving, version=version) as client:
        assert [each.name for each in await client.list_tools()] == ["steady"]
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert f"must give a list of tools, got {repr(given)[:20]}" in record.exc_text
