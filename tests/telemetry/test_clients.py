"""Telemetry of a client: events, metrics and spans of its requests, in both eras."""

import asyncio
import json
import logging
import sys
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import pytest
import trio
import trio.testing
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from prometheus_client import CollectorRegistry

from noizu_mcp import (
    ClientHandler,
    ConnectionClosed,
    Context,
    Decline,
    McpError,
    RequestTimeout,
    Server,
    Stdio,
    SyncClient,
    Toolkit,
    aio,
    connect,
    connect_all,
    mcp,
    resource,
    serve_http,
)
from noizu_mcp.events import Event
from noizu_mcp.telemetry import ClientMetrics, Listener, Tracing
from noizu_mcp.transports import memory_pair

VERSIONS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
FORM = {"type": "object", "properties": {}}


def note() -> str:
    """A note."""
    return "noted"


class Kit(Toolkit):
    """Tools that end in every way."""

    @mcp
    async def add(self, a: int, b: int) -> int:
        return a + b

    @mcp
    async def fail(self) -> str:
        raise ValueError

    @mcp
    async def ask(self, ctx: Context) -> str:
        return (await ctx.elicit("Sure?", FORM)).action

    @mcp
    async def wait(self) -> str:
        await trio.sleep_forever()
        return "never"

    @mcp
    async def tell(self, ctx: Context) -> str:
        await ctx.warning("hm")
        return "told"


class Counter(Server, name="counter", version="1"):
    tools = [Kit]
    resources = [resource(note, uri="note://x")]


class Person(ClientHandler):
    async def handle_elicitation(self, params):
        return Decline()


class Events(list):
    """A listener that records all events."""

    def __call__(self, event):
        self.append(event)

    def of(self, method):
        return [event for event in self if event.method == method]

    def kinds(self, method):
        return [(event.kind, event.outcome) for event in self.of(method)]


@pytest.fixture
def events():
    return Events()


@VERSIONS
async def test_a_call(events, version):
    """A request has a start and an end, with the names of tool and server."""
    async with connect(Counter, version=version, telemetry=[events]) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
    start, end = events.of("tools/call")
    assert (start.kind, end.kind, end.outcome) == ("start", "stop", "ok")
    assert start.key == end.key
    assert end.duration > 0
    for event in (start, end):
        assert (event.name, event.target, event.server) == ("add", "add", "counter")
        assert (event.transport, event.revision, event.outbound) == ("memory", version, True)
        assert (event.session is None) == (version == "2026-07-28")
    opened, closed = (each for each in events if each.kind in ("opened", "closed"))
    assert [each.kind for each in (opened, closed)] == ["opened", "closed"]
    assert opened.key == closed.key == start.parent
    assert (opened.server, opened.revision, opened.duration) == ("counter", version, None)
    assert closed.duration > end.duration
    assert events[0].method in ("initialize", "server/discover")
    assert events[0].server is events[0].revision is None


@VERSIONS
async def test_every_outcome(events, version):
    """A failed tool, an error, a timeout, a cancellation and a closed connection differ."""
    async with connect(Counter, version=version, telemetry=[events]) as client:
        await client.call_tool("fail")
        with pytest.raises(McpError):
            await client.call_tool("nothing")
        with pytest.raises(RequestTimeout):
            await client.call_tool("wait", timeout=0.01)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, "wait")
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        await client.aclose()
        with pytest.raises(ConnectionClosed):
            await client.call_tool("add", {"a": 1, "b": 2})
    ends = [(e.outcome, e.kind, e.code) for e in events.of("tools/call") if e.kind != "start"]
    assert ends == [
        ("tool_error", "error", None),
        ("error", "error", -32602),
        ("timed_out", "error", None),
        ("cancelled", "cancelled", None),
        ("error", "error", None),
    ]


@VERSIONS
async def test_a_question(events, version):
    """A question is a request of the server, in both eras."""
    async with connect(Counter, version=version, handler=Person(), telemetry=[events]) as client:
        await client.call_tool("ask")
        with pytest.raises(McpError):
            await client._session.answerer.answer("roots/list", {})
    start, end = events.of("elicitation/create")
    assert (start.kind, start.outbound, start.server) == ("start", False, "counter")
    assert (end.kind, end.outcome, end.key) == ("stop", "ok", start.key)
    assert events.kinds("roots/list") == [("start", None), ("error", "error")]
    outcomes = [event.outcome for event in events.of("tools/call") if event.kind != "start"]
    assert outcomes == (["ok"] if version == "2025-11-25" else ["input_required", "ok"])


