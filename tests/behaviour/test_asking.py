"""Handlers that ask: the same results in both eras, and their messages."""

import json
import logging

import pytest
import trio

from noizu_mcp import Accept, Cancel, ClientHandler, Decline, McpError, SamplingResult

ELICITING = ("2025-06-18", "2025-11-25", "2026-07-28")
STATELESS = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"

eliciting = pytest.mark.parametrize("revision", ELICITING, indirect=True)
modern = pytest.mark.parametrize("revision", ["2025-11-25", STATELESS], indirect=True)
live = pytest.mark.parametrize("revision", ["2025-11-25"], indirect=True)
stateless = pytest.mark.parametrize("revision", [STATELESS], indirect=True)


#: A server that runs each handler again for each answer, as another process would.
replaying = pytest.mark.parametrize("server_name", ["Replayer"])


@pytest.fixture
def server_name():
    return "Asker"


@pytest.fixture
async def asker(opened, revision, loaded, server_name):
    """Connect a client with all capabilities to a server whose handlers ask."""
    async with opened(server_name, start=False) as wire:
        wire.capabilities = loaded("asking").ABLE[revision]
        await wire.start()
        yield wire


@pytest.fixture
def person(asker, loaded):
    """Return a function that makes a user who answers each question by a function."""

    def make(answer):
        asking = loaded("asking")
        return asking.Person(asker, answer if callable(answer) else lambda _: answer)

    return make


def accept(**content):
    return {"action": "accept", "content": content}


def sampled(text="said", **more):
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn", **more}


# Forms


@eliciting
async def test_a_form_comes_back_as_an_instance(person):
    """Every kind of field arrives; a blank field has its default, or is None."""
    answers = {"name": "Ann", "mail": "ann@example.com", "age": 7}
    asked = person(accept(**answers))
    told = json.loads(await asked.text("form"))
    assert told == ["Ann", "ann@example.com", 7, 0.5, True, "Color.BLUE", "m", None]
    given = {"share": 1, "agree": False, "color": "red", "size": "s", "note": "hm", "more": "x"}
    told = json.loads(await person(accept(**answers, **given)).text("form"))
    assert told[3:] == [1.0, False, "Color.RED", "s", "hm"]


@eliciting
async def test_what_a_form_says(person, revision):
    """Fields are flat, with titles, formats, bounds and choices; defaults if they exist."""
    asked = person(accept(name="Ann", mail="ann@example.com", age=7))
    await asked.text("form")
    (question,) = asked.asked
    assert question["method"] == "elicitation/create"
    schema = question["params"]["requestedSchema"]
    assert question["params"]["message"] == "All of it"
    assert schema["type"] == "object"
    assert schema["required"] == ["name", "mail", "age"]
    name = {"title": "Your name", "description": "As in the passport", "minLength": 1}
    assert schema["properties"]["name"] == {"type": "string", **name}
    assert schema["properties"]["mail"]["format"] == "email"
    assert schema["properties"]["age"] == {"type": "integer", "minimum": 0, "maximum": 150}
    assert schema["properties"]["agree"]["default"] is True
    assert schema["properties"]["color"]["enum"] == ["red", "blue"]
    assert ("default" in schema["properties"]["color"]) == (revision != "2025-06-18")


@eliciting
async def test_choices_with_titles(person, revision):
    """2025-06-18 has `enumNames`, later revisions `oneOf`; the answer is the value."""
    asked = person(accept(level="2"))
    assert await asked.text("titled") == "2"
    field = asked.asked[0]["params"]["requestedSchema"]["properties"]["level"]
    assert field.get("enumNames") == (["Low", "High"] if revision == "2025-06-18" else None)
    assert ("oneOf" in field) == (revision != "2025-06-18")


@modern
async def test_several_choices(person):
    """The answer to a list of choices is a list of members."""
    assert await person(accept(tags=["red", "blue"])).text("tags") == "red,blue"


