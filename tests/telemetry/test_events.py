"""Every request has a start and one end, in both eras, with their attributes."""

import json
import logging
from contextlib import contextmanager, suppress
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import (
    ClientHandler,
    Context,
    Decline,
    DefinitionError,
    Limits,
    McpError,
    Server,
    Tool,
    connect,
)
from noizu_mcp.auth import BearerAuth, StaticVerifier
from noizu_mcp.events import MAX_TEXT, Event, EventEmitter, Listener, Telemetry
from noizu_mcp.types import Principal

from .kit import KNOWS, META, STATELESS, App, Echo, Heard, Job, begin, over_http, raw, soon

ERAS = pytest.mark.parametrize("version", ["2025-11-25", STATELESS])


def count(n: int) -> str:
    return "." * n


class Person(ClientHandler):
    """Answers, refuses or thinks for ever."""

    def __init__(self, answer=None):
        self.answer = answer
        self.asked = trio.Event()

    async def handle_elicitation(self, params):
        self.asked.set()
        if self.answer is None:
            await trio.sleep_forever()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@ERAS
async def test_a_call(server, heard, version):
    """Both events have tool, revision and request; the end has the outcome."""
    async with connect(server, version=version) as client:
        await client.call_tool("echo", {"text": "hi"})

    (start,) = heard.of("tools/call", "start")
    end = heard.end("tools/call")
    assert (start.name, start.target, start.revision) == ("echo", "echo", version)
    assert (start.transport, start.outbound, start.parent) == ("memory", False, None)
    assert (start.duration, start.outcome, start.bytes_out) == (None, None, None)
    assert (end.kind, end.outcome, end.code, end.name) == ("stop", "ok", None, "echo")
    assert end.request_id == start.request_id is not None
    assert end.duration >= 0


async def test_sizes_are_measured_on_the_wire(server, heard):
    """Bytes in and out are the sizes on the wire."""
    call = {"name": "echo", "arguments": {"text": "ß"}, "_meta": META}
    request = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": call}
    async with raw(server) as (send, receive):
        send(request)
        answer = await receive()

    end = heard.end("tools/call")
    assert (end.bytes_in, end.bytes_out) == (len(json.dumps(request).encode()), len(answer))


@ERAS
@pytest.mark.parametrize(
    ("how", "kind", "outcome", "code"),
    [
        ("tool", "error", "tool_error", None),
        ("error", "error", "error", -32099),
        ("crash", "error", "crashed", None),
        ("time", "error", "timed_out", None),
    ],
)
async def test_ends_of_tools(server, heard, version, how, kind, outcome, code, autojump_clock):
    """A failed tool, an error, a crash and a timeout have different outcomes."""
    async with connect(server, version=version) as client:
        with suppress(McpError):
            await client.call_tool("fail", {"how": how})

    end = heard.end("tools/call")
    assert (end.kind, end.outcome, end.code) == (kind, outcome, code)


@pytest.mark.parametrize(("how", "outcome"), [("crash", "crashed"), ("time", "timed_out")])
async def test_ends_of_prompts(server, heard, how, outcome, autojump_clock):
    """The outcome of a prompt's error distinguishes the causes."""
    async with connect(server) as client:
        with pytest.raises(McpError):
            await client.get_prompt("review", {"how": how})

    end = heard.end("prompts/get")
    assert (end.kind, end.outcome, end.code, end.target) == ("error", outcome, -32603, "review")


async def test_a_result_that_is_no_json():
    """It counts as an error of the server."""

    class Odd(Server, name="odd", version="1"):
        async def list_tools(self, cursor, ctx):
            return [{"name": "x", "inputSchema": {"type": "object"}, "_meta": {"x": float("nan")}}]

    server, heard = Odd(), Heard()
    server.telemetry.add(heard)
    async with connect(server, version=STATELESS) as client:
        with pytest.raises(McpError, match="Result is not JSON"):
            await client.request("tools/list", {})

    assert heard.end("tools/list").outcome == "crashed"


