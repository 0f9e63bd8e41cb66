"""What the README says of `mcp` 2.3 and of this package, side by side."""

import logging
import re

import pytest
from mcp import Client, MCPError
from mcp.server import MCPServer

import noizu_mcp
from noizu_mcp import DefinitionError, McpError, Schema, Server, Tool, connect

# What `mcp` warns of itself is no concern of these tests.
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
    """The table names the version that is installed."""
    from importlib.metadata import version

    assert version("mcp").startswith("2.3.")


def test_duplicate_names(theirs: MCPServer, caplog: pytest.LogCaptureFixture) -> None:
    """Two tools of one name: refused here, a warning there."""
    with pytest.raises(DefinitionError, match="registered 2 times"):
        type(Server)("Twice", (Server,), {"tools": [Add, Add]}, name="twice", version="1")
    with caplog.at_level(logging.WARNING):
        theirs.tool(name="add")(lambda: "second")
    assert "already exists" in caplog.text


async def test_wrong_defaults(theirs: MCPServer) -> None:
    """A default that breaks its own type: refused here, published there."""
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
    """One line and a list of violations here; the prose of a library and its address there."""
    async with connect(Ours) as ours:
        result = await ours.call_tool("add", {"a": "x"})
    async with Client(theirs) as client:
        other = await client.call_tool("add", {"a": "x"})

    assert '/a: expected integer, got string "x"' in result.content[0].text
    assert result.meta is not None
    assert len(result.meta["noizu.mcp/violations"]) == 1
    assert "https://errors.pydantic.dev" in other.content[0].text
    assert not {key for key in other.meta or {} if "violation" in key}


async def test_unknown_tools(theirs: MCPServer) -> None:
    """An error of the protocol here, a result there."""
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


def test_what_is_not_there_yet() -> None:
    """The last line of the table goes when these names come."""
    names = {"Resource", "Prompt", "serve_http"}

    assert names.isdisjoint(noizu_mcp.__dict__)
    assert {"resource", "prompt", "streamable_http_app"} <= set(dir(MCPServer))
