"""Values of prompts and completion."""

from typing import Any

import pytest

from noizu_mcp import ProtocolError
from noizu_mcp.types import (
    MAX_COMPLETIONS,
    Completion,
    Content,
    Icon,
    PromptArgument,
    PromptDefinition,
    PromptMessage,
    PromptResult,
    Reference,
    ResourceContents,
    as_messages,
)

PROMPT = PromptDefinition(
    "code_review",
    title="Code review",
    description="Review code",
    arguments=[
        PromptArgument("code", title="Code", description="The code", required=True),
        PromptArgument("style"),
    ],
    icons=[Icon("data:,")],
    meta={"k": 1},
)
RESULT = PromptResult(
    [
        PromptMessage.user("Please process the embedded resource above."),
        PromptMessage.assistant(Content.image(b"\x00", "image/png")),
        PromptMessage.user(
            Content.resource(ResourceContents("test://example", "text/plain", text="x"))
        ),
    ],
    "D",
    {"k": 1},
)
TEXT = {"type": "text", "text": "x"}


def test_official_definition(official: Any) -> None:
    """A prompt is valid in every revision, and restored from its wire form."""
    official("Prompt", PROMPT.to_wire())
    assert PromptDefinition.from_wire(PROMPT.to_wire()) == PROMPT
    assert PromptDefinition("p").to_wire() == {"name": "p"}


def test_official_results(official: Any, revision: str) -> None:
    """Results are valid in every revision; 2026-07-28 requires the envelope, too."""
    envelope = {"resultType": "complete"} if revision == "2026-07-28" else {}
    official("GetPromptResult", {**RESULT.to_wire(), **envelope})
    full = Completion(["a"] * 200, 200, meta={"k": 1})
    official("CompleteResult", {**full.to_wire(), **envelope})


def test_official_prompt_reference(official: Any) -> None:
    """The reference to a prompt is valid in every revision."""
    official("PromptReference", Reference("ref/prompt", name="p", title="P").to_wire())


def test_official_resource_reference(official: Any, revision: str) -> None:
    """The reference to a template is valid, with its former name in older revisions."""
    name = "ResourceReference" if revision == "2025-03-26" else "ResourceTemplateReference"
    official(name, Reference.resource("a:{b}").to_wire())


def test_what_a_message_is_made_of() -> None:
    """A string, a block and a content mapping become the one block of a message."""
    message = PromptMessage("user", "x")
    assert message == PromptMessage.user(Content.text("x")) == PromptMessage.user(TEXT)
    assert (message.role, message.content.text) == ("user", "x")
    assert PromptMessage.assistant("x").to_wire() == {"role": "assistant", "content": TEXT}


def test_message_from_a_peer() -> None:
    """Unknown keys are kept."""
    wire = {"role": "user", "content": TEXT, "new": 1}
    assert PromptMessage.from_wire(wire).extra == {"new": 1}
    assert PromptMessage.from_wire(wire).to_wire() == wire


@pytest.mark.parametrize(
    ("role", "content", "message"),
    [
        ("system", "x", "a message is of the role 'user' or 'assistant', got 'system'"),
        ("user", 3, "a message has one text or content block, got int; make a message of each"),
        ("user", ["x"], "a message has one text or content block, got list; make a message of"),
    ],
)
def test_wrong_messages(role: Any, content: Any, message: str) -> None:
    """The error says what to write."""
    with pytest.raises(TypeError) as caught:
        PromptMessage(role, content)
    assert str(caught.value).startswith(message)


def test_what_messages_are_made_of() -> None:
    """One value or a list becomes messages; values without a role are the user's."""
    user = PromptMessage.user("x")
    assert as_messages("x") == as_messages(user) == as_messages(TEXT) == (user,)
    assert as_messages(Content.text("x")) == as_messages({"role": "user", "content": TEXT})
    assert as_messages(["x", PromptMessage.assistant("y")]) == (user, PromptMessage.assistant("y"))
    assert PromptResult("x").messages == (user,)
    with pytest.raises(TypeError, match=r"expected a message, got int; make one: PromptMessage"):
        as_messages([3])


