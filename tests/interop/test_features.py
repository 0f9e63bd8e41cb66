"""The official clients with the everything server, in all of their revisions.

A driver runs all scenarios once for each mode of its client; each test checks one of them. The
clients answer with a `Person` of the drivers: live requests in sessions, and `InputRequiredResult`s
on 2026-07-28 by the loop of each library.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reports import call, failure, look_up, texts

SERVER = Path(__file__).parent / "everything_server.py"
OLDEST, FORMS, SESSION, LATEST = "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
_HANDSHAKES = [{"kind": "handshake", "version": each} for each in (OLDEST, FORMS, SESSION)]
MODES = {
    "python": [*_HANDSHAKES, {"kind": "auto", "version": LATEST}],
    "typescript-2": [*_HANDSHAKES, {"kind": "pin", "version": LATEST}],
    "typescript-1": _HANDSHAKES,
}

PIXEL_START = "iVBORw0KGgo"
WATCHED = "test://watched-resource"
PERSON = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
RECORD = {"type": "ref/resource", "uri": "test://template/{id}/data"}
BY_HAND = "test_input_required_result_"


def _ask(tool: str, mood: str = "accept", **arguments: Any) -> dict[str, Any]:
    name = tool if mood == "accept" else f"{tool} {mood}"
    return {"name": name, "kind": "ask", "mood": mood, "what": call(tool, **arguments)}


def _prompt(prompt: str, name: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"name": name or prompt, "kind": "prompt", "prompt": prompt, "arguments": arguments}


def _read(name: str, uri: str) -> dict[str, Any]:
    return {"name": name, "kind": "read", "uri": uri}


def _complete(name: str, ref: dict[str, str], argument: str, value: str, **more: Any) -> Any:
    given = {"name": argument, "value": value}
    return {"name": name, "kind": "complete", "ref": ref, "argument": given, **more}


def _notices(name: str, tool: str, **listen: Any) -> dict[str, Any]:
    return {"name": name, "kind": "notices", "tool": tool, "listen": listen}


#: Questions by hand, and the answers; by the end of the name of the tool.
HANDMADE = {
    "elicitation": "Hello, re: What is your name?!",
    "sampling": "The model said: a model's answer",
    "list_roots": "Roots: file:///work",
    "request_state": "The state came back: state-ok",
    "multiple_inputs": "Answered: user_name, greeting, client_roots",
}
#: Scenarios without a form.
FORMLESS = ("sampling", "list_roots")

SCENARIOS: list[dict[str, Any]] = [
    {"name": "handshake", "kind": "handshake"},
    {"name": "list", "kind": "list"},
    call("test_simple_text"),
    call("test_image_content"),
    call("test_audio_content"),
    call("test_embedded_resource"),
    call("test_multiple_content_types"),
    call("test_error_handling"),
    call("test_reconnection"),
    call("json_schema_2020_12_tool", phone="1", contactMethod="phone"),
    call("json_schema_2020_12_tool", "broken arguments", email="a@b", contactMethod="phone"),
    call("test_x_mcp_header", region="north"),
    {"name": "resources", "kind": "resources"},
    _read("text", "test://static-text"),
    _read("blob", "test://static-binary"),
    _read("record", "test://template/123/data"),
    _read("traversal", "test://template/%2e%2e/data"),
    _read("no resource", "test://nonexistent"),
    {"name": "prompts", "kind": "prompts"},
    _prompt("test_simple_prompt"),
    _prompt("test_prompt_with_arguments", arg1="a", arg2="b"),
    _prompt("test_prompt_with_arguments", "missing argument", arg1="a"),
    _prompt("test_prompt_with_embedded_resource", resourceUri="test://example-resource"),
    _prompt("test_prompt_with_image"),
    _prompt("nowhere", "no prompt"),
    _complete("listed", PERSON, "arg1", "testValue1"),
    _complete("computed", PERSON, "arg2", "o", context={"arg1": "one"}),
    _complete("variable", RECORD, "id", "12"),
    _complete("no argument", PERSON, "arg3", ""),
    *(_ask("test_elicitation", mood, message="Who?") for mood in ("accept", "decline", "cancel")),
    _ask("test_elicitation_sep1034_defaults"),
    _ask("test_elicitation_sep1330_enums"),
    _ask("test_streaming_elicitation"),
    _ask("open_page"),
    _ask("open_page", "decline"),
    _ask("test_sampling", prompt="What is a plum?"),
    _ask("use_tools"),
    _ask("roots"),
    *(_ask(BY_HAND + name) for name in HANDMADE),
    _ask(BY_HAND + "elicitation", "decline"),
    _ask(BY_HAND + "multi_round"),
    _ask(BY_HAND + "capabilities"),
    _ask("confer"),
    {
        "name": "asking prompt",
        "kind": "ask",
        "mood": "accept",
        "what": _prompt(BY_HAND + "prompt"),
    },
    {
        "name": "asking resource",
        "kind": "ask",
        "mood": "accept",
        "what": _read("", "test://asking"),
    },
    {"name": "progress", "kind": "progress", "tool": "test_tool_with_progress"},
    {"name": "logging", "kind": "logging", "tool": "test_tool_with_logging", "level": "info"},
    _notices("watch", "touch", resourceSubscriptions=[WATCHED]),
    _notices("watch a text", "touch", resourceSubscriptions=["test://static-text", WATCHED]),
    _notices("tools", "test_trigger_tool_change", toolsListChanged=True),
    _notices("prompts changed", "test_trigger_prompt_change", promptsListChanged=True),
    _notices("resources changed", "trigger_resource_change", resourcesListChanged=True),
]
#: Client capabilities that some tools need.
NEEDS: dict[str, dict[str, Any]] = {
    "test_elicitation": {"elicitation": {}},
    "test_missing_capability": {"sampling": {}},
    "roots": {"roots": {}},
    "open_page": {"elicitation": {"url": {}}},
    f"{BY_HAND}multiple_inputs": {"elicitation": {}},
}
#: For a client without capabilities.
MUTE = [
    call("test_elicitation", message="Who?"),
    *(call(tool) for tool in list(NEEDS)[1:]),
    call("test_simple_text"),
]
GIVE_UP = {"name": "give up", "kind": "give_up", "tool": "linger", "after": "test_simple_text"}
TAMPER = {"name": "tamper", "kind": "tamper", "tool": BY_HAND + "tampered_state"}

# Tests of one run of a client are grouped, so that few workers repeat it.
pytestmark = pytest.mark.parametrize(
    ("driven", "version"),
    [
        # A list, since pytest would group tests by equal texts, across the runs.
        pytest.param(
            (client, transport), [mode["version"]], id=f"{client}-{mode['version']}-{transport}"
        )
        for transport in ("stdio", "http")
        for client, modes in MODES.items()
        for mode in modes
    ],
    indirect=True,
    scope="module",
)


def _scenarios(version: str) -> list[dict[str, Any]]:
    if version == LATEST:
        return [*SCENARIOS, TAMPER, GIVE_UP]
    return [*SCENARIOS, *([] if version == OLDEST else [GIVE_UP])]


@pytest.fixture(scope="module")
def driven(
    request: pytest.FixtureRequest,
    run_once: Callable[..., dict[str, Any]],
    where: Callable[[str, str, str], dict[str, Any]],
) -> dict[str, Any]:
    """Run a client in all its modes, once; return its report, by revision."""
    client, transport = request.param

    def connections(folder: Path) -> list[dict[str, Any]]:
        found = [
            {
                **mode,
                "label": mode["version"],
                "level": "info",
                **where(transport, f"{SERVER}:Interop", str(folder / mode["version"])),
                "scenarios": _scenarios(mode["version"]),
            }
            for mode in MODES[client]
        ]
        return [*found, {**found[-1], "label": "mute", "answers": False, "scenarios": MUTE}]

    return run_once(client, transport, connections)


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> str:
    return request.param[0]


@pytest.fixture
def client(driven: dict[str, Any]) -> str:
    return driven["client"]


@pytest.fixture
def transport(driven: dict[str, Any]) -> str:
    return driven["transport"]


@pytest.fixture
def journal(driven: dict[str, Any], version: str) -> list[str]:
    """Return the lines of the server's journal."""
    return (driven["journals"] / version).read_text(encoding="utf-8").splitlines()