@pytest.mark.parametrize("revision", ["2025-06-18"], indirect=True)
async def test_several_choices_are_too_new(person):
    """A client whose revision has no such field is not asked, and gets the reason."""
    text = (
        "Not supported by revision 2025-06-18: it has no form field for a choice of several values"
    )
    asked = person(accept())
    for tool, args in (("tags", {}), ("form_by_hand", {"several": True})):
        result = await asked.call(tool, args)
        assert result == {"isError": True, "content": [{"type": "text", "text": text}]}
    params = {"name": "asked", "arguments": {"by_hand": "several"}}
    error = (await asked.request("prompts/get", params))["error"]
    assert (error["code"], error["message"]) == (-32600, text)
    assert asked.asked == []


@eliciting
async def test_what_is_not_flat_is_never_asked(person, caplog):
    """A nested form is the author's mistake: it is logged, and the client is not asked."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    asked = person(accept())
    assert await asked.text("nested") == "Tool execution failed"
    assert asked.asked == []


@eliciting
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"action": "decline"}, "decline"),
        ({"action": "cancel"}, "cancel"),
        ({"action": "decline", "content": {"name": "kept out"}}, "decline"),
        (accept(name="Ann"), "accept Ann"),
    ],
)
async def test_the_three_answers(person, answer, told):
    """The handler gets "accept", "decline" and "cancel"."""
    assert await person(answer).text("name") == told


WRONG = [
    {},
    {"action": "maybe"},
    {"action": None},
    {"action": "accept"},
    {"action": "accept", "content": None},
    {"action": "accept", "content": [1]},
    {"action": "accept", "content": {"name": 5}},
    {"action": "accept", "content": {"name": ""}},
    {"action": "accept", "content": {}},
]


@eliciting
@pytest.mark.parametrize("wrong", WRONG)
async def test_what_is_no_answer_is_asked_again(person, wrong):
    """A malformed answer, or an answer that does not fit the form, repeats the question."""
    answers = iter([wrong, wrong, accept(name="Ann")])
    asked = person(lambda _: next(answers))
    assert await asked.text("name") == "accept Ann"
    assert len({json.dumps(each["params"], sort_keys=True) for each in asked.asked}) == 1
    assert len(asked.rounds) == 3


@eliciting
async def test_what_is_never_an_answer_is_not_asked_for_ever(person):
    """After three repetitions the call fails with the reason."""
    asked = person(accept(name=5))
    answer = await asked.request("tools/call", {"name": "name", "arguments": {}})
    assert answer["error"]["code"] == -32602
    message = asked.asked[0]["params"]["message"]
    assert answer["error"]["message"] == f"No valid answer to {json.dumps(message)} in 4 tries"
    assert len(asked.asked) == len(asked.rounds) == 4


@eliciting
async def test_the_last_answer_may_be_the_right_one(person):
    """Three wrong answers are tolerated."""
    answers = iter([accept(name=5)] * 3 + [accept(name="Ann")])
    assert await person(lambda _: next(answers)).text("name") == "accept Ann"


@stateless
@pytest.mark.parametrize("responses", [None, {}, {"nope": {}}, 5, [], {"": None}])
async def test_missing_answers_are_asked_again(asker, responses):
    """A retry without the answer repeats the question."""
    params = {"name": "name", "arguments": {}}
    first = (await asker.ask("tools/call", params))["result"]
    (key,) = first["inputRequests"]
    more = {"requestState": first["requestState"]}
    if responses is not None:
        more["inputResponses"] = responses
    again = (await asker.ask("tools/call", {**params, **more}))["result"]
    assert again["inputRequests"] == first["inputRequests"]
    more = {"requestState": again["requestState"], "inputResponses": {key: accept(name="Ann")}}
    done = (await asker.ask("tools/call", {**params, **more}))["result"]
    assert done["content"][0]["text"] == "accept Ann"


@live
async def test_a_retry_means_nothing_in_a_handshake(asker):
    """Up to 2025-11-25 a state and answers are unknown params, and are ignored."""
    more = {"requestState": "no state at all", "inputResponses": {"q": accept(name="Ann")}}
    done = await asker.ask("tools/call", {"name": "done", "arguments": {}, **more})
    assert done["result"]["content"][0]["text"] == "[]"


@modern
async def test_urls(person):
    """Accepting is consent; any content from the client is ignored."""
    asked = person({"action": "accept"})
    assert await asked.text("url") == "accept None"
    params = asked.asked[0]["params"]
    assert params["mode"] == "url"
    assert params["url"] == "https://example.com/login"
    assert params["message"] == "Please log in"
    assert await person(accept(x="y")).text("url") == "accept None"
    assert await person({"action": "decline"}).text("url") == "decline "


# Models and roots


async def test_a_model_answers(person):
    """The answer of the client's model is returned as a value."""
    asked = person(sampled())
    assert await asked.text("sample") == "assistant m endTurn said"
    question = asked.asked[0]
    assert question["method"] == "sampling/createMessage"
    message = {"role": "user", "content": {"type": "text", "text": "Say something"}}
    params = {k: v for k, v in question["params"].items() if k != "_meta"}
    assert params == {"messages": [message], "maxTokens": 10}


