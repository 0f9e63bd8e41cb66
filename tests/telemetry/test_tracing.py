"""Spans as OpenTelemetry's own SDK records them."""

import asyncio
import sys

import pytest
import trio
import trio.lowlevel
import trio.testing
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from noizu_mcp import ClientHandler, Context, Decline, McpError, Tool, connect
from noizu_mcp.events import Event
from noizu_mcp.policies import DenyTools
from noizu_mcp.telemetry import Tracing

from .kit import KNOWS, Job, begin, over_http

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE, SPAN = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7


class Person(ClientHandler):
    async def handle_elicitation(self, params):
        return Decline()


class Spans:
    """A recording provider."""

    def __init__(self):
        self.provider = TracerProvider(shutdown_on_exit=False)
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name):
        (span,) = [span for span in self._exporter.get_finished_spans() if span.name == name]
        return span

    @property
    def names(self):
        return [span.name for span in self._exporter.get_finished_spans()]


@pytest.fixture
def spans(server):
    spans = Spans()
    server.telemetry.add(Tracing(tracer_provider=spans.provider))
    return spans


async def test_a_call(server, spans):
    """The attributes follow the semantic conventions."""
    async with connect(server, version="2025-11-25") as client:
        await client.call_tool("echo", {"text": "hunter2"})

    span = spans.named("tools/call echo")
    attributes = dict(span.attributes)
    assert attributes.pop("noizu_mcp.bytes_in") > 0
    assert attributes.pop("noizu_mcp.bytes_out") > 0
    assert len(attributes.pop("mcp.session.id")) == 16
    assert attributes.pop("jsonrpc.request.id").isdigit()
    assert attributes == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25",
        "gen_ai.tool.name": "echo",
        "gen_ai.operation.name": "execute_tool",
        "rpc.system.name": "jsonrpc",
        "jsonrpc.protocol.version": "2.0",
        "noizu_mcp.outcome": "ok",
    }
    assert span.kind is SpanKind.SERVER
    assert span.status.status_code is StatusCode.UNSET
    assert span.parent is None
    assert "hunter2" not in span.to_json()


async def test_the_parent_is_that_of_the_client(server, spans):
    """The span continues the trace in `_meta`, with its state."""
    meta = {"traceparent": PARENT, "tracestate": "vendor=x"}
    async with connect(server) as client:
        await client.request("tools/call", {"name": "now", "_meta": meta})

    span = spans.named("tools/call now")
    assert (span.context.trace_id, span.parent.span_id) == (TRACE, SPAN)
    assert span.parent.is_remote
    assert span.context.trace_state.get("vendor") == "x"
    assert span.links == ()


@pytest.mark.parametrize("parent", ["", "00-0-0-01", "x" * 255, PARENT.replace("4bf9", "ZZZZ"), 7])
async def test_what_is_no_parent_is_ignored(server, spans, parent):
    """A malformed value begins a new trace (SEP-414)."""
    async with connect(server) as client:
        await client.request("tools/call", {"name": "now", "_meta": {"traceparent": parent}})

    assert spans.named("tools/call now").parent is None


async def test_the_span_around_it_is_linked_or_the_parent(server, spans):
    """The span of the HTTP request is the parent, or a link if the client sends a parent."""
    tracer = spans.provider.get_tracer("test")
    async with over_http(server) as http:
        with tracer.start_as_current_span("POST") as outer:
            await http.ask("tools/call", {"name": "now"})
            await http.ask("tools/list", {"_meta": {"traceparent": PARENT}})

    inner, named = spans.named("tools/call now"), spans.named("tools/list")
    assert inner.parent == outer.get_span_context()
    assert inner.links == ()
    assert inner.attributes["network.transport"] == "tcp"
    assert named.parent.span_id == SPAN
    assert [link.context for link in named.links] == [outer.get_span_context()]


def test_the_span_around_it_crosses_to_a_server_of_a_host_on_asyncio(server, spans):
    """The server runs in another thread there, and finds the span of the HTTP request."""
    tracer = spans.provider.get_tracer("test")

    async def main():
        async with over_http(server) as http:
            with tracer.start_as_current_span("POST") as outer:
                await http.ask("tools/call", {"name": "now"}, gone=asyncio.Event())
                meta = {"_meta": {"traceparent": PARENT}}
                await http.ask("tools/list", meta, gone=asyncio.Event())
            return outer.get_span_context()

    outer = asyncio.run(main())

    assert spans.named("tools/call now").parent == outer
    named = spans.named("tools/list")
    assert named.parent.span_id == SPAN
    assert [link.context for link in named.links] == [outer]


class Look(Tool):
    """Remembers the current span before and after it waits, in a task and in a thread."""

    async def call(self, args, ctx: Context):
        found = ctx.server.found = [trace.get_current_span()]
        await trio.lowlevel.checkpoint()

        async def task():
            found.append(trace.get_current_span())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
        found.append(trace.get_current_span())


class LookInThread(Tool):
    """The same in a sync handler."""

    def call(self, args, ctx: Context):
        ctx.server.found = [trace.get_current_span()]


class LookInline(Tool, inline=True):
    """The same where the request is read."""

    def call(self, args, ctx: Context):
        ctx.server.found = [trace.get_current_span()]


