"""Nested calls in listeners, spans, metrics and audits."""

from contextlib import suppress

import pytest
import trio
import trio.testing
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, get_tracer

from noizu_mcp import Context, InputRequired, McpError, Mount, Server, Toolkit, connect, mcp
from noizu_mcp.policies import AuditLog, DenyTools
from noizu_mcp.telemetry import Metrics, Tracing
from noizu_mcp.types import Principal, RequireScopes

from .kit import KNOWS, STATELESS, begin

SESSION = "2025-11-25"
VERSIONS = [SESSION, STATELESS]


class Kit(Toolkit):
    @mcp
    async def outer(self, ctx: Context, tool: str = "middle") -> str:
        return (await ctx.call_tool(tool)).text

    @mcp
    async def middle(self, ctx: Context) -> str:
        return (await ctx.call_tool("inner", {"number": 1})).text

    @mcp
    async def inner(self, number: int = 0) -> int:
        return number

    @mcp(coerce=True)
    async def texts(self, ctx: Context, number: int = 0) -> str:
        return (await ctx.call_tool("coerced", {"number": "1"})).text

    @mcp(coerce=True)
    async def coerced(self, number: int) -> int:
        return number

    @mcp
    async def shell(self) -> str:
        return "shell"

    @mcp
    async def crashes(self) -> str:
        raise RuntimeError("a secret")

    @mcp
    async def raises(self) -> str:
        raise McpError(-32099, "no")

    @mcp(requires=RequireScopes("admin"))
    async def scoped(self) -> str:
        return "scoped"

    @mcp(timeout=0.01)
    async def slow(self) -> str:
        await trio.sleep_forever()
        return "never"

    @mcp
    async def by_hand(self, ctx: Context):
        return "asked" if ctx.input_responses else InputRequired({}, state="x")

    @mcp
    async def wrong(self, ctx: Context) -> str:
        return (await ctx.call_tool("inner", capability=3)).text

    @mcp(task="optional")
    async def task(self, ctx: Context) -> str:
        return (await ctx.call_tool("inner")).text

    @mcp
    async def waits(self, ctx: Context) -> str:
        ctx.server.waiting.set()
        await trio.sleep_forever()
        return "never"


class App(Server, name="app", version="1", task_poll_interval=0.1):
    tools = [Kit]

    def __init__(self):
        self.waiting = trio.Event()


def heard(server):
    """Return a list that fills with the events of the server."""
    events = []
    server.telemetry.add(events.append)
    return events