async def test_everything_that_a_model_can_be_asked(person):
    """Messages in every form, and all options with their names on the wire, are sent."""
    asked = person(sampled("ok"))
    assert await asked.text("sample_all") == "ok"
    params = asked.asked[0]["params"]
    texts = [each["content"]["text"] for each in params["messages"]]
    assert texts == ["one", "two", "three", "four"]
    roles = [each["role"] for each in params["messages"]]
    assert roles == ["user", "assistant", "assistant", "user"]
    assert params["maxTokens"] == 7
    assert params["systemPrompt"] == "Be brief."
    assert params["temperature"] == 0.5
    assert params["modelPreferences"] == {"hints": [{"name": "small"}]}
    assert params["stopSequences"] == ["END"]
    assert params["metadata"] == {"k": 1}


@modern
async def test_a_model_with_tools(person):
    """The tools and the choice are sent, and a tool call is returned."""
    use = {"type": "tool_use", "id": "1", "name": "add", "input": {}}
    answer = {"role": "assistant", "content": [use], "model": "m", "stopReason": "toolUse"}
    asked = person(answer)
    assert await asked.text("sample_tools") == "tool_use toolUse"
    params = asked.asked[0]["params"]
    assert [each["name"] for each in params["tools"]] == ["add"]
    assert params["toolChoice"] == {"mode": "required"}


@pytest.mark.parametrize("wrong", [{}, {"role": "assistant"}, {"role": 1, "model": "m"}])
async def test_a_model_that_says_nothing_is_asked_again(person, wrong):
    """A malformed result repeats the question."""
    answers = iter([wrong, {**sampled(), "content": 5}, sampled("at last")])
    assert await person(lambda _: next(answers)).text("sample") == "assistant m endTurn at last"


async def test_roots(person):
    """Roots are returned with their names; a malformed list repeats the question."""
    found = {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]}
    answers = iter([{}, {"roots": 5}, {"roots": [{"name": "no uri"}]}, found])
    asked = person(lambda _: next(answers))
    assert await asked.text("roots") == "file:///a=A file:///b=None"
    assert {each["method"] for each in asked.asked} == {"roots/list"}


# Whole conversations


def by_message(question):
    """Answer by the message; roots have none."""
    if question["method"] == "roots/list":
        return {"roots": [{"uri": "file:///w"}]}
    if question["method"] == "sampling/createMessage":
        return sampled("heard " + question["params"]["messages"][0]["content"]["text"])
    return accept(name="to " + question["params"]["message"])


@eliciting
async def test_in_sequence_in_loops_and_at_once(person):
    """In one handler with everything side effects happen once."""
    ops = [
        ["elicit", "a"],
        ["step", "s1"],
        ["elicit", "a"],
        ["both", [[["elicit", "b"], ["step", "s2"]], [["sample", "c"], ["elicit", "d"]]]],
        ["slow_step", "s3"],
        ["roots", None],
    ]
    asked = person(by_message)
    told = (await asked.call("script", {"ops": ops}))["content"]
    result = json.loads(told[0]["text"])["told"]
    assert result[0] == result[2] == ["accept", "to a"]
    assert result[1]["did"] == "s1"
    assert result[3] == [
        [["accept", "to b"], {"did": "s2", "times": 1}],
        ["heard c", ["accept", "to d"]],
    ]
    assert result[4:] == [["slow", "s3"], ["file:///w"]]
    assert await asked.text("done") == '["s1", "s2", "s3"]'


