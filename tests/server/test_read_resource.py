"""`ctx.read_resource`: a handler reads a resource of its server as a client would."""

import pytest

from noizu_mcp import (
    Accept,
    ClientHandler,
    InputRequest,
    InputRequired,
    McpError,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Toolkit,
    connect,
    mcp,
)

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


class Name(Schema):
    name: str


class Config(Resource, uri="config://app", mime_type="application/json", hidden=True):
    def read(self):
        return {"theme": "dark"}


class Row(ResourceTemplate, uri_template="row://{id}"):
    async def read(self, uri, args, ctx):
        return f"{args.id} of {ctx.protocol_version}"


class Asking(Resource, uri="asking://app"):
    async def read(self, uri, ctx):
        return (await ctx.elicit("Who?", Name)).content.name


class ByHand(Resource, uri="by-hand://app"):
    async def read(self, uri, ctx):
        return InputRequired({"q": InputRequest("roots/list", {})})


class Kit(Toolkit):
    @mcp(input={"uri": str})
    async def show(self, args, ctx):
        part = (await ctx.read_resource(args.uri)).contents[0]
        return f"{part.mime_type} {part.text}"


class Shop(Server, name="shop", version="1"):
    tools = [Kit]
    resources = [Config, Row, Asking, ByHand]


class Computed(Shop, name="computed", version="1"):
    async def read_resource(self, uri, ctx):
        return f"computed {uri}"


class Person(ClientHandler):
    async def handle_elicitation(self, params):
        return Accept({"name": "Ann"})

    async def list_roots(self):
        return []


async def show(server, uri, version="2025-11-25"):
    async with connect(server, version=version, handler=Person()) as client:
        result = await client.call_tool("show", {"uri": uri})
        return result.is_error, result.content[0].text


@pytest.mark.parametrize("version", REVISIONS)
async def test_what_a_handler_reads(version):
    """Hidden resources and template instances can be read; unknown ones are an error."""
    assert await show(Shop, "config://app", version) == (
        False,
        'application/json {"theme":"dark"}',
    )
    assert await show(Shop, "row://7", version) == (False, f"None 7 of {version}")
    with pytest.raises(McpError, match="Resource not found"):
        await show(Shop, "row://a/b", version)


@pytest.mark.parametrize("version", REVISIONS[1:])
async def test_a_resource_that_asks(version):
    """A resource asks as part of the request that its handler serves."""
    assert await show(Shop, "asking://app", version) == (False, "None Ann")


async def test_a_resource_that_asks_by_hand(caplog):
    """`InputRequired` would answer the wrong request: the call fails, and the log says why."""
    assert await show(Shop, "by-hand://app") == (True, "Tool execution failed")
    assert "let it await" in caplog.text


async def test_the_override_is_asked():
    """A server that computes its resources computes these, too; the declared type stays."""
    assert await show(Computed, "x://y") == (False, "None computed x://y")
    assert await show(Computed, "config://app") == (
        False,
        "application/json computed config://app",
    )