async def test_an_unknown_tool(server, heard):
    """It has no registration; its name is shortened."""
    async with connect(server) as client:
        with pytest.raises(McpError):
            await client.call_tool("x" * 1000)

    end = heard.end("tools/call")
    assert (end.name, end.target, end.code) == ("x" * MAX_TEXT, None, -32602)


@pytest.mark.parametrize(
    ("method", "params", "name", "target"),
    [
        ("resources/read", {"uri": "config://app"}, "config://app", "config://app"),
        (
            "resources/read",
            {"uri": "db://users/schema"},
            "db://users/schema",
            "db://{table}/schema",
        ),
        ("resources/read", {"uri": "x:none"}, "x:none", None),
        ("prompts/get", {"name": "review"}, "review", "review"),
        ("prompts/get", {"name": "none"}, "none", None),
        ("tools/list", {"name": "an argument"}, None, None),
        ("tools/call", {"name": 1}, None, None),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "review"}},
            "review",
            "review",
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "db://{table}/schema"}},
            "db://{table}/schema",
            "db://{table}/schema",
        ),
        ("completion/complete", {"ref": {"name": "none"}}, "none", None),
        ("completion/complete", {"ref": "none"}, None, None),
    ],
)
async def test_what_it_is_about(server, heard, method, params, name, target):
    """The event has the sent name, and the registered one."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    async with raw(server) as (send, receive):
        send(request)
        await receive()

    end = heard.end(method)
    assert (end.name, end.target) == (name, target)


async def test_nothing_of_arguments_and_results(server, heard):
    """Arguments, results and texts of exceptions are in no event."""
    secret = "hunter2-ß"
    async with connect(server) as client:
        await client.call_tool("echo", {"text": secret})
        await client.call_tool("echo", {"text": secret, secret: secret})
        await client.call_tool("fail", {"how": secret})

    assert len(heard.of("tools/call")) == 6
    assert secret not in repr(heard)
    assert "a secret" not in repr(heard)


async def test_a_client_that_cancels(server, heard):
    """Its request ends as cancelled, once."""
    async with connect(server) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "hang")
        await soon(server.hanging)
        nursery.cancel_scope.cancel()

    assert heard.end("tools/call").kind == "cancelled"


async def test_a_connection_that_is_lost(server, heard):
    """A request that runs when its server is cancelled has an end."""
    with trio.CancelScope() as scope:
        async with raw(server) as (send, _):
            params = {"name": "hang", "_meta": META}
            send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            await soon(server.hanging)
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert heard.end("tools/call").outcome == "cancelled"


@pytest.mark.parametrize("transport", ["pipe", "http"])
async def test_a_cancelled_request_of_a_cancelled_task(server, heard, transport):
    """If its task is cancelled, too, while its handler cleans up, it has one end."""
    params = {"name": "tidy", "_meta": META}
    with trio.CancelScope() as host:
        if transport == "http":
            gone = trio.Event()
            async with over_http(server) as http, trio.open_nursery() as nursery:
                nursery.start_soon(partial(http.ask, "tools/call", params, gone=gone))
                await soon(server.hanging)
                gone.set()
                await soon(server.cleaning)
                host.cancel()
                server.clean.set()
        else:
            async with raw(server) as (send, _):
                send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
                await soon(server.hanging)
                notice = {"method": "notifications/cancelled", "params": {"requestId": 1}}
                send({"jsonrpc": "2.0", **notice})
                await soon(server.cleaning)
                host.cancel()
                server.clean.set()
                await trio.lowlevel.checkpoint()

    assert heard.end("tools/call").outcome == "cancelled"


async def test_only_what_is_watched_has_an_end(server):
    """A request that began before any listener has no end event."""
    heard = Heard()
    with trio.CancelScope() as scope:
        async with raw(server) as (send, _):
            params = {"name": "hang", "_meta": META}
            send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            await soon(server.hanging)
            server.telemetry.add(heard)
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert heard == []


async def test_listen_requests_end_with_their_connection(server, heard):
    """A listen request has its start at once, and its end with the connection."""
    async with connect(server, version=STATELESS) as client:
        async with raw(server) as (send, receive):
            params = {"notifications": {"toolsListChanged": True}, "_meta": META}
            send({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params})
            await receive()
            assert [e.kind for e in heard.of("subscriptions/listen")] == ["start"]
        assert client.protocol_version == STATELESS

    assert heard.end("subscriptions/listen").outcome == "ok"


async def test_notices_both_ways(server, heard):
    """A notification is one event, with its direction and its size."""
    async with connect(server, version="2025-11-25") as client:
        await client.call_tool("talk")

    (ready,) = heard.of("notifications/initialized")
    (said,) = heard.of("notifications/message")
    assert (ready.kind, ready.outbound, ready.bytes_out) == ("notice", False, None)
    assert (said.kind, said.outbound, said.bytes_in) == ("notice", True, None)
    assert ready.bytes_in > 40
    assert said.bytes_out > 40


@pytest.mark.parametrize(
    ("message", "method", "code"),
    [
        (b"{", "", -32700),
        ({"jsonrpc": "2.0", "id": 1, "method": "no/such"}, "no/such", -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {"_meta": META}}, None, -32601),
    ],
)
async def test_what_is_refused(server, heard, message, method, code):
    """A request that reaches no handler has a start and an end, too."""
    async with raw(server) as (send, receive):
        send(message)
        answer = json.loads(await receive())

    start, end = heard
    assert (start.kind, end.kind, end.outcome, end.code) == ("start", "error", "error", code)
    assert end.key == start.key
    assert answer["error"]["code"] == code
    assert start.method == ("no/such" if method is None else method)


async def test_what_no_one_can_answer(server, heard):
    """A response without a request causes no event of a request."""
    async with raw(server) as (send, receive):
        send(b'{"jsonrpc":"2.0","id":7,"result":3}')
        send({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}})
        await receive()

    assert {e.method for e in heard} == {"server/discover"}


async def test_a_message_over_the_limit(server, heard):
    """Its size is unknown, as its bytes were dropped."""
    big = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y" * 2000}}
    async with raw(server, Limits(message_size=1000)) as (send, receive):
        send(big)
        await receive()

    end = heard[-1]
    assert (end.code, end.bytes_in) == (-32600, None)


async def test_messages_of_an_array(server, heard):
    """Each message of an array has its own events; only the array has a size (2025-03-26)."""
    info = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}}
    async with raw(server) as (send, receive):
        send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info})
        await receive()
        send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        send(
            [
                {"jsonrpc": "2.0", "id": 1, "method": "ping"},
                {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
                {"jsonrpc": "2.0", "id": 2, "method": "no/such"},
            ]
        )
        await receive()

    assert heard.end("ping").bytes_in is None
    assert heard.end("no/such").code == -32601
    assert [e.bytes_in for e in heard.of("notifications/roots/list_changed")] == [None]


@pytest.mark.parametrize(
    ("answer", "kind", "outcome", "code"),
    [
        (Decline(), "stop", "ok", None),
        (McpError(-1, "no"), "error", "error", -1),
        (None, "error", "timed_out", None),
    ],
)
async def test_questions_to_the_client(server, heard, answer, kind, outcome, code, autojump_clock):
    """A question has its own start and end, with the asking request as its parent."""
    async with connect(server, version="2025-11-25", handler=Person(answer), timeout=900) as client:
        with suppress(McpError):
            await client.call_tool("ask")

    end, call = heard.end("elicitation/create"), heard.end("tools/call")
    assert (end.kind, end.outcome, end.code) == (kind, outcome, code)
    assert (end.outbound, end.parent, end.name) == (True, call.key, None)
    assert end.key != call.key


async def test_a_question_of_a_cancelled_call(server, heard):
    """Cancelling the call cancels its question, and notifies the client."""
    person = Person()
    async with (
        connect(server, version="2025-11-25", handler=person) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.call_tool, "ask")
        await soon(person.asked)
        nursery.cancel_scope.cancel()

    assert heard.end("elicitation/create").outcome == "cancelled"
    assert heard.end("tools/call").outcome == "cancelled"
    assert [e.outbound for e in heard.of("notifications/cancelled")] == [False, True]


async def test_a_question_in_rounds(server, heard):
    """On 2026-07-28 the first request ends with the question, the second with the answer."""
    async with connect(server, version=STATELESS, handler=Person(Decline())) as client:
        await client.call_tool("ask")

    ends = heard.of("tools/call", "stop")
    assert [end.outcome for end in ends] == ["input_required", "ok"]


@pytest.mark.parametrize(
    ("how", "kind", "outcome", "code"),
    [
        ("ok", "stop", "ok", None),
        ("tool", "error", "tool_error", None),
        ("error", "error", "error", -32099),
        ("crash", "error", "crashed", None),
        ("time", "error", "timed_out", None),
        ("cancel", "cancelled", "cancelled", None),
        ("wait", "cancelled", "cancelled", None),
    ],
)
async def test_ends_of_tasks(server, heard, how, kind, outcome, code, autojump_clock):
    """A task has its own start and end, in addition to its request."""
    server.tools.add(Job)
    async with connect(server, version=STATELESS, capabilities=KNOWS) as client:
        task = await begin(client, "job", how="wait" if how == "cancel" else how)
        if how == "cancel":
            await client.request("tasks/cancel", {"taskId": task.task_id})
        if how != "wait":
            await trio.sleep(60)

    start, end = [event for event in heard if event.task]
    (request,) = [event for event in heard.of("tools/call", "stop") if not event.task]
    assert (start.kind, start.parent) == ("start", request.key)
    assert (end.kind, end.outcome, end.code, end.key) == (kind, outcome, code, start.key)
    assert (end.method, end.target, end.revision) == ("tools/call", "job", STATELESS)
    assert end.key != request.key
    assert end.duration == pytest.approx(0, abs=1)  # the clock of the test runs ahead
    assert request.outcome == "ok"
    assert task.task_id not in repr(heard)


async def test_a_task_from_before_the_listener(server, autojump_clock):
    """It has no end, either."""
    heard = Heard()
    server.tools.add(Job)
    async with connect(server, capabilities=KNOWS) as client:
        await begin(client, "job", how="time")
        server.telemetry.add(heard)
        await trio.sleep(60)

    assert heard == []


async def test_a_task_that_lives_too_long(heard, autojump_clock):
    """A task without its own timeout ends with its lifetime, and is then dropped."""

    class Endless(Tool, task="required"):
        async def call(self):
            await trio.sleep_forever()

    class Brief(Server, name="brief", version="1", task_ttl=10.0):
        tools = [Endless]
        telemetry = [heard]

    server = Brief()
    async with connect(server, capabilities=KNOWS) as client:
        await begin(client, "endless")
        await trio.sleep(20)
        assert server.telemetry.tasks_held() == []

    assert [event.outcome for event in heard if event.task] == [None, "timed_out"]


async def test_the_work_of_a_task_is_surrounded(server):
    """The work of a task is surrounded once by the context of a listener."""
    around = Around()

    class Look(Tool, task="required"):
        async def call(self):
            await trio.lowlevel.checkpoint()

    server.telemetry.add(around)
    server.tools.add(Look)
    async with connect(server, version=STATELESS, capabilities=KNOWS) as client:
        await begin(client, "look")
        await trio.testing.wait_all_tasks_blocked()

    pairs = ["+tools/call", "-tools/call"] * 2  # the request is answered at once
    assert [said for said in around.said if "tools/call" in said] == pairs


async def test_tasks_are_counted_while_they_are_held(server, autojump_clock):
    """Running and kept tasks count, until they or their connection are gone."""
    server.tools.add(Job)
    async with connect(server, capabilities=KNOWS) as client:
        await begin(client, "job", how="ok")
        await begin(client, "job", how="wait")
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(server.telemetry.tasks_held()) == ["completed", "working"]

    assert server.telemetry.tasks_held() == []


@ERAS
async def test_what_is_refused_says_where(server, heard, version):
    """Errors before a handler, and notices, have revision and session, too."""
    async with connect(server, version=version) as client:
        await client.call_tool("talk")
        with pytest.raises(McpError):
            await client.request("bogus/x", {})
        await client.notify("notifications/foo", {})
        await client.request("ping" if version != STATELESS else "server/discover", {})

    (call,) = heard.of("tools/call", "start")
    places = {(e.method, e.revision, e.session) for e in heard}
    wanted = {"bogus/x", "notifications/foo"}
    wanted |= set() if version == STATELESS else {"notifications/message"}
    assert (call.session is None) == (version == STATELESS)
    assert {(method, version, call.session) for method in wanted} <= places


async def test_progress_says_where(server, heard):
    """A server's notice on 2026-07-28 has the revision of its request."""

    class Step(Tool):
        async def call(self, args, ctx: Context):
            await ctx.report_progress(1)

    server.tools.add(Step)
    params = {"name": "step", "_meta": {**META, "progressToken": 1}}
    async with raw(server) as (send, receive):
        send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        await receive()
        await receive()

    (said,) = heard.of("notifications/progress")
    assert (said.outbound, said.revision, said.session) == (True, STATELESS, None)