@stateless
async def test_what_is_asked_at_once_goes_out_in_one_round(person):
    """Concurrent questions share a round, however many there are."""
    ops = [["both", [[["elicit", str(number)]] for number in range(20)]]]
    asked = person(by_message)
    await asked.call("script", {"ops": ops})
    assert [len(each) for each in asked.rounds] == [20]
    assert len({json.dumps(each) for each in asked.asked}) == 20


@eliciting
async def test_steps_end_before_their_round_does(person):
    """A side effect that has begun is completed once, whatever asks concurrently."""
    ops = [["both", [[["slow_step", "s1"]], [["slow_step", "s2"]], [["elicit", "a"]]]]]
    asked = person(by_message)
    result = await asked.call("script", {"ops": ops})
    told = json.loads(result["content"][0]["text"])["told"]
    assert told == [[[["slow", "s1"]], [["slow", "s2"]], [["accept", "to a"]]]]
    assert await asked.text("done") == '["s1", "s2"]'
    assert len(asked.rounds) == 1


@eliciting
async def test_a_question_that_is_withdrawn(asker):
    """The handler goes on without it; the client's request is cancelled."""
    assert await asker.text("withdrawn") == "never mind"
    if not asker.stateless:
        question = await asker.question()
        cancelled = await asker.notice("notifications/cancelled")
        assert cancelled["requestId"] == question["id"]
    await asker.is_alive()


@eliciting
async def test_resources_and_prompts_ask_too(person):
    """They can ask with `ctx`, and by hand."""
    answer = await person(by_message).request("resources/read", {"uri": "ask://one"})
    text = answer["result"]["contents"][0]["text"]
    assert text == "ask://one ['accept', 'to Which one?']"
    answer = await person(by_message).request("resources/read", {"uri": "ask://many/x"})
    assert answer["result"]["contents"][0]["text"] == "to x"
    answer = await person(by_message).request("prompts/get", {"name": "asked"})
    assert answer["result"]["messages"][0]["content"]["text"] == "['accept', 'to Who is it for?']"
    params = {"name": "asked", "arguments": {"by_hand": "yes"}}
    answer = await person(by_message).request("prompts/get", params)
    assert answer["result"]["messages"][0]["content"]["text"] == "to prompt"


# By hand


@eliciting
async def test_asking_by_hand(person):
    """The answers have the handler's own keys, and its state is kept, in both eras."""
    asked = person(by_message)
    assert await asked.text("hand") == "to who ['file:///w'] st"
    assert {each["method"] for each in asked.asked} == {"elicitation/create", "roots/list"}
    assert await asked.text("hand_in_thread") == "accept"
    assert await asked.text("count") == "turn 3"


@eliciting
async def test_a_form_by_hand_has_the_words_of_the_revision(person, revision):
    """Forms by hand are adapted like `ctx.elicit`; newer parts are sent unchanged."""
    asked = person(accept(level="2", age=7))
    assert await asked.text("form_by_hand") == "accept 2"
    schema = asked.asked[0]["params"]["requestedSchema"]
    if revision == "2025-06-18":
        level = {"type": "string", "enum": ["1", "2"], "enumNames": ["Low", "High"]}
        assert schema["properties"] == {"level": level, "age": {"type": "integer"}}
    else:
        assert "oneOf" in schema["properties"]["level"]
        assert schema["properties"]["age"] == {"type": "integer", "default": 5}


@stateless
async def test_the_keys_of_a_hand_stay(asker):
    """The questions are sent as the handler wrote them, with its keys."""
    result = (await asker.call("hand"))["result"]
    assert set(result) == {"resultType", "inputRequests", "requestState", "_meta"}
    assert set(result["inputRequests"]) == {"who", "where"}
    assert result["inputRequests"]["who"]["params"]["message"] == "who"
    state_only = (await asker.call("count"))["result"]
    assert set(state_only) == {"resultType", "requestState", "_meta"}


@eliciting
async def test_both_ways_in_one_handler(person):
    """Each question is asked once, the side effect happens once."""
    asked = person(by_message)
    told = await asked.text("mixed")
    assert told == "to first to second to third kept {'did': 'to first', 'times': 1}"
    assert [each["params"]["message"] for each in asked.asked] == ["first", "second", "third"]
    assert await asked.text("done") == '["to first"]'


