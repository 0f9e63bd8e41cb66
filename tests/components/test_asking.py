"""Questions to clients: what a context sends, and the answers as handlers get them."""

import pytest

from noizu_mcp import (
    Accept,
    Cancel,
    Content,
    Context,
    Decline,
    DefinitionError,
    InputRequest,
    PromptMessage,
    ProtocolError,
    Root,
    SamplingResult,
    Schema,
)
from noizu_mcp.components import (
    ELICIT_TIMEOUT,
    SAMPLE_TIMEOUT,
    TIMEOUTS,
    read_by_hand,
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
ANN = {"action": "accept", "content": {"name": "Ann"}}
SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}


class Asked(Context):
    """A context whose client gives one answer; it records the questions."""

    def __init__(self, answer=None):
        self.answer = answer
        self.asked = []

    async def _ask(self, request, read, seconds):
        self.asked.append((request, seconds))
        return read(self.answer)


# Its abstract methods are not needed here.
Asked.__abstractmethods__ = frozenset()


async def test_the_time_of_a_question():
    """A question has its timeout, if given."""
    ctx = Asked(ANN)
    assert (await ctx.elicit("m", Name)).content.name == "Ann"
    assert (await ctx.elicit_url("m", "https://example.com", timeout=None)).content is None
    ctx.answer = SAID
    assert (await ctx.sample("m", max_tokens=1, timeout=5)).text == "hi"
    await ctx.sample("m", max_tokens=1)
    ctx.answer = {"roots": []}
    assert await ctx.list_roots() == []
    assert [str(timeout) for _, timeout in ctx.asked] == [
        "Unset.UNSET",
        "None",
        "5",
        "Unset.UNSET",
        "Unset.UNSET",
    ]


async def test_nothing_is_asked_in_vain():
    """A form that is not flat is detected before sending."""
    ctx = Asked()
    with pytest.raises(DefinitionError):
        await ctx.elicit("m", Nested)
    assert ctx.asked == []


async def test_forms_of_all_declarations():
    """A class returns instances, a JSON Schema mappings; the shape of a class is cached."""
    ctx = Asked(ANN)
    assert await ctx.elicit("Who?", Name) == Accept(Name(name="Ann"))
    assert await ctx.elicit("Who?", RAW) == Accept({"name": "Ann"})
    await ctx.elicit("Who?", Name)
    first, _, again = (request.params["requestedSchema"] for request, *_ in ctx.asked)
    assert first is again


async def test_what_is_no_form():
    """The error has the field, and the class."""
    with pytest.raises(DefinitionError, match=r"Nested\.inner"):
        await Asked().elicit("Who?", Nested)
    with pytest.raises(DefinitionError, match="elicit"):
        await Asked().elicit("?", {"type": "object", "properties": {"x": {"type": "object"}}})


async def test_the_request_of_a_form():
    """It has the message and the flat schema; a question without a form stays as it is."""
    ctx = Asked({"action": "cancel"})
    await ctx.elicit("Who?", Name)
    await ctx.elicit_url("Log in", "https://example.com")
    request, url = (request for request, _ in ctx.asked)
    assert request.method == "elicitation/create"
    assert request.params["message"] == "Who?"
    assert request.params["requestedSchema"]["required"] == ["name"]
    for other in (url, InputRequest("roots/list")):
        assert read_by_hand(other) is other


async def test_the_request_of_a_url():
    """The request has the mode `url`; content in its answer is ignored."""
    ctx = Asked({"action": "accept", "content": {"x": 1}})
    assert await ctx.elicit_url("Log in", "https://example.com") == Accept(None)
    params = ctx.asked[0][0].params
    assert params == {"mode": "url", "message": "Log in", "url": "https://example.com"}


async def test_the_other_answers():
    """Their content is ignored."""
    assert await Asked({"action": "decline", "content": 5}).elicit("?", Name) == Decline()
    assert await Asked({"action": "cancel"}).elicit("?", Name) == Cancel()


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
async def test_what_is_no_answer(answer):
    """A malformed answer, or an answer that does not fit the form, is refused."""
    with pytest.raises(ProtocolError):
        await Asked(answer).elicit("?", Name)


async def sampled(messages, **options):
    """Return the parameters of a question to the model."""
    ctx = Asked(SAID)
    await ctx.sample(messages, **{"max_tokens": 5, **options})
    return ctx.asked[0][0].params


async def test_the_messages_of_a_model():
    """Messages are a string, or a list of everything that can be one."""
    user = {"role": "user", "content": {"type": "text", "text": "hi"}}
    assert await sampled("hi") == {"messages": [user], "maxTokens": 5}
    said = SamplingResult(role="assistant", content=Content.text("yes"), model="m")
    params = await sampled(["hi", PromptMessage.user("hi"), user, said], temperature=0)
    assert params["messages"][:3] == [user, user, user]
    assert params["messages"][3] == {"role": "assistant", "content": said.to_wire()["content"]}
    assert params["temperature"] == 0
    assert "tools" not in params
    with pytest.raises(TypeError, match="is no message"):
        await sampled([5])


async def test_the_tools_of_a_model():
    """Tools are definitions as listed by clients, or mappings."""
    wire = {"name": "t", "inputSchema": {"type": "object"}}
    typed = ToolDefinition("t", input_schema={"type": "object"})
    assert (await sampled("hi", tools=[typed, wire]))["tools"] == [wire, wire]
    assert (await sampled("hi", tools=[]))["tools"] == []


async def test_what_cannot_be_asked():
    """A question that is not a valid request raises in the handler, before it is sent."""
    ctx = Asked(ANN)
    with pytest.raises(TypeError, match="the message to the user must be a text, got 5"):
        await ctx.elicit(5, Name)
    with pytest.raises(TypeError, match="the message to the user"):
        await ctx.elicit_url(None, "https://example.com")
    for url in ("example.com", "/login", "https://a b", "", 5):
        with pytest.raises(ValueError, match="must be an absolute URL like"):
            await ctx.elicit_url("Log in", url)
    for number in ("5", 0, 1.5, True):
        with pytest.raises(ValueError, match="max_tokens must be a whole number above 0"):
            await ctx.sample("hi", max_tokens=number)
    assert ctx.asked == []


async def test_roots():
    """Roots have everything that the client sent."""
    (root,) = await Asked({"roots": [{"uri": "file:///a", "name": "A"}]}).list_roots()
    assert isinstance(root, Root)
    assert (root.uri, root.name) == ("file:///a", "A")
    for answer in (None, {}, {"roots": {}}, {"roots": [5]}, {"roots": [{}]}):
        with pytest.raises(ProtocolError):
            await Asked(answer).list_roots()


def test_everybody_has_a_time():
    """Questions asked by hand have the same default timeout."""
    assert TIMEOUTS["elicitation/create"] == ELICIT_TIMEOUT
    assert TIMEOUTS["sampling/createMessage"] == SAMPLE_TIMEOUT
    assert set(TIMEOUTS) == {"elicitation/create", "sampling/createMessage", "roots/list"}