@pytest.mark.parametrize(
    ("message", "revision"),
    [
        (b"{", None),
        ({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}, None),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping2"}, None),
        ({"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {"_meta": META}}, STATELESS),
        (
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "server/discover",
                "params": {"_meta": {**META, next(iter(META)): "2099-01-01"}},
            },
            None,
        ),
    ],
)
async def test_what_comes_before_anything_else(server, heard, message, revision):
    """The revision is set only if it is known, and served."""
    async with raw(server) as (send, _):
        send(message)
        await trio.testing.wait_all_tasks_blocked()

    assert {(e.revision, e.session) for e in heard} == {(revision, None)}


async def test_sessions_have_names_and_are_counted(server, heard):
    """Each connection with sessions has its own name; others have no name."""
    for _ in range(2):
        async with connect(server, version="2025-11-25") as client:
            await client.call_tool("now")
            assert len(server.telemetry.sessions) == 1
    async with connect(server, version=STATELESS) as client:
        await client.call_tool("now")
        assert len(server.telemetry.sessions) == 0

    names = [event.session for event in heard.of("tools/call", "start")]
    assert names[2] is None
    assert len({*names}) == 3
    assert {e.session for e in heard.of("initialize")} == set(names[:2])


async def test_trace_context(server, heard):
    """Trace context is passed on if it is a string within limits."""
    trace = {"traceparent": "00-aa-bb-01", "tracestate": "x" * 9000, "baggage": 3, "other": "x"}
    async with connect(server, version=STATELESS) as client:
        await client.request("tools/call", {"name": "now", "_meta": trace})

    assert heard.end("tools/call").trace == {"traceparent": "00-aa-bb-01"}


async def test_listeners_come_and_go(server):
    """They can be added and removed during requests."""
    heard = Heard()
    async with connect(server) as client:
        await client.call_tool("now")
        server.telemetry.add(heard)
        await client.call_tool("now")
        server.telemetry.remove(heard)
        await client.call_tool("now")

    assert [e.kind for e in heard] == ["start", "stop"]
    assert server.telemetry.listeners == []
    assert repr(server.telemetry) == "<Telemetry []>"
    with pytest.raises(ValueError, match="not in list"):
        server.telemetry.remove(heard)


async def test_listeners_of_a_class():
    """They are declared in the class, and listen to each instance."""
    heard = Heard()

    class Small(Server, name="small", version="1"):
        tools = [Echo]
        telemetry = [heard]

    async with connect(Small) as client:
        await client.call_tool("echo", {"text": "x"})

    assert isinstance(Small().telemetry, Telemetry)
    assert heard.end("tools/call").outcome == "ok"


def test_what_is_no_listener():
    """A class, and an object that is not callable, are refused in the definition."""
    with pytest.raises(DefinitionError) as raised:

        class Small(Server, name="small", version="1"):
            telemetry = [Heard, 3]

    text = str(raised.value)
    assert "Small.telemetry[0]: must be an instance: write Heard(…)" in text
    assert "Small.telemetry[1]: must be callable with an Event, got 3" in text
    with pytest.raises(TypeError, match="a listener must be an instance"):
        Telemetry().add(Heard)


async def listening(event):
    """A listener that would have to be awaited."""


class Listening(Listener):
    async def __call__(self, event):
        """Return a coroutine, which would have to be awaited."""


@pytest.mark.parametrize("listener", [listening, partial(listening), Listening()])
def test_listeners_that_would_have_to_be_awaited(listener):
    """They are refused where they are declared, and where they are added."""
    with pytest.raises(
        DefinitionError, match=r"telemetry\[0\]: must be a plain function, called in"
    ):

        class Small(Server, name="small", version="1"):
            telemetry = [listener]

    with pytest.raises(TypeError, match="a listener must be a plain function"):
        Telemetry().add(listener)


async def test_a_listener_that_fails(server, caplog):
    """The exception is logged; the request goes on, and the next listener is called."""
    heard = Heard()

    def broken(event):
        raise SystemExit(1)

    server.telemetry.add(broken)
    server.telemetry.add(heard)
    async with connect(server) as client:
        result = await client.call_tool("echo", {"text": "hi"})

    assert result.content[0].text == "hi"
    assert heard.end("tools/call").outcome == "ok"
    assert "broken" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


class Around(Listener):
    """Records when it is entered and left."""

    def __init__(self, fails=""):
        self.said = []
        self.fails = fails

    @contextmanager
    def around(self, event):
        if self.fails == "enter":
            raise RuntimeError("no entry")
        self.said.append(f"+{event.method}")
        yield
        self.said.append(f"-{event.method}")
        if self.fails == "exit":
            raise RuntimeError("no exit")


@pytest.mark.parametrize("fails", ["", "enter", "exit"])
async def test_what_surrounds_handlers(server, caplog, fails):
    """It is entered for a request and for its handler; a failure is only logged."""
    around, quiet = Around(fails), Listener()
    server.telemetry.add(around)
    server.telemetry.add(quiet)
    async with connect(server, version=STATELESS) as client:
        around.said.clear()
        with pytest.raises(McpError):
            await client.call_tool("fail", {"how": "error"})

    pairs = ["+tools/call", "-tools/call"] * 2
    assert around.said == ([] if fails == "enter" else pairs)
    assert ("RuntimeError" in caplog.text) == bool(fails)


async def test_a_cancelled_handler_is_left_too(server):
    """The context around a handler is left when the handler is cancelled."""
    around = Around()
    server.telemetry.add(around)
    async with connect(server, version=STATELESS) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "hang")
        await soon(server.hanging)
        nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()

    assert around.said.count("+tools/call") == around.said.count("-tools/call") == 2


