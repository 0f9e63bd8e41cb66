"""Answers of a client to questions of a server, in both eras."""

import logging
from types import MappingProxyType

import attrs
import pytest
import trio

from noizu_mcp import (
    Accept,
    Cancel,
    ClientHandler,
    ConnectionClosed,
    Content,
    Decline,
    McpError,
    ProtocolError,
    Root,
    SamplingResult,
)
from noizu_mcp.types import ClientCapabilities

FORM = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
URL = {"mode": "url", "message": "m", "url": "https://example.com"}
SAMPLE = {"messages": [], "maxTokens": 1}
TOOLS = {**SAMPLE, "tools": []}
CHOICE = {**SAMPLE, "toolChoice": {"mode": "none"}}
DONE = {"resultType": "complete", "content": []}


@attrs.frozen
class Name:
    """A class whose instance is the content of a form."""

    name: str


class Person(ClientHandler):
    """Does what the test says."""

    def __init__(self, answer=None):
        self.answer = answer
        self.asked = []

    async def _say(self, params):
        self.asked.append(params)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def handle_elicitation(self, params):
        return await self._say(params)

    async def handle_sampling(self, params):
        return await self._say(params)

    async def list_roots(self):
        return await self._say({})


class WithTools(Person):
    sampling_tools = True


class FormsOnly(Person):
    elicitation_modes = ("form",)


SAID = SamplingResult(role="assistant", content="hi", model="m", stop_reason="endTurn")
ANSWERS = [
    ("elicitation/create", FORM, Accept({"a": 1}), {"action": "accept", "content": {"a": 1}}),
    ("elicitation/create", FORM, Accept(Name("x")), {"action": "accept", "content": {"name": "x"}}),
    ("elicitation/create", FORM, Decline(), {"action": "decline"}),
    ("elicitation/create", FORM, Cancel(), {"action": "cancel"}),
    ("elicitation/create", URL, Accept(None), {"action": "accept"}),
    ("elicitation/create", URL, Decline(), {"action": "decline"}),
    ("sampling/createMessage", SAMPLE, SAID, SAID.to_wire()),
    # In wire form
    ("elicitation/create", FORM, {"action": "decline"}, {"action": "decline"}),
    ("elicitation/create", FORM, {"action": "cancel", "content": None}, {"action": "cancel"}),
    ("elicitation/create", FORM, {"action": "accept"}, {"action": "accept", "content": {}}),
    ("elicitation/create", FORM, Accept(None), {"action": "accept", "content": {}}),
    (
        "elicitation/create",
        FORM,
        MappingProxyType({"action": "accept", "content": Name("x"), "_meta": {"a/b": 1}}),
        {"action": "accept", "content": {"name": "x"}, "_meta": {"a/b": 1}},
    ),
    ("elicitation/create", URL, {"action": "accept", "content": {"a": 1}}, {"action": "accept"}),
    ("sampling/createMessage", SAMPLE, SAID.to_wire(), SAID.to_wire()),
    (
        "sampling/createMessage",
        SAMPLE,
        MappingProxyType({**SAID.to_wire(), "vendor": 1}),
        {**SAID.to_wire(), "vendor": 1},
    ),
    ("roots/list", {}, {"roots": [], "_meta": {"a/b": 1}}, {"roots": [], "_meta": {"a/b": 1}}),
    (
        "roots/list",
        {},
        {"roots": ["file:///a", {"uri": "file:///b"}]},
        {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]},
    ),
    (
        "roots/list",
        {},
        (MappingProxyType({"uri": "file:///a", "name": "A", "vendor": 1}),),
        {"roots": [{"uri": "file:///a", "name": "A", "vendor": 1}]},
    ),
    ("roots/list", {}, [], {"roots": []}),
    (
        "roots/list",
        {},
        ["file:///a", Root("file:///b", "B")],
        {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]},
    ),
]
FAILURES = [
    ("elicitation/create", FORM, None, -32603),
    ("elicitation/create", FORM, {"a": 1}, -32603),
    ("elicitation/create", FORM, {"action": "dance"}, -32603),
    ("elicitation/create", FORM, {"action": "accept", "content": "a"}, -32603),
    ("elicitation/create", FORM, Accept("a"), -32603),
    ("elicitation/create", FORM, Accept(object()), -32603),
    ("sampling/createMessage", SAMPLE, {"role": "assistant", "model": "m"}, -32603),
    ("sampling/createMessage", SAMPLE, {"role": 5}, -32603),
    ("roots/list", {}, {"uri": "file:///a"}, -32603),
    ("roots/list", {}, [{"name": "a"}], -32603),
    ("roots/list", {}, ["https://example.com"], -32603),
    ("roots/list", {}, "file:///a", -32603),
    ("roots/list", {}, 5, -32603),
    ("sampling/createMessage", SAMPLE, "text", -32603),
    ("sampling/createMessage", SAMPLE, RuntimeError("secret"), -32603),
    ("sampling/createMessage", SAMPLE, ExceptionGroup("g", [OSError("secret")]), -32603),
    ("sampling/createMessage", SAMPLE, McpError(-1, "no", {"k": 1}), -1),
    ("roots/list", {}, [5], -32603),
    ("elicitation/create", {**FORM, "mode": "dance"}, Decline(), -32602),
    ("sampling/createMessage", TOOLS, SAID, -32602),
    ("sampling/createMessage", CHOICE, SAID, -32602),
    ("nope/nope", {}, None, -32601),
]