@pytest.mark.parametrize("name", ["look", "look_in_thread", "look_inline"])
async def test_handlers_see_the_span(server, spans, name):
    """The span is the current one wherever the handler runs, and nowhere else."""
    server.tools.add(Look, LookInThread, LookInline)
    async with connect(server) as client:
        await client.call_tool(name)
        here = trace.get_current_span()

    ids = {span.get_span_context().span_id for span in server.found}
    assert ids == {spans.named(f"tools/call {name}").context.span_id}
    assert not here.get_span_context().is_valid


@pytest.mark.parametrize(
    ("call", "name", "error", "status"),
    [
        (
            ("tools/call", {"name": "fail", "arguments": {"how": "tool"}}),
            "fail",
            "tool_error",
            None,
        ),
        (("tools/call", {"name": "fail", "arguments": {"how": "time"}}), "fail", "timeout", None),
        (
            ("tools/call", {"name": "fail", "arguments": {"how": "error"}}),
            "fail",
            "-32099",
            "-32099",
        ),
        (("tools/call", {"name": "made up"}), "", "-32602", "-32602"),
    ],
)
async def test_failures(server, spans, call, name, error, status, autojump_clock):
    """A failed tool is an error, too; unknown names are not in names of spans."""
    async with connect(server) as client:
        try:
            await client.request(*call)
        except McpError:
            assert status is not None

    span = spans.named(f"tools/call {name}".strip())
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == error
    assert span.attributes.get("rpc.response.status_code") == status


async def test_methods_that_clients_make_up(server, spans):
    """They share one name."""
    async with connect(server) as client:
        with pytest.raises(McpError):
            await client.request("made/up", {})

    assert spans.named("unknown method").attributes["mcp.method.name"] == "made/up"


async def test_resources_are_in_an_attribute(server, spans):
    """A URI has too many values for a name."""
    async with connect(server) as client:
        await client.read_resource("db://users/schema")

    assert spans.named("resources/read").attributes["mcp.resource.uri"] == "db://users/schema"


async def test_questions_are_below_the_call(server, spans):
    """A question is a client span below the span of its handler."""
    async with connect(server, version="2025-11-25", handler=Person()) as client:
        await client.call_tool("ask")

    call, question = spans.named("tools/call ask"), spans.named("elicitation/create")
    assert question.kind is SpanKind.CLIENT
    assert question.parent.span_id == call.context.span_id
    assert "notifications/initialized" not in spans.names


@pytest.mark.parametrize("wanted", [False, True])
async def test_baggage_only_if_wanted(server, wanted):
    """Baggage of a client is passed to other services only if the author allows it."""

    class Carry(Tool):
        async def call(self, args, ctx: Context):
            ctx.server.found = baggage.get_baggage("user", context.get_current())

    spans = Spans()
    server.tools.add(Carry)
    server.telemetry.add(Tracing(tracer_provider=spans.provider, baggage=wanted))
    async with connect(server) as client:
        await client.request("tools/call", {"name": "carry", "_meta": {"baggage": "user=ada"}})

    assert server.found == ("ada" if wanted else None)


async def test_a_task_has_a_trace_of_its_own(server, spans):
    """It is linked to the request that created it; its handler sees its span."""
    server.tools.add(Job)
    async with connect(server, capabilities=KNOWS) as client:
        await begin(client, "job", how="ok")
        await trio.testing.wait_all_tasks_blocked()

    request, task = spans.named("tools/call job"), spans.named("task job")
    assert task.parent is None
    assert task.context.trace_id != request.context.trace_id
    assert [link.context for link in task.links] == [request.context]
    assert task.kind is SpanKind.INTERNAL
    assert task.attributes["gen_ai.tool.name"] == "job"
    assert task.attributes["noizu_mcp.outcome"] == "ok"
    assert server.seen["ok"] == task.context
    assert task.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(("how", "error"), [("crash", "tool_error"), ("time", "timeout")])
async def test_a_task_that_fails(server, spans, how, error, autojump_clock):
    """Its span has the error, though the request was answered."""
    server.tools.add(Job)
    async with connect(server, capabilities=KNOWS) as client:
        await begin(client, "job", how=how)
        await trio.sleep(60)

    assert spans.named("tools/call job").status.status_code is StatusCode.UNSET
    task = spans.named("task job")
    assert task.status.status_code is StatusCode.ERROR
    assert task.attributes["error.type"] == error


async def test_what_began_before(server):
    """A request that began before the listener has no span."""
    spans = Spans()
    tracing = Tracing(tracer_provider=spans.provider)
    tracing(Event("stop", 1, "ping", "stdio", outcome="ok"))
    with tracing.around(Event("start", 1, "ping", "stdio")):
        assert not trace.get_current_span().get_span_context().is_valid

    assert spans.names == []


def test_without_the_library(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.telemetry._spans", None)

    with pytest.raises(ImportError, match=r"pip install 'noizu-mcp\[otel\]'"):
        Tracing()


async def test_coerced_calls(server, spans):
    """The span of a call says whether text stood for other types."""

    def count(n: int) -> str:
        return "." * n

    server.tools.add(count)
    async with connect(server) as client:
        await client.call_tool("count", {"n": "3"})

    assert spans.named("tools/call count").attributes["noizu_mcp.coerced"] is True


async def test_a_denied_call(server, spans):
    """Its span has the outcome; a decision has no span of its own."""
    server.policies.replace([DenyTools("fail")])
    async with connect(server) as client:
        await client.call_tool("fail", {"how": "tool"})

    span = spans.named("tools/call fail")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "denied"
    assert span.attributes["noizu_mcp.outcome"] == "denied"