def test_the_base_listener_ignores_everything():
    """The base class ignores events, and surrounds nothing."""
    event = Event("start", 1, "ping", "memory")

    Listener()(event)
    with Listener().around(event):
        pass


async def test_nothing_runs_without_listeners(server, monkeypatch):
    """Without listeners no event is made."""
    monkeypatch.setattr(EventEmitter, "__init__", None)
    for name in ("emit", "around"):
        monkeypatch.setattr(Telemetry, name, None)

    async with connect(server, version="2025-11-25") as client:
        result = await client.call_tool("talk")

    assert not result.is_error


# HTTP


async def test_a_call_over_http(server, heard):
    """The size is that of the body; the event has the principal."""
    async with over_http(server) as http:
        status, _, body = await http.ask("tools/call", {"name": "now"})

    end = heard.end("tools/call")
    assert status == 200
    assert (end.transport, end.outcome, end.session, end.principal) == ("http", "ok", None, None)
    assert end.bytes_out == len(body)
    assert end.bytes_in > 100


async def test_progress_over_http_says_where(server, heard):
    """A server's notice has the transport and the revision of its request, and no session."""

    class Step(Tool):
        async def call(self, args, ctx: Context):
            await ctx.report_progress(1)

    server.tools.add(Step)
    async with over_http(server) as http:
        await http.ask("tools/call", {"name": "step", "_meta": {"progressToken": 1}})

    (said,) = heard.of("notifications/progress")
    assert (said.outbound, said.transport, said.revision) == (True, "http", STATELESS)
    assert said.session is None


