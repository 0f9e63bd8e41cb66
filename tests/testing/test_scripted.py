"""`ScriptedHandler`: answers from data, and a record of the questions."""

import asyncio

import pytest

from noizu_mcp import (
    Accept,
    Cancel,
    Context,
    Decline,
    McpError,
    PromptMessage,
    Root,
    SamplingResult,
    Schema,
    Server,
    SyncClient,
    Toolkit,
    aio,
    connect,
    mcp,
)
from noizu_mcp.testing import Asked, ScriptedHandler

VERSIONS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


ROOTS = '["file:///a","file:///b"]'


class Form(Schema):
    """A form."""

    name: str


class Kit(Toolkit):
    """Asks for everything."""

    @mcp
    async def greet(self, question: str, ctx: Context) -> str:
        try:
            answer = await ctx.elicit(question, Form)
        except McpError as error:
            return f"{error.code}: {error.message}"
        return answer.content.name if isinstance(answer, Accept) else answer.action

    @mcp
    async def think(self, question: str, ctx: Context) -> str:
        result = await ctx.sample([PromptMessage.user(question)], max_tokens=9)
        return f"{result.model}: {result.content[0].text}"

    @mcp
    async def look(self, ctx: Context) -> list[str]:
        return [str(root.uri) for root in await ctx.list_roots()]

    @mcp
    async def tell(self, ctx: Context) -> str:
        await ctx.warning("hm")
        return "told"


class Curious(Server, name="curious", version="1"):
    tools = [Kit]


async def text(client, tool, *questions):
    """Call a tool with each question; return the texts."""
    return [
        (await client.call_tool(tool, {"question": each})).content[0].text for each in questions
    ]


@VERSIONS
async def test_answers_in_order(version):
    """Each item of a list answers one question; every kind of answer works."""

    async def later(params):
        return {"name": params["message"].upper()}

    handler = ScriptedHandler(
        elicitation=[
            {"name": "Ada"},
            Form(name="Bob"),
            Accept({"name": "Cy"}),
            Decline(),
            Cancel(),
            lambda params: {"name": params["message"]},
            later,
        ]
    )
    async with connect(Curious, handler=handler, version=version) as client:
        found = await text(client, "greet", *"abcdefg")
    assert found == ["Ada", "Bob", "Cy", "decline", "cancel", "f", "G"]
    assert [each.message for each in handler.asked] == [*"abcdefg"]
    assert handler.asked[0].method == "elicitation/create"
    assert handler.asked[0].params["message"] == "a"
    handler.done()


@VERSIONS
async def test_answers_by_pattern(version):
    """A single answer serves any number of questions; a list is used up."""
    handler = ScriptedHandler(
        elicitation={"^name": {"name": "Ada"}, "city|town": [{"name": "Ulm"}, {"name": "Bonn"}]}
    )
    async with connect(Curious, handler=handler, version=version) as client:
        found = await text(client, "greet", "a city?", "name?", "name!", "which town?")
    assert found == ["Ulm", "Ada", "Ada", "Bonn"]
    handler.done()


@VERSIONS
async def test_sampling(version):
    """A string is the answer of a model; a result and a mapping are sent unchanged."""
    said = SamplingResult(role="assistant", content="two", model="mine")
    handler = ScriptedHandler(
        sampling=["one", said, said.to_wire(), lambda params: str(params["maxTokens"])]
    )
    async with connect(Curious, handler=handler, version=version) as client:
        found = await text(client, "think", *"abcd")
    assert found == ["scripted: one", "mine: two", "mine: two", "scripted: 9"]
    assert [each.message for each in handler.asked] == [*"abcd"]
    handler.done()