@pytest.fixture
def seen(driven: dict[str, Any], version: str) -> Callable[[str], Any]:
    return look_up(driven[version])


@pytest.fixture
def told(seen: Callable[[str], Any], version: str) -> Callable[..., list[Any]]:
    """Check the result of a tool that asked; return the questions at the client.

    Before 2025-06-18 there are no forms, and the tool must say so.
    """

    def check(name: str, answer: str, *, needs: str = "elicitation", since: str = FORMS) -> Any:
        found = seen(name)
        if version < since:
            refusal = f"Capability not supported by the client: {needs}"
            assert failure(found["result"]) == [refusal]
            assert found["asked"] == []
        else:
            assert texts(found["result"]) == [answer]
        return [_normal(question) for question in found["asked"]]

    return check


def _normal(question: dict[str, Any]) -> dict[str, Any]:
    """Return a question without members that only one library adds."""
    params = {**question["params"]}
    if params.get("mode") == "form":
        del params["mode"]
    return {"method": question["method"], "params": params}


def said(result: dict[str, Any]) -> list[Any]:
    """Return the contents of a prompt's messages, texts as strings; all roles are "user"."""
    assert {message["role"] for message in result["messages"]} == {"user"}
    contents = [message["content"] for message in result["messages"]]
    return [each["text"] if each["type"] == "text" else each for each in contents]


