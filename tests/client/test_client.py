"""Results, errors and notifications of a server in a client, valid and invalid."""

import contextlib
import json
import logging

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import ClientHandler, ConnectionClosed, McpError, ProtocolError, Stdio, connect
from noizu_mcp.engine import single_failure
from noizu_mcp.transports import memory_pair
from noizu_mcp.types import Reference

TOOL = {"name": "t", "inputSchema": {"type": "object"}}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
META = {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "0"}}


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"tools": 5},
        {"tools": [5]},
        {"tools": [{"name": "no schema"}]},
        {"tools": [TOOL], "nextCursor": 5},
        {"tools": [TOOL], "nextCursor": "same"},
    ],
)
async def test_malformed_lists(scripted, page):
    """A malformed page, and pages without end, are a `ProtocolError`."""
    async with scripted() as (client, script):
        script.answers["tools/list"] = lambda _: page
        with pytest.raises(ProtocolError):
            await client.list_tools()


@pytest.mark.parametrize("handler", [ClientHandler, 5])
async def test_an_invalid_handler(handler):
    """A handler must be an instance; above all a class is refused."""
    with pytest.raises(TypeError, match="handler must be an instance of a ClientHandler, not"):
        async with connect(Stdio("nobody-starts-this"), handler=handler):
            pass


async def test_pages_are_walked_to_the_end(scripted):
    """The empty cursor is a cursor; a missing or null one ends the list."""
    pages = [
        {"tools": [TOOL], "nextCursor": ""},
        {"tools": [TOOL], "nextCursor": "b"},
        {"tools": [TOOL], "nextCursor": None},
    ]
    async with scripted({"tools/list": pages}) as (client, script):
        assert len(await client.list_tools()) == 3
        cursors = [each["params"].get("cursor") for each in script.received[1:]]
        assert cursors == [None, "", "b"]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"content": 5},
        {"content": [{"type": "text"}]},
        {"content": [], "_meta": 5},
        {"content": [], "isError": "yes"},
    ],
)
async def test_malformed_results(scripted, answer):
    """A result that does not fit the specification is a `ProtocolError`."""
    async with scripted({"tools/call": answer}) as (client, _):
        with pytest.raises(ProtocolError):
            await client.call_tool("t")


async def test_a_malformed_response_fails_its_request(scripted):
    """A malformed response fails its request, which does not wait for another one."""

    def broken(request):
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": 5}).encode()

    async with scripted({"tools/call": broken}) as (client, _):
        with pytest.raises(McpError):
            await client.call_tool("t")


async def test_requests_of_the_server_are_refused(scripted):
    """Questions that the client did not offer are unknown methods; a ping is answered."""
    async with scripted(version="2025-11-25") as (client, script):
        await script.say(id=1, method="sampling/createMessage", params={})
        await script.say(id=2, method="ping")
        answers = {}
        with trio.fail_after(60):
            while len(answers) < 2:
                await script.arrived.wait()
                answers = {m["id"]: m for m in script.received if "method" not in m}
        await client.notify("notifications/roots/list_changed")
        await script.until("notifications/roots/list_changed")
        assert answers[1]["error"]["code"] == -32601
        assert answers[2]["result"] == {}


async def test_requests_of_a_server_of_2026_07_28_are_ignored(scripted, caplog):
    """They are not answered, each is logged, and the connection stays usable."""
    answers = {"tools/list": {"resultType": "complete", "tools": []}}
    async with scripted(answers) as (client, script):
        await script.say(id=1, method="roots/list")
        await script.say(id=2, method="ping")
        await script.stream.send([b"[]", b"{"])
        assert await client.list_tools() == []
    assert [m for m in script.received if "method" not in m] == []
    assert [r.message.partition(" of the server")[0] for r in caplog.records] == [
        "ignored the request 'roots/list'",
        "ignored the request 'ping'",
        "ignored a malformed message",
        "ignored a malformed message",
    ]


async def test_a_slow_handler_loses_the_oldest_news_only(scripted, caplog):
    """Unhandled notifications are bounded: the oldest are dropped, and the session goes on."""
    seen = []
    go = trio.Event()

    class Slow(ClientHandler):
        async def handle_notification(self, method, params):
            await go.wait()
            seen.append(params)

    caplog.set_level(logging.WARNING, "noizu_mcp")
    async with scripted(handler=Slow()) as (client, script):
        for number in range(1010):
            await script.say(method="notifications/x", params={"n": number})
        await client.ping()
        assert any("the handler is too slow" in record.message for record in caplog.records)
        go.set()
        await trio.testing.wait_all_tasks_blocked()
    numbers = [params["n"] for params in seen]
    assert numbers[-1000:] == list(range(10, 1010))
    # And the notification that the handler had already.
    assert numbers[:-1000] in ([], [0])


RESULTS = {
    "call_tool": ("tools/call", ("t",), {"content": []}),
    "read_resource": ("resources/read", ("a:b",), {"contents": []}),
    "get_prompt": ("prompts/get", ("p",), {"messages": []}),
    "complete": (
        "completion/complete",
        (Reference.prompt("p"), "a", ""),
        {"completion": {"values": []}},
    ),
}