@VERSIONS
async def test_roots_and_notifications(version):
    """Roots are sent each time; notifications are recorded."""
    handler = ScriptedHandler(roots=["file:///a", Root("file:///b")])
    async with connect(Curious, handler=handler, version=version) as client:
        await client.set_log_level("warning")
        for _ in range(2):
            assert (await client.call_tool("look")).content[0].text == ROOTS
        await client.call_tool("tell")
    assert handler.asked == [Asked("roots/list", {}, "")] * 2
    (_, params), *_ = [each for each in handler.notifications if each[0] == "notifications/message"]
    assert params["data"] == "hm"
    handler.done()


async def test_what_is_not_given_is_not_offered():
    """Each argument offers its own capability only."""
    for given in ({}, {"elicitation": []}, {"sampling": []}, {"roots": []}):
        handler = ScriptedHandler(**given)
        async with connect(Curious, handler=handler) as client:
            offered = client._session.peer.capabilities
        assert {*offered} == {*given}
        handler.done()


async def test_an_exception():
    """It is raised in the handler: the server gets an `McpError` unchanged, and no other."""
    handler = ScriptedHandler(elicitation=[McpError(-1, "not now"), ValueError("a secret")])
    async with connect(Curious, handler=handler, version="2025-11-25") as client:
        assert await text(client, "greet", "a", "b") == ["-1: not now", "-32603: Handler failed"]
    handler.done()


async def test_an_exception_on_2026_07_28():
    """It cannot be sent to the server: the call raises it."""
    handler = ScriptedHandler(elicitation=[McpError(-1, "not now")])
    async with connect(Curious, handler=handler, version="2026-07-28") as client:
        with pytest.raises(McpError, match="not now"):
            await client.call_tool("greet", {"question": "?"})
    handler.done()


async def test_a_question_that_was_not_expected():
    """It fails, and `done` reports it."""
    handler = ScriptedHandler(elicitation={"name": {"name": "Ada"}})
    async with connect(Curious, handler=handler, version="2025-11-25") as client:
        found = await text(client, "greet", "how old?")
    assert found == ["-32603: no answer is scripted for: how old?"]
    with pytest.raises(AssertionError) as caught:
        handler.done()
    assert str(caught.value) == (
        "not asked for: {'name': 'Ada'} for 'name'; no answer for: elicitation/create: how old?"
    )


def test_answers_that_are_left():
    """`done` lists the unused answers."""
    handler = ScriptedHandler(elicitation=[Decline()], sampling={"x": ["a", "b"]})
    with pytest.raises(AssertionError) as caught:
        handler.done()
    assert str(caught.value) == (
        "not asked for: Decline(); not asked for: 'a' for 'x'; not asked for: 'b' for 'x'"
    )


def test_an_invalid_script():
    """A single answer is not a script."""
    with pytest.raises(TypeError, match="elicitation must be a list of answers, or a mapping"):
        ScriptedHandler(elicitation="yes")
    with pytest.raises(TypeError, match="sampling must be a list of answers, or a mapping"):
        ScriptedHandler(sampling=Decline())


async def test_a_subclass_that_offers_more():
    """A method of a subclass that calls the base without a script gets no answer."""

    class Mine(ScriptedHandler):
        def __init__(self):
            super().__init__()
            self.handle_elicitation = super().handle_elicitation

    handler = Mine()
    async with connect(Curious, handler=handler, version="2025-11-25") as client:
        assert await text(client, "greet", "?") == ["-32603: no answer is scripted for: ?"]


@VERSIONS
def test_under_asyncio_and_in_plain_code(version):
    """The same script works for every client."""

    async def main():
        handler = ScriptedHandler(elicitation=[{"name": "Ada"}])
        async with aio.connect(Curious, handler=handler, version=version) as client:
            assert await text(client, "greet", "a") == ["Ada"]
        handler.done()

    asyncio.run(main())
    handler = ScriptedHandler(elicitation=[{"name": "Ada"}])
    with SyncClient(Curious, handler=handler, version=version) as client:
        assert client.call_tool("greet", {"question": "a"}).content[0].text == "Ada"
    handler.done()