def messages(questions: list[Any]) -> list[str]:
    return [question["params"]["message"] for question in questions]


def fields(questions: list[Any]) -> dict[str, Any]:
    (question,) = questions
    properties: dict[str, Any] = question["params"]["requestedSchema"]["properties"]
    return properties


def test_handshake(seen, client, version):
    """The client reads the capabilities of the server."""
    found = seen("handshake")
    assert found["version"] == version
    offered = dict(found["capabilities"])
    # Extensions came with 2026-07-28.
    assert ("extensions" in offered) == (version == LATEST)
    offered.pop("extensions", None)
    assert offered == {
        "completions": {},
        "logging": {},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": True},
    }


def test_list(seen):
    """The tools of the fixture are in order, with the keywords of their schemas."""
    tools = {tool["name"]: tool for tool in seen("list")["tools"]}
    assert next(iter(tools)) == "test_simple_text"
    assert all(tool["description"] for tool in tools.values())
    schema = tools["json_schema_2020_12_tool"]["inputSchema"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$defs"]["address"]["$anchor"] == "addressDef"
    assert {"allOf", "if", "then", "else", "additionalProperties"} <= set(schema)
    region = tools["test_x_mcp_header"]["inputSchema"]["properties"]["region"]
    assert region["x-mcp-header"] == "Region"


def test_contents(seen):
    """Every kind of content arrives."""
    assert texts(seen("test_simple_text")) == ["This is a simple text response for testing."]
    (image,) = seen("test_image_content")["content"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert image["data"].startswith(PIXEL_START)
    (audio,) = seen("test_audio_content")["content"]
    assert (audio["type"], audio["mimeType"]) == ("audio", "audio/wav")
    (resource,) = seen("test_embedded_resource")["content"]
    assert resource["resource"] == {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    }
    mixed = seen("test_multiple_content_types")["content"]
    assert [block["type"] for block in mixed] == ["text", "image", "resource"]
    assert json.loads(mixed[2]["resource"]["text"]) == {"test": "data", "value": 123}


def test_calls(seen):
    """A failure has its reason, and arguments are validated."""
    (why,) = failure(seen("test_error_handling"))
    assert why == "This tool intentionally returns an error for testing"
    assert texts(seen("test_reconnection")) == ["Reconnection test completed"]
    (valid,) = texts(seen("json_schema_2020_12_tool"))
    assert json.loads(valid.removeprefix("Valid: ")) == {"phone": "1", "contactMethod": "phone"}
    (broken,) = failure(seen("broken arguments"))
    assert "phone" in broken
    assert texts(seen("test_x_mcp_header")) == ["Region: north"]


def test_resources(seen):
    """Resources and templates are listed, without the hidden one."""
    found = seen("resources")
    uris = [each["uri"] for each in found["resources"]]
    assert uris[:3] == ["test://static-text", "test://static-binary", WATCHED]
    assert all(uri.startswith("skill://") for uri in uris[3:])
    assert all(each["name"] and each["mimeType"] for each in found["resources"])
    (template,) = found["templates"]
    assert template["uriTemplate"] == "test://template/{id}/data"


def test_read(seen):
    """Text, bytes and instances of templates are read."""
    assert seen("text")["contents"] == [
        {
            "uri": "test://static-text",
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }
    ]
    (blob,) = seen("blob")["contents"]
    assert blob["mimeType"] == "image/png"
    assert blob["blob"].startswith(PIXEL_START)
    (record,) = seen("record")["contents"]
    assert record["uri"] == "test://template/123/data"
    assert json.loads(record["text"])["data"] == "Data for ID: 123"


@pytest.mark.parametrize("name", ["no resource", "traversal"])
def test_no_resource(seen, client, version, name):
    """A resource that is missing, or would leave its folder, is an error with the URI."""
    error = seen(name)["error"]
    # The second TypeScript client replaces the code of the older revisions by the current one.
    rewritten = client == "typescript-2"
    assert error["code"] == (-32602 if version == LATEST or rewritten else -32002)
    assert error["data"]["uri"].startswith("test://")


def test_prompts(seen):
    """Prompts are listed with their arguments."""
    prompts = {prompt["name"]: prompt for prompt in seen("prompts")}
    assert list(prompts) == [
        "test_simple_prompt",
        "test_prompt_with_arguments",
        "test_prompt_with_embedded_resource",
        "test_prompt_with_image",
        "test_input_required_result_prompt",
    ]
    assert all(prompt["description"] for prompt in prompts.values())
    assert prompts["test_prompt_with_arguments"]["arguments"] == [
        {"name": "arg1", "description": "First", "required": True},
        {"name": "arg2", "description": "Second", "required": True},
    ]


def test_prompt(seen):
    """A prompt has texts, resources and images."""
    assert said(seen("test_simple_prompt")) == ["This is a simple prompt for testing."]
    filled = "Prompt with arguments: arg1='a', arg2='b'"
    assert said(seen("test_prompt_with_arguments")) == [filled]
    embedded, text = said(seen("test_prompt_with_embedded_resource"))
    assert embedded["resource"] == {
        "uri": "test://example-resource",
        "mimeType": "text/plain",
        "text": "Embedded resource content for testing.",
    }
    assert text == "Please process the embedded resource above."
    image, text = said(seen("test_prompt_with_image"))
    assert image["mimeType"] == "image/png"
    assert text == "Please analyze the image above."


def test_bad_prompts(seen):
    """A missing argument and an unknown prompt are errors that name them."""
    missing, unknown = seen("missing argument")["error"], seen("no prompt")["error"]
    assert (missing["code"], unknown["code"]) == (-32602, -32602)
    assert missing["message"].endswith("Missing required arguments: arg2")
    assert unknown["message"].endswith("Unknown prompt: nowhere")


def test_completion(seen):
    """Completions come from a list, from other arguments, or from a template."""
    assert seen("listed")["values"] == ["testValue1", "testValue10"]
    assert seen("computed")["values"] == ["one2"]
    assert seen("variable")["values"] == ["123", "124"]
    assert seen("no argument")["error"]["code"] == -32602


def test_elicitation(told):
    """A form reaches the user; "accept", "decline" and "cancel" reach the tool."""
    answer = "User response: accept, re: Who? <re: Who?>"
    asked = told("test_elicitation", answer)
    for question in asked:
        assert question["method"] == "elicitation/create"
        assert question["params"] == {
            "message": "Who?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "username": {"type": "string", "description": "User name"},
                    "email": {"type": "string", "description": "Address"},
                },
                "required": ["username", "email"],
            },
        }
    told("test_elicitation decline", "User response: decline")
    told("test_elicitation cancel", "User response: cancel")
    told("test_streaming_elicitation", "User response: accept")


