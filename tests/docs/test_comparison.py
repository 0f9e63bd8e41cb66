"""The comparison with `mcp` 2.3 in the README is true: each test runs both packages."""

import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context as TheirContext
from mcp.types import ElicitResult
from pydantic import BaseModel

from noizu_mcp import (
    Accept,
    ClientHandler,
    Context,
    DefinitionError,
    McpError,
    Prompt,
    ResourceTemplate,
    Schema,
    Server,
    Tool,
    connect,
)

# Warnings from `mcp` itself are not under test.
pytestmark = pytest.mark.filterwarnings("ignore")


class Add(Tool):
    class Input(Schema):
        a: int

    def call(self, args: Input) -> str:
        return str(args.a)


class Ours(Server, name="ours", version="1"):
    tools = [Add]


@pytest.fixture
def theirs() -> MCPServer:
    server = MCPServer("theirs")

    @server.tool()
    def add(a: int) -> str:
        return str(a)

    return server


def test_the_version_is_the_one_compared() -> None:
    """The table has the installed version."""
    from importlib.metadata import version

    assert version("mcp").startswith("2.3.")


def test_duplicate_names(theirs: MCPServer, caplog: pytest.LogCaptureFixture) -> None:
    """Two tools with one name are refused here, and a warning there."""
    with pytest.raises(DefinitionError, match="registered 2 times"):
        type(Server)("Twice", (Server,), {"tools": [Add, Add]}, name="twice", version="1")
    with caplog.at_level(logging.WARNING):
        theirs.tool(name="add")(lambda: "second")
    assert "already exists" in caplog.text


async def test_wrong_defaults(theirs: MCPServer) -> None:
    """A default of a wrong type is refused here, and published there."""
    with pytest.raises(DefinitionError, match="default"):

        class Wrong(Tool):
            class Input(Schema):
                a: int = "zz"  # type: ignore[assignment]

            def call(self, args: Input) -> None: ...

    def wrong(a: int = "zz") -> None: ...  # type: ignore[assignment]

    theirs.tool()(wrong)
    async with Client(theirs) as client:
        schemas = [tool.input_schema for tool in (await client.list_tools()).tools]
    assert schemas[1]["properties"]["a"]["default"] == "zz"


async def test_wrong_arguments(theirs: MCPServer) -> None:
    """Here: one line and a list of violations. There: a library's text with its URL."""
    async with connect(Ours) as ours:
        result = await ours.call_tool("add", {"a": "x"})
    async with Client(theirs) as client:
        other = await client.call_tool("add", {"a": "x"})

    assert '/a: expected integer, got string "x"' in result.content[0].text
    assert result.meta is not None
    assert len(result.meta["com.noizu.mcp/violations"]) == 1
    assert "https://errors.pydantic.dev" in other.content[0].text
    assert not {key for key in other.meta or {} if "violation" in key}


async def test_unknown_tools(theirs: MCPServer) -> None:
    """A protocol error here, a result there."""
    async with connect(Ours) as ours:
        with pytest.raises(McpError, match=re.escape("Unknown tool: nope (-32602)")):
            await ours.call_tool("nope")
    async with Client(theirs) as client:
        other = await client.call_tool("nope", {})
    assert other.is_error


async def test_failures_that_leave_the_client(theirs: MCPServer) -> None:
    """The exception itself here, groups around it there."""
    with pytest.raises(McpError):
        async with connect(Ours) as ours:
            await ours.request("nope")
    with pytest.raises(ExceptionGroup) as caught:
        async with Client(theirs) as client:
            await client.read_resource("nope://nope")
    assert caught.group_contains(MCPError)


class Guest(Schema):
    name: str


class Ask(Tool):
    async def call(self, args: dict[str, Any], ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Guest)
        return f"hello {answer.content.name}" if isinstance(answer, Accept) else answer.action


class Page(ResourceTemplate, uri_template="page://{number}"):
    class Arguments(Schema):
        number: int

    def read(self, uri: str, args: Arguments) -> str:
        return str(args.number)


class Review(Prompt):
    class Arguments(Schema):
        code: str

    def get(self, args: Arguments) -> str:
        return args.code


class More(Server, name="more", version="1"):
    tools = [Ask]
    resources = [Page]
    prompts = [Review]


class Ada(ClientHandler):
    async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[dict[str, str]]:
        return Accept({"name": "Ada"})


@pytest.fixture
def more() -> MCPServer:
    """A server of `mcp` with the components under test."""
    server = MCPServer("more")

    class Form(BaseModel):
        name: str

    @server.tool()
    async def ask(ctx: TheirContext) -> str:  # type: ignore[type-arg]
        answer = await ctx.elicit("Who?", Form)
        return f"hello {answer.data.name}"  # type: ignore[union-attr]

    @server.resource("page://{number}")
    def page(number: int) -> str:
        return str(number)

    @server.prompt()
    def review(code: str) -> str:
        return code

    return server


async def ada(_: Any, __: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


async def test_a_question_in_a_handler(more: MCPServer) -> None:
    """It is answered on every revision here; on 2026-07-28 it fails there."""
    for version in ("2025-11-25", "2026-07-28"):
        async with connect(More, handler=Ada(), version=version) as ours:
            assert (await ours.call_tool("ask")).content[0].text == "hello Ada"
    async with Client(more, elicitation_callback=ada, mode="legacy") as client:
        old = await client.call_tool("ask", {})
        assert not old.is_error
    async with Client(more, elicitation_callback=ada) as client:
        assert client.protocol_version == "2026-07-28"
        with pytest.raises(MCPError, match="no back-channel"):
            await client.call_tool("ask", {})


async def test_a_variable_of_the_wrong_type(more: MCPServer) -> None:
    """The URI is not found here; an internal error there."""
    async with connect(More) as ours:
        with pytest.raises(McpError, match=re.escape("Resource not found (-32602)")):
            await ours.read_resource("page://one")
    async with Client(more) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource("page://one")
    assert caught.value.error.code == -32603


async def test_an_argument_of_a_prompt_is_missing(more: MCPServer) -> None:
    """The missing argument is named here; an internal error there."""
    async with connect(More) as ours:
        with pytest.raises(McpError, match=re.escape("Missing required arguments: code (-32602)")):
            await ours.get_prompt("review")
    async with Client(more) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("review", {})
    assert caught.value.error.code == -32603


async def post(app: Any) -> dict[str, Any]:
    """Send a POST to an ASGI application without a lifespan; return the response."""
    headers = {"host": "localhost:8000", "content-type": "application/json"}
    headers["accept"] = "application/json, text/event-stream"
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return {**sent[0], **sent[1]}


async def test_an_application_whose_lifespan_does_not_run(theirs: MCPServer) -> None:
    """A text with the correction here; an exception in the host there."""
    answer = await post(Ours().asgi())
    assert answer["status"] == 500
    assert b"Pass lifespan=app.lifespan" in answer["body"]
    with pytest.raises(RuntimeError, match="Task group is not initialized"):
        await post(theirs.streamable_http_app())