async def test_a_completion_says_what_is_filled_in_already(scripted):
    """The other arguments are sent, if there are any."""
    answer = {"resultType": "complete", "completion": {"values": []}}
    async with scripted({"completion/complete": lambda _: answer}) as (client, script):
        for context in ({"b": "c"}, None):
            await client.complete(Reference.prompt("p"), "a", "", context)
        said = [each["params"].get("context") for each in script.received[1:]]
    assert said == [{"arguments": {"b": "c"}}, None]


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("own", [{}, {"k": 1}])
async def test_the_envelope_is_no_part_of_a_result(scripted, name, own):
    """Members that 2026-07-28 adds to results are removed; the server's own `_meta` stays."""
    method, arguments, members = RESULTS[name]
    envelope = {"resultType": "complete", "_meta": {**META, **own}}
    async with scripted({method: {**members, **envelope}}) as (client, _):
        result = await getattr(client, name)(*arguments)
    assert (result.meta, result.extra) == (own or None, {})


async def test_invalid_acknowledgements(scripted):
    """Only an acknowledgement with the id of the request, in its type, counts."""
    async with scripted({"subscriptions/listen": None}) as (client, script):

        async def acknowledge():
            await script.until("subscriptions/listen")
            id_ = script.received[-1]["id"]
            for meta in (5, {}, {SUBSCRIPTION: [1]}, {SUBSCRIPTION: str(id_)}, {SUBSCRIPTION: 99}):
                await script.say(method=ACKNOWLEDGED, params={"_meta": meta})
            await script.say(method=ACKNOWLEDGED)
            params = {"_meta": {SUBSCRIPTION: id_}, "notifications": 5}
            await script.say(method=ACKNOWLEDGED, params=params)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(acknowledge)
            async with client.listen(tools=True) as agreed:
                assert agreed == {}
        await script.until("notifications/cancelled")


async def test_a_listen_request_that_ends_at_once(scripted):
    """A response without an acknowledgement violates the protocol."""
    async with scripted({"subscriptions/listen": {"resultType": "complete"}}) as (client, _):
        with pytest.raises(ProtocolError, match="without an acknowledgement"), single_failure():
            async with client.listen(tools=True):
                raise AssertionError


async def test_news_of_a_listen_request_that_ended(scripted):
    """A notification that ends the listen request does not end the block."""
    seen = []

    class Handler(ClientHandler):
        async def handle_notification(self, method, params):
            seen.append(method)

    async with scripted({"subscriptions/listen": None}, handler=Handler()) as (client, script):

        async def serve():
            await script.until("subscriptions/listen")
            id_ = script.received[-1]["id"]
            params = {"_meta": {SUBSCRIPTION: id_}, "notifications": {"toolsListChanged": True}}
            await script.say(method=ACKNOWLEDGED, params=params)
            await script.say(method="notifications/cancelled", params={"requestId": id_})
            await script.say(id=id_, result={"resultType": "complete"})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            async with client.listen(tools=True) as agreed:
                assert agreed == {"toolsListChanged": True}
                await client.ping()
    assert seen == ["notifications/cancelled"]


async def test_a_cancelled_request_tells_the_server(scripted):
    """A task that stops waiting for its answer cancels the request at the server."""
    async with scripted({"tools/call": None}) as (client, script):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "t")
            await script.until("tools/call")
            nursery.cancel_scope.cancel()
        await script.until("notifications/cancelled")
        assert script.received[-1]["params"]["reason"] == "cancelled"


async def test_the_end_of_the_block_tells_the_server_of_other_calls(scripted):
    """A call in a task outside of the block is cancelled at the server when the block ends."""

    async def call(client):
        with pytest.raises(ConnectionClosed):
            await client.call_tool("t")

    with trio.fail_after(60):
        connected = scripted({"tools/call": None})
        async with trio.open_nursery() as nursery, connected as (client, script):
            nursery.start_soon(call, client)
            await script.until("tools/call")

    assert script.received[-1]["method"] == "notifications/cancelled"
    assert script.received[-1]["params"]["reason"] == "the connection ends"


async def test_a_crash_in_the_block_leaves_alone(scripted):
    """An exception of the block is raised on its own, not in a group."""
    ours, _ = memory_pair()
    with pytest.raises(KeyError), single_failure():
        async with scripted():
            raise KeyError("mine")
    assert ours


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "method", "params", "result", "error", "_meta", SUBSCRIPTION]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
MESSAGES = st.one_of(
    st.binary(max_size=30),
    JUNK,
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0")},
        optional={
            "id": st.sampled_from([1, 2, 3, "1", None, 1.5]) | JUNK,
            "method": st.sampled_from(
                ["ping", ACKNOWLEDGED, "notifications/progress", "notifications/cancelled", "x"]
            ),
            "params": JUNK,
            "result": JUNK,
            "error": JUNK,
        },
    ),
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    version=st.sampled_from(["2025-03-26", "2025-11-25", "2026-07-28"]),
    messages=st.lists(MESSAGES, max_size=25),
)
def test_whatever_a_server_says_the_session_lives_on(version, messages):
    """Invalid messages before a response are skipped: the response arrives."""

    async def serve(stream):
        while arrived := await stream.receive():
            for received in arrived:
                request = json.loads(received.data)
                if "method" not in request or "id" not in request:
                    continue
                if request["method"] == "tools/list":
                    await stream.send(
                        [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
                    )
                result = {"protocolVersion": version, "supportedVersions": [version]}
                result |= {"tools": [], "capabilities": {}}
                answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                await stream.send([json.dumps(answer).encode()])

    async def main():
        ours, theirs = memory_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, theirs)
            async with connect(ours, version=version, timeout=5) as client:
                # A response to that very request may be among the invalid messages.
                with contextlib.suppress(McpError, ProtocolError):
                    await client.list_tools()
                await client.ping()
                session = client._session
                assert session.peer.ledger.outbound == 0
                assert session.peer.ledger.inbound == 0
                assert (len(session.pending), session.requests) == (0, {})
            nursery.cancel_scope.cancel()

    trio.run(main)