def test_defaults(told, version):
    """Since 2025-11-25 all types have defaults; before, only booleans have."""
    whole, before = "John Doe, 30, 95.5, active", "re: Is this you?, 7, 7, active"
    who = before if version == FORMS else whole
    asked = told("test_elicitation_sep1034_defaults", f"Elicitation completed: {who}")
    if version == OLDEST:
        return
    defaults = {name: field.get("default") for name, field in fields(asked).items()}
    assert defaults == {
        "name": None if version == FORMS else "John Doe",
        "age": None if version == FORMS else 30,
        "score": None if version == FORMS else 95.5,
        "status": None if version == FORMS else "active",
        "verified": True,
    }


def test_enums(seen, told, version):
    """Single and multiple choices have titles; 2025-06-18 has no multiple ones."""
    name = "test_elicitation_sep1330_enums"
    if version == FORMS:
        (text,) = failure(seen(name)["result"])
        assert text.startswith("Not supported by revision 2025-06-18: it has no form field for")
        assert seen(name)["asked"] == []
        return
    chosen = {
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1"],
        "titledMulti": ["value1"],
    }
    asked = told(name, f"Elicitation completed: {json.dumps(chosen)}", since=SESSION)
    if version == OLDEST:
        return
    form = fields(asked)
    assert form["untitledSingle"]["enum"] == ["option1", "option2", "option3"]
    assert form["titledSingle"]["oneOf"][1] == {"const": "value2", "title": "Value 2"}
    assert form["legacyEnum"]["enumNames"] == ["One", "Two"]
    assert form["untitledMulti"]["items"]["enum"] == ["option1", "option2", "option3"]
    assert form["titledMulti"]["items"]["anyOf"][2] == {"const": "value3", "title": "Value 3"}