async def test_notifications(events):
    """Sent and received notifications are events of the kind "notice"."""
    async with connect(Counter, version="2025-11-25", telemetry=[events]) as client:
        await client.set_log_level("warning")
        await client.call_tool("tell")
    (sent,) = events.of("notifications/initialized")
    (came,) = events.of("notifications/message")
    assert (sent.kind, sent.outbound) == ("notice", True)
    assert (came.kind, came.outbound) == ("notice", False)
    assert sent.bytes_out > 0
    assert came.bytes_in > 0


async def test_resources_have_no_target(events):
    """URIs are not labels of metrics: a program may read many."""
    async with connect(Counter, telemetry=[events]) as client:
        await client.read_resource("note://x")
        await client.list_tools()
    assert [(e.name, e.target) for e in events.of("resources/read")] == [("note://x", None)] * 2
    assert {(e.name, e.target) for e in events.of("tools/list")} == {(None, None)}


async def test_an_array(events):
    """Up to 2025-03-26 a server may send several notifications in an array."""
    ours, theirs = memory_pair()
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}

    async def serve():
        while arrived := await theirs.receive():
            for each in arrived:
                message = json.loads(each.data)
                if message["method"] == "initialize":
                    info = {"name": "s", "version": "1"}
                    result = {
                        "protocolVersion": "2025-03-26",
                        "capabilities": {},
                        "serverInfo": info,
                    }
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                    await theirs.send([json.dumps(answer).encode()])
                if message["method"] == "ping":
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
                    array = [notice, notice, answer]
                    await theirs.send([json.dumps(array).encode()])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with connect(ours, version="2025-03-26", telemetry=[events]) as client:
            await client.ping()
    assert [each.bytes_in for each in events.of("notifications/message")] == [None, None]


async def test_transports(events):
    """The events have the transport of the connection, also behind a tap."""
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, Counter(), port=0))
        url = f"{host.urls[0]}/mcp"
        async with connect(url, telemetry=[events], tap=lambda *_: None):
            pass
        host.stop()
    async with connect(Counter, telemetry=[events], tap=lambda *_: None):
        pass
    assert [each.transport for each in events if each.kind == "opened"] == ["http", "memory"]


SERVER = """
from noizu_mcp import Server
class Small(Server, name="small", version="1"):
    pass
Small().run()
"""


async def test_stdio(events):
    """A command is "stdio"; a stream of the program is another transport."""
    async with connect(Stdio(sys.executable, "-c", SERVER), telemetry=[events]):
        pass
    assert {each.transport for each in events} == {"stdio"}


async def test_a_renewal(events):
    """A new session is an event, and the repeated request has its own start."""
    sessions = []

    class Forgets(Counter, name="forgets", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            sessions.append(1)
            yield

    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, Forgets(), port=0))
        url = f"{host.urls[0]}/mcp"
        async with connect(url, version="2025-11-25", telemetry=[events]) as client:
            client._session._stream._state.session = "gone"
            await client.call_tool("add", {"a": 1, "b": 2})
        host.stop()
    assert [each.kind for each in events if not each.method] == ["opened", "renewed", "closed"]
    assert [outcome for _, outcome in events.kinds("tools/call")] == [None, "error", None, "ok"]


async def test_a_listener_that_fails(caplog):
    """The exception is logged, and changes nothing."""

    class Broken(Listener):
        def __call__(self, event):
            raise ValueError("in the call")

        def around(self, event):
            raise ValueError("around")

        def trace_context(self, event):
            raise ValueError("in the context")

    with caplog.at_level(logging.ERROR, "noizu_mcp"):
        async with connect(Counter, telemetry=[Broken()], handler=Person()) as client:
            assert (await client.call_tool("ask")).content[0].text == "decline"
    assert "the listener" in caplog.text


async def test_a_listener_of_ones_own():
    """A `Listener` surrounds requests and questions, and sends trace context only on request."""

    class Around(Listener):
        @contextmanager
        def around(self, event):
            seen.append(event.method)
            yield

    class Sends(Listener):
        def trace_context(self, event):
            return {"traceparent": f"of {event.method}"}

    seen, server, served = [], Counter(), Events()
    server.telemetry.add(served)
    async with connect(server, telemetry=[Around()], handler=Person()) as client:
        await client.call_tool("ask")
    assert seen == ["server/discover", "tools/call", "elicitation/create", "tools/call"]
    assert {*served.of("tools/call")[0].trace} == set()
    async with connect(server, telemetry=[Around(), Sends()]) as client:
        await client.list_tools()
    assert served.of("tools/list")[0].trace == {"traceparent": "of tools/list"}