async def test_the_principal(server, heard):
    """Events have the authenticated principal."""
    ada = Principal(subject="ada", issuer="https://issuer")
    auth = BearerAuth(
        StaticVerifier({"t0ken": ada}),
        resource="http://127.0.0.1/mcp",
        authorization_servers=["https://issuer"],
    )
    async with over_http(server, auth=auth) as http:
        await http.ask("tools/call", {"name": "now"}, authorization="Bearer t0ken")

    assert heard.end("tools/call").principal == ada.key


async def test_a_session_over_http(server, heard):
    """The id of a session, which is secret, is in no event."""
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    async with over_http(server) as http:
        _, headers, _ = await http(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
        )
        session = headers[b"mcp-session-id"].decode()
        post = partial(http, mcp_session_id=session)
        await post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert len(server.telemetry.sessions) == 1

    assert [e.bytes_in for e in heard.of("notifications/initialized")] == [57]
    assert heard.end("ping").session == heard.end("initialize").session is not None
    assert session not in repr(heard)
    assert len(server.telemetry.sessions) == 0


async def test_what_http_refuses(server, heard):
    """An invalid body, and an unsupported revision, cause events."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with over_http(server) as http:
        await http(b"{")
        await http(ping, mcp_protocol_version="1999-01-01")

    assert [e.code for e in heard if e.kind == "error"] == [-32700, -32022]
    assert [e.transport for e in heard] == ["http"] * 4


async def test_what_http_refuses_says_where(server, heard):
    """On 2026-07-28 the revision comes from the headers, if not from the body."""
    post = {"mcp_protocol_version": STATELESS, "mcp_method": "tools/list"}
    async with over_http(server) as http:
        await http({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": META}}, **post)
        await http({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **post)
        await http({"jsonrpc": "2.0", "method": "notifications/foo"}, **post)
        await http(b"{", **post)

    assert [e.code for e in heard if e.kind == "error"] == [-32020, -32602, -32700]
    assert {(e.revision, e.session) for e in heard} == {(STATELESS, None)}


async def test_what_http_refuses_unheard(server):
    """The response is the same without listeners."""
    async with over_http(server) as http:
        status, _, _ = await http(b"{")

    assert status == 400


async def test_a_client_that_leaves(server, heard):
    """Closing its HTTP request cancels a call of 2026-07-28."""
    gone = trio.Event()
    async with over_http(server) as http, trio.open_nursery() as nursery:
        nursery.start_soon(partial(http.ask, "tools/call", {"name": "hang"}, gone=gone))
        await soon(server.hanging)
        gone.set()

    assert heard.end("tools/call").outcome == "cancelled"


async def test_streams_are_counted(server):
    """A streamed response counts while it is open."""
    gone = trio.Event()
    listen = {"notifications": {"toolsListChanged": True}}
    async with over_http(server) as http, trio.open_nursery() as nursery:
        nursery.start_soon(partial(http.ask, "subscriptions/listen", listen, gone=gone))
        await trio.testing.wait_all_tasks_blocked()
        assert len(server.telemetry.streams) == 1
        gone.set()
        await trio.testing.wait_all_tasks_blocked()
        assert len(server.telemetry.streams) == 0


async def test_a_session_that_ends_meanwhile(server, heard):
    """A request that runs when its session is deleted ends then, once."""
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hang"}}
    async with over_http(server) as http, trio.open_nursery() as nursery:
        _, headers, _ = await http(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
        )
        session = headers[b"mcp-session-id"].decode()
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await http(ready, mcp_session_id=session)
        nursery.start_soon(partial(http, call, mcp_session_id=session))
        await soon(server.hanging)
        await http(method="DELETE", mcp_session_id=session)
        assert heard.end("tools/call").kind == "cancelled"
        nursery.cancel_scope.cancel()

    assert heard.end("tools/call").kind == "cancelled"


async def test_a_notification_of_2026_over_http(server, heard):
    """It has no meaning there, and is an event like any other."""
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with over_http(server) as http:
        status, _, _ = await http(body, mcp_protocol_version=STATELESS)

    (notice,) = heard
    assert status == 202
    assert (notice.kind, notice.method, notice.transport) == (
        "notice",
        "notifications/cancelled",
        "http",
    )
    assert notice.bytes_in == len(json.dumps(body))


CALLS = [
    {"name": "now"},
    {"name": "echo", "arguments": {"text": "hi"}},
    {"name": "echo", "arguments": {"text": 3}},
    {"name": "fail", "arguments": {"how": "tool"}},
    {"name": "fail", "arguments": {"how": "crash"}},
    {"name": "ask"},
    {"name": "hang"},
    {"name": "none"},
    {},
]
MESSAGES = st.one_of(
    st.sampled_from(CALLS).map(lambda params: ("tools/call", params)),
    st.sampled_from([("tools/list", {}), ("no/such", {}), ("server/discover", {})]),
    st.just(("subscriptions/listen", {"notifications": {"toolsListChanged": True}})),
    st.integers(0, 8).map(lambda id_: ("notifications/cancelled", {"requestId": id_})),
    st.sampled_from([b"{", b"[]", b"{}", b"3"]),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(MESSAGES, max_size=12))
def test_every_start_has_one_end(messages):
    """Any messages in any order cause exactly one end for each start."""
    heard = Heard()

    async def speak():
        server = App()
        server.telemetry.add(heard)
        async with raw(server) as (send, _):
            for id_, message in enumerate(messages):
                if type(message) is bytes:
                    send(message)
                    continue
                method, params = message
                request = {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": META}}
                if not method.startswith("notifications/"):
                    request["id"] = id_
                send(request)
            await trio.testing.wait_all_tasks_blocked()

    trio.run(speak)
    running = set()
    for event in heard:
        if event.kind == "start":
            assert event.key not in running
            running.add(event.key)
        elif event.kind != "notice":
            running.remove(event.key)
    assert running == set()
    asked = [m for m in messages if type(m) is bytes or not m[0].startswith("notifications/")]
    assert len([e for e in heard if e.kind == "start"]) == len(asked)


@ERAS
async def test_coerced_calls(server, heard, version):
    """The end of a call says whether text stood for other types."""
    server.tools.add(count)
    async with connect(server, version=version) as client:
        await client.call_tool("count", {"n": 3})
        await client.call_tool("count", {"n": "3"})
        await client.call_tool("count", {"n": "three"})

    assert [end.coerced for end in heard.of("tools/call", "stop")] == [False, True]
    assert [end.coerced for end in heard.of("tools/call", "error")] == [False]
    assert not any(start.coerced for start in heard.of("tools/call", "start"))