def test_prompt_result_from_a_peer() -> None:
    """Unknown keys are kept, except the envelope of 2026-07-28."""
    wire = {"resultType": "complete", **RESULT.to_wire(), "other": 1}
    result = PromptResult.from_wire(wire)
    assert (result.messages, result.description) == (RESULT.messages, "D")
    assert (result.meta, result.extra) == ({"k": 1}, {"other": 1})
    assert result.to_wire() == {**RESULT.to_wire(), "other": 1}
    assert PromptResult("x").to_wire() == {"messages": [{"role": "user", "content": TEXT}]}


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ([], "result: expected an object, got []"),
        ({}, "result.messages: expected a list, got nothing"),
        ({"messages": [{}]}, "result.messages[0].role: expected a string, got nothing"),
        (
            {"messages": [{"role": "system", "content": TEXT}]},
            "result.messages[0]: a message is of the role 'user' or 'assistant', got 'system'",
        ),
        (
            {"messages": [{"role": "user", "content": {"type": "text"}}]},
            "result.messages[0].content.text: expected a string, got nothing",
        ),
    ],
)
def test_prompt_result_errors(wire: Any, message: str) -> None:
    """A malformed value of a peer is a protocol error with the field."""
    with pytest.raises(ProtocolError) as caught:
        PromptResult.from_wire(wire)
    assert str(caught.value) == message


MANY = [str(i) for i in range(MAX_COMPLETIONS + 1)]


@pytest.mark.parametrize(
    ("completion", "inner"),
    [
        (Completion(), {"values": []}),
        (Completion(["a"], 0), {"values": ["a"], "total": 0}),
        (Completion(["a"], has_more=False), {"values": ["a"]}),
        (Completion(["a"], has_more=True), {"values": ["a"], "hasMore": True}),
        (Completion(MANY), {"values": MANY[:-1], "hasMore": True}),
        (Completion(MANY[:-1]), {"values": MANY[:-1]}),
        (Completion(MANY, 101, has_more=False), {"values": MANY[:-1], "total": 101}),
    ],
)
def test_completion_on_the_wire(completion: Completion, inner: Any) -> None:
    """At most 100 values are written, and `hasMore` only if there are more."""
    assert completion.to_wire() == {"completion": inner}


def test_completion_from_a_peer() -> None:
    """Unknown keys of both objects are kept; absent members are None."""
    wire = {
        "resultType": "complete",
        "completion": {"values": ["a"], "total": 3, "hasMore": True, "new": 1},
        "_meta": {"k": 1},
        "other": 2,
    }
    found = Completion.from_wire(wire)
    assert (found.values, found.total, found.has_more) == (("a",), 3, True)
    assert (found.meta, found.extra) == ({"k": 1}, {"other": 2, "completion": {"new": 1}})
    del wire["resultType"]
    assert found.to_wire() == wire
    bare = Completion.from_wire({"completion": {"values": []}})
    assert bare == Completion()


@pytest.mark.parametrize("values", ["abc", [1], [None]])
def test_completions_are_texts(values: Any) -> None:
    """A string is not split into letters, and other values are refused."""
    with pytest.raises(TypeError):
        Completion(values)


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ({}, "result.completion: expected an object, got nothing"),
        ({"completion": {}}, "result.completion.values: expected a list, got nothing"),
        ({"completion": {"values": [1]}}, "result.completion.values[0]: expected a string, got 1"),
    ],
)
def test_completion_errors(wire: Any, message: str) -> None:
    """A malformed value of a peer is a protocol error with the field."""
    with pytest.raises(ProtocolError) as caught:
        Completion.from_wire(wire)
    assert str(caught.value) == message


@pytest.mark.parametrize("reference", [Reference.prompt("p"), Reference.resource("a:{b}")])
def test_references_read_back(reference: Reference) -> None:
    """The type selects the class."""
    assert Reference.from_wire(reference.to_wire(), "ref") == reference


def test_references_on_the_wire() -> None:
    """Each has the members of its type."""
    assert Reference.prompt("p").to_wire() == {"type": "ref/prompt", "name": "p"}
    assert Reference.resource("a:{b}").to_wire() == {"type": "ref/resource", "uri": "a:{b}"}


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (None, "ref: expected an object, got null"),
        ({}, "ref.type: expected a string, got nothing"),
        ({"type": "ref/tool"}, "ref: type: expected ref/prompt or ref/resource, got 'ref/tool'"),
        ({"type": "ref/prompt"}, "ref: name: expected a string, got nothing"),
        ({"type": "ref/resource", "uri": 1}, "ref.uri: expected a string, got 1"),
    ],
)
def test_reference_errors(wire: Any, message: str) -> None:
    """The error has the invalid field."""
    with pytest.raises(ProtocolError) as caught:
        Reference.from_wire(wire, "ref")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PromptResult("x", 3), "PromptResult.description: expected a string, got 3"),
        (lambda: PromptResult("x", meta=[]), "PromptResult.meta: expected an object, got []"),
        (lambda: Completion([], "3"), "Completion.total: expected an integer, got '3'"),
        (lambda: Completion([], True), "Completion.total: expected an integer, got True"),
    ],
)
def test_other_fields_are_checked(make: Any, message: str) -> None:
    """A value that could not be sent raises when it is made."""
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == message
