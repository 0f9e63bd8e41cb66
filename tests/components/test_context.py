"""Questions of a context."""

from contextlib import asynccontextmanager

import pytest
import trio.testing

from noizu_mcp import Context, DefinitionError, McpError, Schema, Server, connect, mcp
from noizu_mcp._util import UNSET
from noizu_mcp.auth import InsufficientScope
from noizu_mcp.components import Notify, adapt_request


class Name(Schema):
    """A form."""

    name: str


class Nested(Schema):
    """No form."""

    inner: Name


class Asked(Context):
    """A context whose client gives one answer; it records the questions."""

    protocol_version = "2025-11-25"

    def __init__(self, answer=None, missing=()):
        self.answer = answer
        self.missing = missing
        self.asked = []

    async def _ask(self, request, read, seconds):
        needs, _ = adapt_request(request, self.protocol_version)
        if set(needs) & set(self.missing):
            raise McpError(-32021, "missing")
        self.asked.append((request, needs, seconds))
        return read(self.answer)


# Its abstract methods are not needed here.
Asked.__abstractmethods__ = frozenset()


async def test_what_a_question_needs():
    """A question has its required capability, and its timeout, if given."""
    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
    ctx = Asked({"action": "accept", "content": {"name": "Ann"}})
    assert (await ctx.elicit("m", Name)).content.name == "Ann"
    assert (await ctx.elicit_url("m", "https://example.com", timeout=None)).content is None
    ctx.answer = said
    assert (await ctx.sample("m", max_tokens=1, timeout=5)).text == "hi"
    await ctx.sample("m", max_tokens=1, tools=[])
    await ctx.sample("m", max_tokens=1, tool_choice={"mode": "none"})
    ctx.answer = {"roots": []}
    assert await ctx.list_roots() == []
    assert [(needs, timeout) for _, needs, timeout in ctx.asked] == [
        ({"elicitation": {}}, UNSET),
        ({"elicitation": {"url": {}}}, None),
        ({"sampling": {}}, 5),
        ({"sampling": {"tools": {}}}, UNSET),
        ({"sampling": {"tools": {}}}, UNSET),
        ({"roots": {}}, UNSET),
    ]


async def test_nothing_is_asked_in_vain():
    """A form that is not flat, and a client without forms, are detected before sending."""
    ctx = Asked(missing=["elicitation"])
    with pytest.raises(DefinitionError):
        await ctx.elicit("m", Nested)
    with pytest.raises(McpError):
        await ctx.elicit("m", Name)
    assert ctx.asked == []


def test_notices_of_every_kind():
    """`ctx.notify` notifies the server."""

    class Server:
        def __init__(self):
            self.told = []
            self.notify_changed = self.notify_resource_updated = self.told.append

    server, here = Server(), []
    notify = Notify(server, here.append)
    notify.tools()
    notify.prompts()
    notify.resources()
    notify.tools(here=True)
    notify.resource_updated("x://1")
    assert server.told == ["tools", "prompts", "resources", "x://1"]
    assert here == ["tools"]


async def test_the_state_of_a_context_may_have_a_type():
    """A parameter annotated `Context[…]` gets the context, whatever its name."""

    @mcp
    def count(request: Context[int], step: int) -> int:
        return request.state + step

    class Counter(Server, name="counter", version="1"):
        tools = [count]

        @asynccontextmanager
        async def lifespan(self):
            yield 40

    async with connect(Counter) as client:
        assert (await client.call_tool("count", {"step": 2})).text == "42"


async def test_init_has_threads_scopes_and_no_stream():
    """`init` may use threads and check scopes, though it belongs to no request."""

    class Sets(Server, name="sets", version="1"):
        async def init(self, ctx):
            await ctx.release_stream()
            self.threads = ctx.threads
            try:
                ctx.require("read")
            except InsufficientScope as error:
                self.missing = error.scopes

    server = Sets()
    async with connect(server, version="2025-11-25") as client:
        await client.ping()
        await trio.testing.wait_all_tasks_blocked()
    assert server.threads is not None
    assert server.missing == ("read",)
