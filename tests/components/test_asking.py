"""Questions to clients on the wire, and answers as handlers get them."""

import pytest

from noizu_mcp import (
    Accept,
    Cancel,
    Content,
    Decline,
    DefinitionError,
    InputRequest,
    PromptMessage,
    ProtocolError,
    Root,
    SamplingResult,
    Schema,
)
from noizu_mcp.components import ELICIT_TIMEOUT, SAMPLE_TIMEOUT, TIMEOUTS
from noizu_mcp.components._client_requests import (
    adapt_request,
    elicit_request,
    elicit_url_request,
    form_shape,
    read_by_hand,
    read_elicited,
    read_roots,
    sample_request,
)
from noizu_mcp.types import ToolDefinition


class Name(Schema):
    """A form."""

    name: str
    age: int | None = None


class Nested(Schema):
    """No form."""

    inner: Name


RAW = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SEVERAL = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}},
}


def test_forms_of_all_declarations():
    """A class returns instances, a JSON Schema mappings; the shape of a class is cached."""
    shape = form_shape(Name)
    assert form_shape(Name) is shape
    assert read_elicited({"action": "accept", "content": {"name": "Ann"}}, shape) == Accept(
        Name(name="Ann")
    )
    answer = read_elicited({"action": "accept", "content": {"name": "Ann"}}, form_shape(RAW))
    assert answer == Accept({"name": "Ann"})


def test_what_is_no_form():
    """The error has the field, and the class."""
    with pytest.raises(DefinitionError, match=r"Nested\.inner"):
        form_shape(Nested)
    with pytest.raises(DefinitionError, match="elicit"):
        form_shape({"type": "object", "properties": {"x": {"type": "object"}}})


def test_the_request_of_a_form():
    """A form is adapted to the revision, or is None if the revision cannot express it."""
    _, request = adapt_request(elicit_request("Who?", form_shape(Name)), "2025-06-18")
    assert request.method == "elicitation/create"
    assert request.params["message"] == "Who?"
    assert request.params["requestedSchema"]["required"] == ["name"]
    several = elicit_request("Which?", form_shape(SEVERAL))
    assert adapt_request(several, "2025-06-18")[1] is None
    assert adapt_request(several, "2025-11-25")[1] == several
    for other in (elicit_url_request("Log in", "https://example.com"), InputRequest("roots/list")):
        assert adapt_request(other, "2025-06-18")[1] is other
        assert read_by_hand(other) is other


def test_the_request_of_a_url():
    """The request has the mode `url`."""
    params = elicit_url_request("Log in", "https://example.com").params
    assert params == {"mode": "url", "message": "Log in", "url": "https://example.com"}
    assert read_elicited({"action": "accept", "content": {"x": 1}}, None) == Accept(None)


def test_the_other_answers():
    """Their content is ignored."""
    shape = form_shape(Name)
    assert read_elicited({"action": "decline", "content": 5}, shape) == Decline()
    assert read_elicited({"action": "cancel"}, None) == Cancel()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        5,
        [],
        {},
        {"action": "ACCEPT"},
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"name": 5}},
        {"action": "accept", "content": {"name": "x", "age": "old"}},
    ],
)
def test_what_is_no_answer(answer):
    """A malformed answer, or an answer that does not fit the form, is refused."""
    with pytest.raises(ProtocolError):
        read_elicited(answer, form_shape(Name))


def test_the_messages_of_a_model():
    """Messages are a string, or a list of everything that can be one."""
    user = {"role": "user", "content": {"type": "text", "text": "hi"}}
    assert sample_request("hi", 5, {}).params == {"messages": [user], "maxTokens": 5}
    said = SamplingResult(role="assistant", content=Content.text("yes"), model="m")
    messages = ["hi", PromptMessage.user("hi"), user, said]
    params = sample_request(messages, 5, {"temperature": 0, "tools": None}).params
    assert params["messages"][:3] == [user, user, user]
    assert params["messages"][3] == {"role": "assistant", "content": said.to_wire()["content"]}
    assert params["temperature"] == 0
    assert "tools" not in params
    with pytest.raises(TypeError, match="is no message"):
        sample_request([5], 5, {})


def test_the_tools_of_a_model():
    """Tools are definitions as listed by clients, or mappings."""
    wire = {"name": "t", "inputSchema": {"type": "object"}}
    typed = ToolDefinition("t", input_schema={"type": "object"})
    assert sample_request("hi", 5, {"tools": [typed, wire]}).params["tools"] == [wire, wire]
    assert sample_request("hi", 5, {"tools": []}).params["tools"] == []


def test_what_cannot_be_asked():
    """A question that is not a valid request raises in the handler, before it is sent."""
    shape = form_shape(Name)
    with pytest.raises(TypeError, match="the message to the user must be a text, got 5"):
        elicit_request(5, shape)
    with pytest.raises(TypeError, match="the message to the user"):
        elicit_url_request(None, "https://example.com")
    for url in ("example.com", "/login", "https://a b", "", 5):
        with pytest.raises(ValueError, match="must be an absolute URL like"):
            elicit_url_request("Log in", url)
    for number in ("5", 0, 1.5, True):
        with pytest.raises(ValueError, match="max_tokens must be a whole number above 0"):
            sample_request("hi", number, {})


def test_roots():
    """Roots have everything that the client sent."""
    (root,) = read_roots({"roots": [{"uri": "file:///a", "name": "A"}]})
    assert isinstance(root, Root)
    assert (root.uri, root.name) == ("file:///a", "A")
    for answer in (None, {}, {"roots": {}}, {"roots": [5]}, {"roots": [{}]}):
        with pytest.raises(ProtocolError):
            read_roots(answer)


def test_everybody_has_a_time():
    """Questions asked by hand have the same default timeout."""
    assert TIMEOUTS["elicitation/create"] == ELICIT_TIMEOUT
    assert TIMEOUTS["sampling/createMessage"] == SAMPLE_TIMEOUT
    assert set(TIMEOUTS) == {"elicitation/create", "sampling/createMessage", "roots/list"}