async def ask_live(script, method, params):
    """Send a request of the server; return the client's answer."""
    await script.say(id="q", method=method, params=params)
    with trio.fail_after(60):
        while True:
            for message in script.received:
                if message.get("id") == "q":
                    return message
            await script.arrived.wait()


def asking(*rounds):
    """Make a server that asks in successive rounds, and then returns."""
    results = [{"resultType": "input_required", **each} for each in rounds]
    return {"tools/call": [*results, DONE]}


@pytest.mark.parametrize(("method", "params", "answer", "expected"), ANSWERS)
async def test_answers(scripted, method, params, answer, expected):
    """Live answers and `inputResponses` have the same values."""
    handler = Person(answer)
    async with scripted(handler=handler, version="2025-11-25") as (_, script):
        assert (await ask_live(script, method, params))["result"] == expected
    request = {"method": method, "params": params}
    rounds = asking({"inputRequests": {"k": request}, "requestState": "s"})
    async with scripted(rounds, handler=handler, version="2026-07-28") as (client, script):
        await client.call_tool("t")
        retry = script.received[-1]["params"]
        assert retry["inputResponses"] == {"k": expected}
        assert retry["requestState"] == "s"


@pytest.mark.parametrize(("method", "params", "answer", "code"), FAILURES)
async def test_failures(scripted, method, params, answer, code, caplog):
    """The server gets a code without secrets; with rounds the caller gets the exception."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    handler = Person(answer)
    async with scripted(handler=handler, version="2025-11-25") as (_, script):
        error = (await ask_live(script, method, params))["error"]
        assert error["code"] == code
        assert "secret" not in error["message"]
        assert error.get("data") == ({"k": 1} if code == -1 else None)
    rounds = asking({"inputRequests": {"k": {"method": method, "params": params}}})
    async with scripted(rounds, handler=handler, version="2026-07-28") as (client, _):
        with pytest.raises(McpError) as caught:
            await client.call_tool("t")
        assert caught.value.code == code


async def test_modes_and_tools_are_offered_by_name(scripted):
    """Modes and tools that were not offered are refused before the handler is called."""
    handler = FormsOnly(Decline())
    async with scripted(handler=handler, version="2025-11-25") as (_, script):
        answer = await ask_live(script, "elicitation/create", URL)
        assert answer["error"]["code"] == -32602
        assert handler.asked == []
    said = SamplingResult(role="assistant", content=[Content.text("a")] * 2, model="m")
    handler = WithTools(said)
    async with scripted(handler=handler, version="2025-11-25") as (_, script):
        answer = await ask_live(script, "sampling/createMessage", {**TOOLS, **CHOICE})
        assert len(answer["result"]["content"]) == 2


@pytest.mark.parametrize(
    ("version", "offered"),
    [
        ("2025-03-26", {"roots": {"listChanged": True}, "sampling": {}}),
        ("2025-06-18", {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}),
        (
            "2025-11-25",
            {
                "roots": {"listChanged": True},
                "sampling": {"tools": {}},
                "elicitation": {"form": {}, "url": {}},
            },
        ),
        (
            "2026-07-28",
            {"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}},
        ),
    ],
)
async def test_overriding_advertises(scripted, version, offered):
    """A handler offers what it overrides, in the form of each revision."""
    initialized = {
        "protocolVersion": version,
        "capabilities": {},
        "serverInfo": {"name": "s", "version": "0"},
    }
    for handler, expected in ((WithTools(), offered), (None, {}), (ClientHandler(), {})):
        answers = {"initialize": initialized}
        async with scripted(answers, handler=handler, version=version) as (_, script):
            params = script.received[0]["params"]
            meta = params.get("_meta", {})
            said = meta.get("io.modelcontextprotocol/clientCapabilities", None)
            assert params.get("capabilities", said) == expected


@pytest.mark.parametrize(
    ("version", "offered"),
    [
        ("2025-11-25", {"experimental": {"x": {}}}),
        ("2026-07-28", {"experimental": {"x": {}}, "extensions": {"a/b": {}}}),
    ],
)
async def test_capabilities_beside_the_handlers_own(scripted, version, offered):
    """Capabilities given to `connect` are sent to the revisions that know them."""
    given = ClientCapabilities(experimental={"x": {}}, extensions={"a/b": {}})
    async with scripted(capabilities=given, version=version) as (_, script):
        params = script.received[0]["params"]
        said = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities")
        assert params.get("capabilities", said) == offered


async def test_methods_without_an_override_are_unknown(scripted):
    """A handler need not override anything."""
    for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
        async with scripted(handler=ClientHandler(), version="2025-11-25") as (_, script):
            assert (await ask_live(script, method, {}))["error"]["code"] == -32601


async def test_roots_of_a_client(scripted):
    """`roots=` offers them without a handler; `set_roots` changes them and notifies the server."""
    async with scripted(roots=["file:///a"], version="2025-11-25") as (client, script):
        assert (await ask_live(script, "roots/list", {}))["result"] == {
            "roots": [{"uri": "file:///a"}]
        }
        await client.set_roots([Root("file:///b")])
        await script.until("notifications/roots/list_changed")
        script.received.clear()
        assert (await ask_live(script, "roots/list", {}))["result"] == {
            "roots": [{"uri": "file:///b"}]
        }
    requests = {"inputRequests": {"k": {"method": "roots/list"}}}
    answers = asking(requests, requests)
    async with scripted(answers, roots=["file:///a"], version="2026-07-28") as (client, script):
        await client.set_roots(["file:///c"])
        await client.call_tool("t")
        responses = script.received[-1]["params"]["inputResponses"]
        assert responses == {"k": {"roots": [{"uri": "file:///c"}]}}
        assert "notifications/roots/list_changed" not in [m["method"] for m in script.received]


# Rounds of 2026-07-28


async def test_rounds_carry_only_the_newest(scripted):
    """A round has a new id, the same params, the exact state, and the last answers only."""
    handler = Person(Decline())
    question = {"method": "elicitation/create", "params": FORM}
    answers = asking(
        {"inputRequests": {"a": question}, "requestState": "s/1+="},
        {"requestState": "s2"},
        {"inputRequests": {"b": question, "c": question}},
    )
    async with scripted(answers, handler=handler, version="2026-07-28") as (client, script):
        await client.call_tool("t", {"x": 1})
        calls = [each for each in script.received if each["method"] == "tools/call"]
    assert len({each["id"] for each in calls}) == 4
    sent = [{k: v for k, v in each["params"].items() if k != "_meta"} for each in calls]
    params = {"name": "t", "arguments": {"x": 1}}
    no = {"action": "decline"}
    assert sent == [
        params,
        {**params, "inputResponses": {"a": no}, "requestState": "s/1+="},
        {**params, "requestState": "s2"},
        {**params, "inputResponses": {"b": no, "c": no}},
    ]


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "input_required"},
        {"resultType": "input_required", "inputRequests": 5},
        {"resultType": "input_required", "requestState": 5},
        {"resultType": "input_required", "inputRequests": {"k": 5}},
        {"resultType": "input_required", "inputRequests": {"k": {"params": {}}}},
        {"resultType": "mystery"},
    ],
)
async def test_malformed_rounds(scripted, result):
    """It is a `ProtocolError` with the reason, for one request; the session goes on."""
    answers = {"tools/call": [result, DONE]}
    async with scripted(answers, handler=Person(), version="2026-07-28") as (client, _):
        with pytest.raises(ProtocolError):
            await client.call_tool("t")
        assert (await client.call_tool("t")).content == ()


async def test_a_server_that_asks_in_circles(scripted):
    """After a maximum of rounds the request fails."""
    again = {"resultType": "input_required", "requestState": "s"}
    async with scripted({"tools/call": lambda _: again}, version="2026-07-28") as (client, script):
        with pytest.raises(ProtocolError, match="more than 50 times"):
            await client.call_tool("t")
        assert len(script.received) == 52


async def test_questions_of_a_round_are_asked_at_once(scripted):
    """A slow answer does not delay a quick one."""
    both = trio.Event()

    class Two(ClientHandler):
        count = 0

        async def handle_elicitation(self, params):
            self.count += 1
            if self.count == 2:
                both.set()
            await both.wait()
            return Decline()

    question = {"method": "elicitation/create", "params": FORM}
    answers = asking({"inputRequests": {"a": question, "b": question}})
    async with scripted(answers, handler=Two(), version="2026-07-28") as (client, _):
        with trio.fail_after(60):
            await client.call_tool("t")


async def test_a_server_that_no_longer_wants_an_answer(scripted):
    """The task of the handler is cancelled, and nothing is sent."""
    started, ended = trio.Event(), trio.Event()

    class Slow(ClientHandler):
        async def handle_elicitation(self, params):
            started.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.set()

    async with scripted(handler=Slow(), version="2025-11-25") as (client, script):
        script.answers["ping"] = {}
        await script.say(id="q", method="elicitation/create", params=FORM)
        with trio.fail_after(60):
            await started.wait()
        await client.ping()  # a slow handler never blocks the client's own requests
        await script.say(method="notifications/cancelled", params={"requestId": "q"})
        with trio.fail_after(60):
            await ended.wait()
        await client.ping()
        assert "q" not in [each.get("id") for each in script.received]


async def test_questions_in_an_array_are_answered_in_one(scripted):
    """On 2025-03-26 a server may send several questions in an array."""
    old = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "serverInfo": {"name": "scripted", "version": "0"},
    }
    array = (
        b'[{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage",'
        b'"params":{"messages":[],"maxTokens":1}},{"jsonrpc":"2.0","id":8,"method":"ping"}]'
    )
    handler = Person(SamplingResult(role="assistant", content="ok", model="m"))
    async with scripted({"initialize": old}, handler=handler, version="2025-03-26") as (_, script):
        await script.stream.send([array])
        with trio.fail_after(60):
            while not isinstance(script.received[-1], list):
                await script.arrived.wait()
    assert {answer["id"] for answer in script.received[-1]} == {7, 8}
    assert len(handler.asked) == 1


# The end of the connection while a person is asked


class Absent(ClientHandler):
    """A person who never answers."""

    def __init__(self):
        self.asked, self.left = trio.Event(), trio.Event()

    async def handle_elicitation(self, params):
        self.asked.set()
        try:
            await trio.sleep_forever()
        finally:
            self.left.set()


async def by_the_client(client, script):
    await client.aclose()


async def by_the_server(client, script):
    await script.stream.aclose()


QUESTION = {"method": "elicitation/create", "params": FORM}
ASKING = [
    ("tools/call", lambda client: client.call_tool("ask")),
    ("prompts/get", lambda client: client.get_prompt("ask")),
    ("resources/read", lambda client: client.read_resource("a:b")),
]


@pytest.mark.parametrize("end", [by_the_client, by_the_server])
@pytest.mark.parametrize("questions", [1, 2])
@pytest.mark.parametrize(("method", "call"), ASKING)
async def test_a_question_ends_with_the_connection(scripted, method, call, questions, end):
    """On 2026-07-28, too, the call fails at once, and the person is asked no more."""
    asked = {f"q{each}": QUESTION for each in range(questions)}
    answers = {method: {"resultType": "input_required", "inputRequests": asked}}
    handler = Absent()

    async def call_it(client):
        with pytest.raises(ConnectionClosed, match="while questions of the server were open"):
            await call(client)
        assert handler.left.is_set()

    async with (
        scripted(answers, version="2026-07-28", handler=handler) as (client, script),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(call_it, client)
        await handler.asked.wait()
        await end(client, script)