async def test_listeners_are_checked():
    """An invalid listener raises before a connection is made."""

    async def later(event):
        pass

    for wrong, text in (
        (later, "plain function"),
        (Events, "must be an instance"),
        (1, "callable"),
    ):
        with pytest.raises(TypeError, match=text):
            async with connect(Counter, telemetry=[wrong]):
                pass
    with pytest.raises(TypeError, match="telemetry must be a list of listeners"):
        async with connect(Counter, telemetry=print):
            pass


async def test_several_servers(events):
    """One listener gets the events of all servers, with their names."""

    class Other(Counter, name="other", version="1"):
        pass

    servers = {"a": Counter, "b": Other}
    async with connect_all(servers, telemetry=[events]) as clients:
        await clients.call_tool("a_add", {"a": 1, "b": 2})
        await clients.call_tool("b_add", {"a": 1, "b": 2})
    assert sorted(e.server for e in events if e.kind == "opened") == ["counter", "other"]
    called = [(e.server, e.outcome) for e in events.of("tools/call") if e.kind == "stop"]
    assert called == [("counter", "ok"), ("other", "ok")]


def test_in_plain_code(events):
    """Every client has the option."""
    with SyncClient(Counter, telemetry=[events]) as client:
        client.call_tool("add", {"a": 1, "b": 2})
    assert events.kinds("tools/call") == [("start", None), ("stop", "ok")]


# Spans


class Spans:
    """A recording provider."""

    def __init__(self):
        self.provider = TracerProvider(shutdown_on_exit=False)
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name, kind):
        return [
            span
            for span in self._exporter.get_finished_spans()
            if span.name == name and span.kind is kind
        ]


@VERSIONS
async def test_one_trace_at_both_ends(version):
    """The server's span is a child of the client's, which is a child of the caller's."""
    spans = Spans()
    server = Counter()
    server.telemetry.add(Tracing(tracer_provider=spans.provider))
    tracing = Tracing(tracer_provider=spans.provider)
    async with connect(server, version=version, telemetry=[tracing]) as client:
        with trace.get_tracer("t", tracer_provider=spans.provider).start_as_current_span("work"):
            await client.call_tool("add", {"a": 1, "b": 2})
    (caller,) = spans.named("work", SpanKind.INTERNAL)
    (sent,) = spans.named("tools/call add", SpanKind.CLIENT)
    (served,) = spans.named("tools/call add", SpanKind.SERVER)
    assert sent.parent.span_id == caller.context.span_id
    assert served.parent.span_id == sent.context.span_id
    assert caller.context.trace_id == sent.context.trace_id == served.context.trace_id
    assert sent.attributes["noizu_mcp.server"] == "counter"
    assert sent.attributes["noizu_mcp.outcome"] == "ok"


def test_the_caller_elsewhere():
    """A span of a caller on asyncio, or in blocking code, is the parent, too."""
    spans = Spans()
    work = trace.get_tracer("t", tracer_provider=spans.provider).start_as_current_span("work")
    tracing = Tracing(tracer_provider=spans.provider)

    async def main():
        async with aio.connect(Counter, telemetry=[tracing]) as client:
            with trace.get_tracer("t", tracer_provider=spans.provider).start_as_current_span("a"):
                await client.call_tool("add", {"a": 1, "b": 2})

    asyncio.run(main())
    with SyncClient(Counter, telemetry=[tracing]) as client, work:
        client.call_tool("add", {"a": 1, "b": 2})
    on_asyncio, plain = spans.named("tools/call add", SpanKind.CLIENT)
    assert on_asyncio.parent.span_id == spans.named("a", SpanKind.INTERNAL)[0].context.span_id
    assert plain.parent.span_id == spans.named("work", SpanKind.INTERNAL)[0].context.span_id


async def test_a_malformed_meta():
    """A request with a malformed `_meta` is sent unchanged: the server checks it."""
    tracing, sent = Tracing(tracer_provider=Spans().provider), []
    options = {"telemetry": [tracing], "tap": lambda _, message: sent.append(message)}
    async with connect(Counter, version="2025-11-25", **options) as client:
        await client.request("tools/list", {"_meta": 5})
    assert any(b'"_meta":5' in message for message in sent)


async def test_a_trace_of_the_caller_wins():
    """A `traceparent` of the caller is not replaced."""
    given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    server, seen = Counter(), Events()
    server.telemetry.add(seen)
    tracing = Tracing(tracer_provider=Spans().provider)
    async with connect(server, telemetry=[tracing]) as client:
        meta = {"traceparent": given, "a/b": 1}
        await client.request("tools/list", {"_meta": meta})
    assert seen.of("tools/list")[0].trace == {"traceparent": given}