async def test_a_circle_ends(person, revision):
    """A handler that always asks again ends after a maximum of rounds."""
    answer = await person(by_message).request("tools/call", {"name": "circle"})
    assert answer["error"]["code"] == -32602
    assert "50 rounds" in answer["error"]["message"]


async def test_a_hand_without_context_is_a_mistake(person, caplog):
    """Such a handler could never read its answers."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    assert await person(None).text("hand_without_context") == "Tool execution failed"


# Missing capabilities

NEEDS = {
    "name": {"elicitation": {}},
    "url": {"elicitation": {"url": {}}},
    "sample": {"sampling": {}},
    "sample_tools": {"sampling": {"tools": {}}},
    "roots": {"roots": {}},
    "hand_sampling": {"sampling": {"tools": {}}},
}


async def refused(wire, tool, needs):
    """Call a tool that needs a missing capability."""
    answer = await wire.call(tool)
    if wire.stateless:
        assert answer["error"] == {
            "code": -32021,
            "message": "Missing required client capability",
            "data": {"requiredCapabilities": needs},
        }
    else:
        assert answer["result"]["isError"] is True
        words = ".".join([*needs, *next(iter(needs.values()))])
        text = f"Capability not supported by the client: {words}"
        assert answer["result"]["content"] == [{"type": "text", "text": text}]
    await wire.is_alive()
    assert wire.notices == []


async def test_nothing_is_asked_of_a_client_that_cannot(opened):
    """Before anything is sent the call fails with -32021 and the capability, or with a text."""
    async with opened("Asker") as wire:
        for tool, needs in NEEDS.items():
            await refused(wire, tool, needs)


@modern
async def test_half_of_a_capability_is_not_enough(opened):
    """Forms without URLs, URLs without forms, and sampling without tools are refused."""
    async with opened("Asker", start=False) as wire:
        wire.capabilities = {"elicitation": {"url": {}}, "sampling": {}, "roots": True}
        await wire.start()
        await refused(wire, "name", NEEDS["name"])
        await refused(wire, "sample_tools", NEEDS["sample_tools"])
        await refused(wire, "hand_sampling", NEEDS["hand_sampling"])
        await refused(wire, "roots", NEEDS["roots"])
    async with opened("Asker", start=False) as wire:
        wire.capabilities = {"elicitation": {}}
        await wire.start()
        await refused(wire, "url", NEEDS["url"])


@pytest.mark.parametrize("revision", ["2025-03-26"], indirect=True)
async def test_a_revision_without_elicitation(opened):
    """The capability is ignored in a revision without elicitation."""
    async with opened("Asker", start=False) as wire:
        wire.capabilities = {"elicitation": {}}
        await wire.start()
        await refused(wire, "name", NEEDS["name"])
        await refused(wire, "tags", NEEDS["name"])


async def test_resources_and_prompts_of_a_client_that_cannot(opened):
    """They have no `isError`, so they fail with a protocol error."""
    async with opened("Asker") as wire:
        for method, params in (
            ("resources/read", {"uri": "ask://one"}),
            ("prompts/get", {"name": "asked"}),
        ):
            error = (await wire.ask(method, params))["error"]
            assert error["code"] == (-32021 if wire.stateless else -32600)
            assert "apability" in error["message"]


# Refusals


@live
async def test_a_client_that_refuses(asker):
    """The model reads the reason, unless the handler catches the error."""
    error = {"code": -1, "message": "User rejected it", "data": {"k": 1}}
    for tool, method in (
        ("sample", "sampling/createMessage"),
        ("name", "elicitation/create"),
        ("url", "elicitation/create"),
        ("roots", "roots/list"),
        ("hand_in_thread", "elicitation/create"),
        ("let_on", "sampling/createMessage"),
    ):
        call = await asker.begin_call(tool)
        await asker.respond(await asker.question(), error=error)
        result = (await asker.answer(call))["result"]
        text = f"The client refused {method}: User rejected it (-1)"
        assert (True, text) == (result["isError"], result["content"][0]["text"]), tool
    call = await asker.begin_call("handled")
    await asker.respond(await asker.question(), error=error)
    text = (await asker.answer(call))["result"]["content"][0]["text"]
    assert text == "-1 User rejected it"


@live
async def test_several_refusals(asker):
    """Of concurrent questions the model reads the first refusal."""
    call = await asker.begin_call("script", {"ops": [["both", [[["roots", ""]], [["roots", ""]]]]]})
    questions = [await asker.question(), await asker.question()]
    for question in questions:
        await asker.respond(question, error={"code": -1, "message": "no"})
    result = (await asker.answer(call))["result"]
    text = result["content"][0]["text"]
    assert (result["isError"], text) == (True, "The client refused roots/list: no (-1)")


@live
async def test_an_error_of_the_handler_is_one_of_the_protocol(asker):
    """An `McpError` of the handler is a protocol error, even with the client's own text."""
    call = await asker.begin_call("on_purpose")
    await asker.respond(await asker.question(), error={"code": -1, "message": "no"})
    error = {"code": 4001, "message": "no sample, no answer", "data": {"why": "no"}}
    assert error == (await asker.answer(call))["error"]