def calls(events):
    """Return the ends of all calls of tools: name, outcome, and the name of the outer call."""
    names = {event.key: event.name for event in events}
    return [
        (event.name, event.outcome, names.get(event.parent))
        for event in events
        if event.outcome and event.method == "tools/call"
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_nested_call_has_a_start_and_an_end(version):
    """Its parent is the outer call, at each depth; it has no attributes of a message."""
    server = App()
    events = heard(server)
    async with connect(server, version=version) as client:
        assert (await client.call_tool("outer")).text == "1"
    assert calls(events) == [
        ("inner", "ok", "middle"),
        ("middle", "ok", "outer"),
        ("outer", "ok", None),
    ]
    nested = [event for event in events if event.nested]
    assert [(event.kind, event.name, event.target) for event in nested] == [
        ("start", "middle", "middle"),
        ("start", "inner", "inner"),
        ("stop", "inner", "inner"),
        ("stop", "middle", "middle"),
    ]
    assert {(event.request_id, event.bytes_in, event.bytes_out) for event in nested} == {
        (None, None, None)
    }
    assert all(event.duration >= 0 for event in nested if event.outcome)


@pytest.mark.parametrize(
    ("tool", "outcome", "code"),
    [
        ("shell", "denied", None),
        ("crashes", "crashed", None),
        ("raises", "error", -32099),
        ("scoped", "error", None),
        ("slow", "timed_out", None),
        ("nothing", "error", -32602),
        ("wrong", "crashed", None),
    ],
)
async def test_each_outcome_of_a_nested_call_is_reported(tool, outcome, code, autojump_clock):
    """It has the outcomes of requests."""
    server = App()
    server.policies.replace([DenyTools("shell")])
    events = heard(server)
    async with connect(server, principal=Principal(subject="ada")) as client:
        with suppress(McpError):  # outcomes without a result
            await client.call_tool("outer", {"tool": tool})
    ends = [event for event in events if event.nested and event.outcome]
    assert [(event.name, event.outcome, event.code) for event in ends][-1] == (tool, outcome, code)
    if tool == "wrong":
        assert [(event.name, event.outcome) for event in ends] == [
            ("inner", "crashed"),
            ("wrong", "crashed"),
        ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_nested_call_that_is_cancelled_has_an_end(version):
    """It ends with the request around it."""
    server = App()
    events = heard(server)
    async with connect(server, version=version) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "outer", {"tool": "waits"})
        await server.waiting.wait()
        nursery.cancel_scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(calls(events)) == [("outer", "cancelled", None), ("waits", "cancelled", "outer")]


async def test_a_nested_call_that_asks_by_hand_has_an_end_in_each_round():
    """The first round ends with the question, as the request does."""
    server = App()
    events = heard(server)
    async with connect(server, version=STATELESS) as client:
        await client.request("tools/call", {"name": "outer", "arguments": {"tool": "by_hand"}})
    await trio.testing.wait_all_tasks_blocked()
    assert [(name, outcome) for name, outcome, _ in calls(events)] == [
        ("outer", "input_required"),
        ("by_hand", "input_required"),
    ]


async def test_coerced_arguments_belong_to_the_nested_call():
    """The end of the nested call says so, and not that of the request."""
    server = App()
    async with connect(server) as client:
        assert (await client.call_tool("texts")).text == "1"
        events = heard(server)
        assert (await client.call_tool("texts")).text == "1"
        assert (await client.call_tool("texts", {"number": "1"})).text == "1"
    ends = [(event.name, event.coerced) for event in events if event.outcome and event.name]
    assert ends == [("coerced", True), ("texts", False), ("coerced", True), ("texts", True)]


async def test_a_call_of_a_task_belongs_to_the_task():
    """Its request has ended."""
    server = App()
    events = heard(server)
    async with connect(server, capabilities=KNOWS) as client:
        await begin(client, "task")
        await trio.testing.wait_all_tasks_blocked()
    (nested,) = [event for event in events if event.nested and event.outcome]
    (ran,) = [event for event in events if event.task and event.outcome]
    assert nested.parent == ran.key


@pytest.mark.parametrize("depth", [0, 1])
async def test_a_mounted_handler_calls_too(depth):
    """Events have the names of the listening server."""
    server = App()
    if depth:
        server = type("Front", (Server,), {"providers": [Mount(server)]}, name="f", version="1")()
    events = heard(server)
    async with connect(server) as client:
        await client.call_tool("outer")
    assert calls(events)[0] == ("inner", "ok", "middle")


async def test_decisions_belong_to_their_call(tmp_path):
    """Each is audited, with the nested call as its parent."""
    server = App()
    server.policies.replace([DenyTools("shell")])
    server.telemetry.add(AuditLog(tmp_path / "audit.jsonl"))
    events = heard(server)
    async with connect(server) as client:
        await client.call_tool("outer")
        await client.call_tool("outer", {"tool": "shell"})
    starts = {event.key: event.name for event in events if event.kind == "start"}
    told = [event for event in events if event.kind == "decision"]
    assert [starts[event.parent] for event in told] == [event.name for event in told]
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert [("shell" in line, "deny" in line) for line in lines] == [
        *[(False, False)] * 4,
        (True, True),
    ]


async def test_a_nested_call_has_a_span_under_that_of_its_caller():
    """A span of the handler may be in between, and inner handlers have child spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = get_tracer("test", tracer_provider=provider)

    class Traced(Toolkit):
        @mcp
        async def outer(self, ctx: Context) -> str:
            with tracer.start_as_current_span("work"):
                return (await ctx.call_tool("inner")).text

        @mcp
        async def inner(self) -> str:
            with tracer.start_as_current_span("query"):
                return "found"

    class Spanned(Server, name="spanned", version="1"):
        tools = [Traced]
        telemetry = [Tracing(tracer_provider=provider)]

    async with connect(Spanned) as client:
        await client.call_tool("outer")
    spans = {span.name: span for span in exporter.get_finished_spans()}
    line = ["query", "tools/call inner", "work", "tools/call outer"]
    assert [spans[name].parent.span_id for name in line[:3]] == [
        spans[name].context.span_id for name in line[1:]
    ]
    inner = spans["tools/call inner"]
    assert inner.kind is SpanKind.INTERNAL
    assert not inner.links
    assert dict(inner.attributes) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": STATELESS,
        "gen_ai.tool.name": "inner",
        "gen_ai.operation.name": "execute_tool",
        "noizu_mcp.outcome": "ok",
    }


async def test_nested_calls_are_counted_apart_from_requests():
    """They are counted by name and outcome."""
    server = App()
    metrics = Metrics(server)
    async with connect(server) as client:
        await client.call_tool("outer")
        await client.call_tool("outer", {"tool": "crashes"})
    value = metrics.registry.get_sample_value
    assert value("mcp_nested_calls_total", {"name": "inner", "outcome": "ok"}) == 1
    assert value("mcp_nested_calls_total", {"name": "crashes", "outcome": "crashed"}) == 1
    of_outer = {"method": "tools/call", "name": "outer", "outcome": "ok"}
    assert value("mcp_requests_total", of_outer) == 2
    assert value("mcp_requests_total", {**of_outer, "name": "inner"}) is None
    assert value("mcp_requests_in_flight", {"method": "tools/call"}) == 0


async def test_lists_of_providers_are_counted():
    """They are counted by provider and kind, beside registrations; nested ones by path."""
    inner = App()
    inner.providers.add(Mount(App(), prefix="deep"))
    front = type(
        "Front",
        (Server,),
        {"tools": [Kit], "providers": [Mount(inner, prefix="m")]},
        name="front",
        version="1",
    )()
    metrics = Metrics(front)
    value = metrics.registry.get_sample_value
    of_mount = {"provider": "Mount(app)", "kind": "tools"}
    async with connect(front) as client:
        assert value("mcp_provided", of_mount) is None  # no list yet
        count = len(await client.list_tools()) / 3
    assert value("mcp_registered", {"kind": "tools"}) == count
    assert value("mcp_provided", of_mount) == 2 * count
    assert value("mcp_provided", {**of_mount, "kind": "prompts"}) is None
    of_inner = {"provider": "Mount(app).Mount(app)", "kind": "tools"}
    assert value("mcp_provided", of_inner) == count