def test_url(told, version):
    """A URL reaches the user since 2025-11-25, which needs an id with it."""
    asked = told("open_page", "accept", needs="elicitation.url", since=SESSION)
    told("open_page decline", "decline", needs="elicitation.url", since=SESSION)
    for question in asked:
        params = question["params"]
        assert bool(params.pop("elicitationId", None)) == (version == SESSION)
        page = "https://example.com/login"
        assert params == {"mode": "url", "message": "Sign in", "url": page}


def test_sampling(told):
    """The client's model is asked, in every revision."""
    (asked,) = told("test_sampling", "LLM response: a model's answer", since=OLDEST)
    assert asked["method"] == "sampling/createMessage"
    assert asked["params"]["maxTokens"] == 100
    (message,) = asked["params"]["messages"]
    assert message == {"role": "user", "content": {"type": "text", "text": "What is a plum?"}}


def test_sampling_with_tools(told):
    """The client's model gets tools since 2025-11-25, and all options."""
    answer = "tiny endTurn: a model's answer"
    for asked in told("use_tools", answer, needs="sampling.tools", since=SESSION):
        params = asked["params"]
        assert [tool["name"] for tool in params["tools"]] == ["look_up"]
        assert params["toolChoice"] == {"mode": "auto"}
        assert (params["systemPrompt"], params["temperature"]) == ("Be brief.", 0.5)
        assert params["stopSequences"] == ["."]


def test_roots(told):
    """The roots of the client arrive, in every revision."""
    asked = told("roots", '[["file:///work", "work"]]', since=OLDEST)
    assert asked == [{"method": "roots/list", "params": {}}]


@pytest.mark.parametrize("name", HANDMADE)
def test_by_hand(told, name):
    """A question by hand reaches clients of both eras."""
    since = OLDEST if name in FORMLESS else FORMS
    asked = told(BY_HAND + name, HANDMADE[name], since=since)
    if name == "multiple_inputs" and asked:
        methods = {question["method"] for question in asked}
        assert methods == {"elicitation/create", "sampling/createMessage", "roots/list"}
    else:
        assert len(asked) <= 1


def test_by_hand_declined(seen, version):
    """A tool that asks by hand gets "decline"."""
    found = seen(f"{BY_HAND}elicitation decline")
    if version == OLDEST:
        failure(found["result"])
    else:
        assert found["error"]["code"] == -1
        assert found["error"]["message"].endswith("The user did not answer")


def test_in_sequence(told):
    """Successive questions are asked once each."""
    answer = "re: What is your name? likes re: And your favorite color?"
    asked = told(f"{BY_HAND}multi_round", answer)
    assert messages(asked) in ([], ["What is your name?", "And your favorite color?"])


def test_as_the_client_can(told):
    """A tool sees the client's capabilities, and asks for those."""
    (asked,) = told(f"{BY_HAND}capabilities", "a model's answer", since=OLDEST)
    assert asked["method"] == "sampling/createMessage"