@live
async def test_a_prompt_and_a_resource_let_a_refusal_out(asker):
    """They have no error results for a model, so a refusal remains a protocol error."""
    for method, params in (
        ("prompts/get", {"name": "asked"}),
        ("resources/read", {"uri": "ask://one"}),
    ):
        call = await asker.begin(method, params)
        error = {"code": -1, "message": "no"}
        await asker.respond(await asker.question(), error=error)
        assert error == (await asker.answer(call))["error"]


# Time


@eliciting
async def test_the_time_of_a_person_is_not_the_handlers(asker, person):
    """The timeout of the handler is paused during a question, and then resumes."""
    if asker.stateless:
        assert await person(accept(name="Ann")).text("patient") == "Tool execution timed out"
        return
    call = await asker.begin_call("patient")
    for _ in range(2):
        question = await asker.question()
        await trio.sleep(0.15)
        await asker.respond(question, result=accept(name="Ann"))
    text = (await asker.answer(call))["result"]["content"][0]["text"]
    assert text == "Tool execution timed out"


@live
async def test_a_client_that_never_answers(asker):
    """The question is cancelled; the handler goes on, or its call fails with the reason."""
    for tool, told in (
        ("impatient", "went on"),
        ("gives_up", "The client did not answer in time: elicitation/create was not answered"),
    ):
        call = await asker.begin_call(tool)
        question = await asker.question()
        cancelled = await asker.notice("notifications/cancelled")
        assert cancelled == {"requestId": question["id"], "reason": "timeout"}
        result = (await asker.answer(call))["result"]
        assert result["content"][0]["text"].startswith(told)
        assert result.get("isError", False) == (tool == "gives_up")
        await asker.respond(question, result=accept(name="too late"))
    read = await asker.begin("resources/read", {"uri": "ask://quick"})
    await asker.question()
    error = (await asker.answer(read))["error"]
    assert error["code"] == -32603
    assert error["message"].startswith("The client did not answer in time")
    await asker.is_alive()


# Cancelling


@eliciting
@replaying
async def test_cancelling_ends_the_question(asker):
    """Client and handler are cancelled, by a notification, and nothing remains."""
    if asker.stateless:
        # The round has ended: nothing waits. A late cancellation names no request.
        result = (await asker.call("watched"))["result"]
        assert result["resultType"] == "input_required"
    else:
        call = await asker.begin_call("watched")
        question = await asker.question()
        await asker.cancel(call)
        cancelled = await asker.notice("notifications/cancelled")
        assert cancelled["requestId"] == question["id"]
        await asker.respond(question, result=accept(name="too late"))
    assert await asker.text("outcomes") == "cancelled"
    await asker.is_alive()
    assert asker.answers == {}
    if asker.connection is not None:
        assert asker.connection.requests == {}
        assert len(asker.connection.pending) == 0
        assert asker.connection.peer.ledger.outbound == 0