@pytest.mark.parametrize("sends", [False, True])
async def test_baggage(sends):
    """Baggage is sent only on request."""
    server, seen = Counter(), Events()
    server.telemetry.add(seen)
    tracing = Tracing(tracer_provider=Spans().provider, baggage=sends)
    async with connect(server, telemetry=[tracing]) as client:
        token = context.attach(baggage.set_baggage("user", "ada"))
        try:
            await client.list_tools()
        finally:
            context.detach(token)
    assert ("baggage" in seen.of("tools/list")[0].trace) == sends


def test_a_span_that_does_not_exist():
    """A request that began before the listener was added sends no trace context."""
    tracing = Tracing(tracer_provider=Spans().provider)
    assert tracing.trace_context(Event("start", 1, "ping", "stdio")) == {}


@VERSIONS
async def test_a_span_of_a_question(version):
    """The handler runs within it."""
    spans, seen = Spans(), []

    class Looks(ClientHandler):
        async def handle_elicitation(self, params):
            seen.append(trace.get_current_span().get_span_context().span_id)
            return Decline()

    tracing = Tracing(tracer_provider=spans.provider)
    async with connect(Counter, version=version, handler=Looks(), telemetry=[tracing]) as client:
        await client.call_tool("ask")
    (span,) = spans.named("elicitation/create", SpanKind.SERVER)
    assert seen == [span.context.span_id]


# Metrics


def lines(metrics, *parts):
    text = metrics.render().decode().splitlines()
    return [line for line in text if line[0] != "#" and all(part in line for part in parts)]


@VERSIONS
async def test_metrics(version):
    """Requests, questions, notifications and connections of all clients are counted."""
    metrics = ClientMetrics()
    options = {"version": version, "handler": Person(), "telemetry": [metrics]}
    async with connect(Counter, **options) as client, connect(Counter, **options) as other:
        await client.call_tool("add", {"a": 1, "b": 2})
        await other.call_tool("ask")
        await client.read_resource("note://x")
        await client.list_tools()
        await client.request("tools/list")
        with pytest.raises(McpError):
            await client.request("vendor/thing")
        assert lines(metrics, 'mcp_client_connections{server="counter"} 2.0')
    assert lines(metrics, 'mcp_client_connections{server="counter"} 0.0')
    begin = 'mcp_client_requests_total{method="'
    assert lines(metrics, begin + 'tools/call",name="add",outcome="ok",server="counter"} 1.0')
    assert lines(metrics, begin + 'resources/read",name="other",outcome="ok"')
    assert lines(metrics, begin + 'tools/list",name="",outcome="ok",server="counter"} 2.0')
    assert lines(metrics, begin + 'other",name="",outcome="error"')
    assert lines(metrics, "mcp_client_request_duration_seconds_count", 'name="add"')
    asked = 'mcp_client_questions_total{method="elicitation/create",outcome="ok",server="counter"}'
    assert lines(metrics, asked)
    assert not [line for line in lines(metrics, "in_flight{") if not line.endswith(" 0.0")]


def test_metrics_of_events():
    """Notices have directions, renewals a counter, and names a limit."""
    metrics = ClientMetrics(registry=CollectorRegistry())
    metrics(Event("notice", 1, "notifications/message", "http", server="s"))
    metrics(Event("notice", 2, "notifications/initialized", "http", server="s", outbound=True))
    metrics(Event("renewed", 3, "", "http", server="s"))
    metrics(Event("stop", 4, "ping", "http", server="s", outbound=True, outcome="ok"))
    for number in range(120):
        metrics(Event("opened", 10 + number, "", "http", server=f"s{number}"))
    assert lines(metrics, "notifications_total", 'direction="in"', "notifications/message")
    assert lines(metrics, "notifications_total", 'direction="out"', "notifications/initialized")
    assert lines(metrics, 'mcp_client_renewals_total{server="s"} 1.0')
    assert lines(metrics, "mcp_client_connections{", 'server="other"')[0].endswith(" 21.0")
    assert not lines(metrics, "mcp_client_requests_total{")
    assert metrics.content_type.startswith("text/plain")


def test_metrics_share_no_registry():
    """Two instances cannot share a registry."""
    registry = CollectorRegistry()
    ClientMetrics(registry=registry)
    with pytest.raises(ValueError, match="Duplicated"):
        ClientMetrics(registry=registry)


def test_metrics_without_the_library(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.telemetry._series", None)
    with pytest.raises(ImportError, match=r"noizu-mcp\[prometheus\]"):
        ClientMetrics()
