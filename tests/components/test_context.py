"""The context passes everything on to the request that it belongs to."""

import pytest

from noizu_mcp import Context, DefinitionError, InputRequest, InputRequired, McpError, Schema
from noizu_mcp._util import UNSET
from noizu_mcp.components import needed_by


class Name(Schema):
    """A form."""

    name: str


class Nested(Schema):
    """No form."""

    inner: Name


class Request:
    """What a server gives a context; it keeps what it was asked."""

    protocol_version = "2025-11-25"
    completion_arguments = {"a": "1"}
    input_responses = {"q": {}}
    request_state = "st"

    def __init__(self, answer=None, missing=()):
        self.answer = answer
        self.missing = missing
        self.asked = []

    async def ask(self, request, read, timeout):  # noqa: ASYNC109 - as the server does
        needs = needed_by(request)
        if set(needs) & set(self.missing):
            raise McpError(-32021, "missing")
        self.asked.append((request, needs, timeout))
        return read(self.answer)

    async def step(self, function, *args):
        return function(*args)

    async def retry(self, required):
        self.asked.append(required)
        return False


async def test_what_a_question_needs():
    """The capability goes along with each question, and the time it may take, if it is given."""
    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
    request = Request({"action": "accept", "content": {"name": "Ann"}})
    ctx = Context(request)
    assert (await ctx.elicit("m", Name)).content.name == "Ann"
    assert (await ctx.elicit_url("m", "https://example.com", timeout=None)).content is None
    request.answer = said
    assert (await ctx.sample("m", max_tokens=1, timeout=5)).text == "hi"
    await ctx.sample("m", max_tokens=1, tools=[])
    await ctx.sample("m", max_tokens=1, tool_choice={"mode": "none"})
    request.answer = {"roots": []}
    assert await ctx.list_roots() == []
    assert [(needs, timeout) for _, needs, timeout in request.asked] == [
        ({"elicitation": {}}, UNSET),
        ({"elicitation": {"url": {}}}, None),
        ({"sampling": {}}, 5),
        ({"sampling": {"tools": {}}}, UNSET),
        ({"sampling": {"tools": {}}}, UNSET),
        ({"roots": {}}, UNSET),
    ]


async def test_nothing_is_asked_in_vain():
    """A form that is none, and a client that cannot, are found before."""
    request = Request(missing=["elicitation"])
    with pytest.raises(DefinitionError):
        await Context(request).elicit("m", Nested)
    with pytest.raises(McpError):
        await Context(request).elicit("m", Name)
    assert request.asked == []


async def test_what_the_request_has():
    """Answers, state and arguments are those of the request."""
    request = Request()
    ctx = Context(request)
    assert ctx.input_responses == {"q": {}}
    assert ctx.request_state == "st"
    assert ctx.completion_arguments == {"a": "1"}
    assert await ctx.step(max, 1, 2) == 2
    required = InputRequired({"q": InputRequest("roots/list")})
    assert await ctx.retry(required) is False
    assert request.asked == [required]


def test_notices_of_every_kind():
    """`ctx.notify` tells the server."""

    class Server:
        def __init__(self):
            self.told = []
            self.notify_changed = self.notify_resource_updated = self.told.append

    request = Request()
    request.server = Server()
    notify = Context(request).notify
    notify.tools()
    notify.prompts()
    notify.resources()
    notify.resource_updated("x://1")
    assert request.server.told == ["tools", "prompts", "resources", "x://1"]