@eliciting
@pytest.mark.parametrize("tool", ["watched", "hand", "script"])
async def test_a_client_that_goes_away(opened, revision, loaded, tool, caplog):
    """The end of the connection ends everything; `opened` would find leftovers."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    ops = [["both", [[["elicit", "a"]], [["elicit", "b"]], [["slow_step", "s"]]]]]
    async with opened("Asker", start=False, grace=0) as wire:
        wire.capabilities = loaded("asking").ABLE[revision]
        await wire.start()
        await wire.begin_call(tool, {"ops": ops} if tool == "script" else {})
        if wire.stateless:
            await wire.is_alive()
        else:
            await wire.question()


# Endless rounds, and large states


@eliciting
async def test_a_handler_that_never_stops_asking(person):
    """It ends after a maximum of rounds."""
    asked = person(accept(name="Ann"))
    answer = await asked.request("tools/call", {"name": "forever"})
    assert answer["error"]["code"] == -32602
    assert answer["error"]["message"] == "More than 50 rounds of questions"
    assert len(asked.rounds) == 50


@eliciting
async def test_too_much_to_carry(person, asker):
    """On 2026-07-28 the state has a maximum size; live questions carry none."""
    result = await person(accept(name="Ann")).call("big")
    if asker.stateless:
        assert result["isError"] is True
        text = "The answers and steps so far exceed 65536 characters of sealed state"
        assert result["content"][0]["text"] == text
    else:
        assert result == {"content": []}


@eliciting
async def test_steps_are_json(person):
    """Questions and answers of steps must be JSON."""
    text = await person(accept(name="Ann")).text("bad_step")
    assert text.startswith("ctx.step needs JSON values as arguments of Questions.effect")
    assert "ctx.step needs a JSON value from object" in text


@stateless
@replaying
async def test_a_handler_that_asks_something_else(person):
    """The error has the question, and says what handlers may depend on."""
    result = await person(accept(name="Ann")).call("forgetful")
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert text.startswith("the handler is not deterministic: ")
    assert '"Question 2"' in text
    assert "ctx.step" in text


@stateless
@replaying
async def test_resources_say_it_with_an_error(person):
    """They have no `isError`."""
    for how, said in (("x", "the handler is not deterministic: "), ("much", "exceed 65536")):
        answer = await person(accept(name="Ann")).request(
            "resources/read", {"uri": f"forget://{how}"}
        )
        assert answer["error"]["code"] == -32603
        assert said in answer["error"]["message"]


# The wire of 2026-07-28


@stateless
async def test_the_shape_of_a_round(asker):
    """It has `resultType`, questions, a state and the server info; the retry has a new id."""
    result = (await asker.call("name", None, progressToken=1))["result"]
    assert set(result) == {"resultType", "inputRequests", "requestState", "_meta"}
    assert result["resultType"] == "input_required"
    assert set(result["_meta"]) == {f"{PREFIX}serverInfo"}
    ((key, request),) = result["inputRequests"].items()
    assert set(request) == {"method", "params"}
    assert set(request["params"]) == {"message", "requestedSchema"}
    assert key.startswith("elicitation-")
    params = {
        "name": "name",
        "arguments": {},
        "inputResponses": {key: accept(name="Ann")},
        "requestState": result["requestState"],
    }
    done = (await asker.ask("tools/call", params))["result"]
    assert asker.bare(done) == {"content": [{"type": "text", "text": "accept Ann"}]}


@stateless
@pytest.mark.parametrize("answers", ["same", "others", "none"])
async def test_a_state_is_used_once(asker, answers):
    """A second retry is refused with a text that says what to do; a new call works."""
    for _ in range(2):
        result = (await asker.call("name"))["result"]
        (key,) = result["inputRequests"]
        params = {"name": "name", "arguments": {}, "requestState": result["requestState"]}
        params["inputResponses"] = {key: accept(name="Ann")}
        assert "result" in await asker.ask("tools/call", params)
        if answers != "same":
            params["inputResponses"] = {key: accept(name="Eve")} if answers == "others" else {}
        error = (await asker.ask("tools/call", params))["error"]
        text = "This requestState was used before; make the call again without it"
        assert error == {"code": -32602, "message": text}


@stateless
async def test_answers_without_a_state_are_not_trusted(asker):
    """The handler asks; answers to other questions are ignored."""
    (key,) = (await asker.call("name"))["result"]["inputRequests"]
    params = {"name": "name", "arguments": {}, "inputResponses": {key: accept(name="Eve")}}
    result = (await asker.ask("tools/call", params))["result"]
    assert list(result["inputRequests"]) == [key]


@stateless
async def test_answers_to_what_was_not_asked_are_not_trusted(asker):
    """The state of one question does not allow the answer to another."""
    args = {"ops": [["elicit", "a"], ["elicit", "b"]]}
    answers = {}
    for _ in range(2):  # the second call knows the key of its second question
        first = (await asker.call("script", args))["result"]
        (key,) = first["inputRequests"]
        params = {"name": "script", "arguments": args, "requestState": first["requestState"]}
        params["inputResponses"] = {key: accept(name="A"), **answers}
        second = (await asker.ask("tools/call", params))["result"]
        (other,) = second["inputRequests"]
        answers = {other: accept(name="Eve")}


# Our own client


class Clerk(ClientHandler):
    """Answers everything."""

    sampling_tools = True

    def __init__(self):
        self.seen = []

    async def handle_elicitation(self, params):
        self.seen.append(params)
        if params["message"] == "no":
            return Decline()
        if params["message"] == "gone":
            return Cancel()
        if params.get("mode") == "url":
            return Accept(None)
        return Accept({"name": "to " + params["message"]})

    async def handle_sampling(self, params):
        self.seen.append(params)
        return SamplingResult(role="assistant", content="heard", model="m")

    async def list_roots(self):
        return ["file:///w"]


@eliciting
async def test_our_client_answers_everything(connected, revision):
    """One handler of the client serves both eras."""
    clerk = Clerk()
    ops = [
        ["elicit", "a"],
        ["elicit", "no"],
        ["elicit", "gone"],
        ["sample", "b"],
        ["roots", None],
        ["step", "s"],
        ["both", [[["elicit", "c"]], [["elicit", "d"]]]],
        *([["url", "u"]] if revision != "2025-06-18" else []),
    ]
    async with connected("Asker", handler=clerk) as client:
        result = await client.call_tool("script", {"ops": ops})
        told = json.loads(result.content[0].text)["told"]
        assert told[:5] == [["accept", "to a"], ["decline"], ["cancel"], "heard", ["file:///w"]]
        assert told[6] == [[["accept", "to c"]], [["accept", "to d"]]]
        assert told[7:] == ([["accept", None]] if revision != "2025-06-18" else [])
        assert (await client.call_tool("hand")).content[0].text == "to who ['file:///w'] st"
        read = await client.read_resource("ask://one")
        assert read.contents[0].text == "ask://one ['accept', 'to Which one?']"
        got = await client.get_prompt("asked", {"by_hand": "x"})
        assert got.messages[0].content.text == "to prompt"
        assert (await client.call_tool("done")).content[0].text == '["s"]'


async def test_our_client_without_a_handler(connected, revision):
    """A question that the revision lacks is refused before it is sent."""
    async with connected("Asker") as client:
        if revision == STATELESS:
            with pytest.raises(McpError) as caught:
                await client.call_tool("sample")
            assert caught.value.code == -32021
            assert caught.value.data == {"requiredCapabilities": {"sampling": {}}}
        else:
            result = await client.call_tool("sample")
            assert result.is_error
            assert result.content[0].text == "Capability not supported by the client: sampling"


@eliciting
async def test_a_client_that_cancels_while_its_person_thinks(connected):
    """The question ends at the client with the call; the session goes on."""
    asked, ended = trio.Event(), trio.Event()

    class Slow(ClientHandler):
        async def handle_elicitation(self, params):
            asked.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.set()

    async with connected("Replayer", handler=Slow()) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "watched")
            await asked.wait()
            nursery.cancel_scope.cancel()
        with trio.fail_after(60):
            await ended.wait()
            assert (await client.call_tool("outcomes")).content[0].text == "cancelled"


@eliciting
async def test_many_questions_at_once_are_one_round(person):
    """The limit counts rounds, not questions, in both eras."""
    ops = [["both", [[["elicit", str(number)]] for number in range(60)]]]
    asked = person(by_message)
    result = await asked.call("script", {"ops": ops})
    assert "isError" not in result
    assert len(asked.asked) == 60