def test_confer(told, request, version):
    """Questions in a loop and concurrent ones are asked once; the side effect happens once."""
    together = {"left": "re: left", "right": "re: right"}
    answers = ["re: first", "booked for re: first", "re: loop 0", "re: loop 1", together]
    asked = messages(told("confer", json.dumps(answers)))
    if version == OLDEST:
        return
    assert asked[:3] == ["first", "loop 0", "loop 1"]
    assert sorted(asked[3:]) == ["left", "right"]
    lines = request.getfixturevalue("journal")
    assert lines.count("booked for re: first") == 1


@pytest.mark.parametrize("name", ["asking prompt", "asking resource"])
def test_asking_elsewhere(seen, version, name):
    """Prompts and resources can ask, too."""
    found = seen(name)
    if version == OLDEST:
        error = found["error"]
        assert error["code"] == -32600
        assert error["message"].endswith("Capability not supported by the client: elicitation")
        return
    result = found["result"]
    if name == "asking prompt":
        assert said(result) == ["Explain this, in the context of re: What is it about?."]
    else:
        assert [each["text"] for each in result["contents"]] == ["Read by re: reader"]
    assert len(found["asked"]) == 1


def test_progress(seen):
    """Progress arrives while the tool runs."""
    found = seen("progress")
    assert [each[:2] for each in found["seen"]] == [[0, 100], [50, 100], [100, 100]]
    assert texts(found["result"]) == ["Progress reported"]


def test_logging(seen):
    """Log messages arrive while the tool runs, from the client's level on."""
    found = seen("logging")
    said = [(each["level"], each["data"]) for each in found["seen"]]
    words = ("execution started", "processing data", "execution completed")
    assert said == [("info", f"Tool {each}") for each in words]


def test_watch(seen, version):
    """Only watched resources send updates."""
    found = seen("watch")
    assert found["notice"] == ["notifications/resources/updated", WATCHED]
    if version == LATEST:
        assert found["agreed"] == {"resourceSubscriptions": [WATCHED]}


def test_watch_refused(seen, version):
    """An unwatchable resource is refused; 2026-07-28 leaves it out."""
    if version == LATEST:
        found = seen("watch a text")
        assert found["agreed"] == {"resourceSubscriptions": [WATCHED]}
        assert found["notice"] == ["notifications/resources/updated", WATCHED]
        return
    error = seen("watch a text")["error"]
    assert error["code"] == -32600
    assert "not subscribable" in error["message"]


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
def test_changes(seen, version, kind):
    """A changed list sends a notice: to a session, and on request to 2026-07-28."""
    found = seen(kind if kind == "tools" else f"{kind} changed")
    assert found["notice"] == [f"notifications/{kind}/list_changed"]
    if version == LATEST:
        assert found["agreed"] == {f"{kind}ListChanged": True}


def test_tampered_state(seen, version):
    """A modified state is refused."""
    if version != LATEST:
        pytest.skip("only 2026-07-28 sends state through the client")
    error = seen("tamper")["error"]
    assert error["code"] == -32602
    assert error["message"].endswith("Invalid requestState")


def test_give_up(seen, request, version, transport):
    """A cancelled call that waits for a user ends at the client and at the server.

    On 2026-07-28 its response was the question: over HTTP nothing tells the server that no retry
    will follow, and its handler stays parked.
    """
    if version == OLDEST:
        pytest.skip("2025-03-26 cannot ask a person")
    assert texts(seen("give up")) == ["This is a simple text response for testing."]
    lines = request.getfixturevalue("journal")
    assert lines.count("gave up") == (0 if (version, transport) == (LATEST, "http") else 1)


def test_mute_client(driven, client, version, transport):
    """A client without capabilities gets the error of its revision, and can go on."""
    if version != MODES[client][-1]["version"]:
        pytest.skip("tried with the newest revision of each client")
    report = driven["mute"]
    assert "connection" not in report, report["connection"]["failed"]
    for tool, needs in NEEDS.items():
        if version == LATEST:
            error = report[tool]["error"]
            assert error["code"] == -32021
            assert error["data"] == {"requiredCapabilities": needs}
        else:
            (why,) = failure(report[tool])
            assert why.startswith("Capability not supported by the client: ")
    assert texts(report["test_simple_text"])
