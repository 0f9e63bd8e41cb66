"""Handlers call tools of providers: from a registered tool and from a provider's tool."""

import pytest

from noizu_mcp import McpError, Server, ToolProvider, connect, mcp, tool

VERSIONS = ["2025-11-25", "2026-07-28"]


async def inner(ctx) -> str:
    return " > ".join(ctx.chain)


async def outer(ctx) -> str:
    return (await ctx.call_tool("inner")).text


class Provided(ToolProvider):
    async def tools(self, ctx):
        return [tool(inner, name="inner"), tool(outer, name="outer")]

    def unknown(self, name):
        return f"Nobody has {name}"


@mcp
async def first(name: str, ctx) -> str:
    return (await ctx.call_tool(name)).text


class House(Server, name="house", version="1"):
    tools = [first]
    providers = [Provided()]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_registered_tool_calls_one_of_a_provider(version):
    """A handler can call a provider's tool before anything was listed."""
    async with connect(House, version=version) as client:
        assert (await client.call_tool("first", {"name": "outer"})).text == "first > outer"


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_provider_words_the_error_for_an_unknown_name(version):
    """A handler gets the provider's error for an unknown name, as a client does."""
    async with connect(House, version=version) as client:
        with pytest.raises(McpError, match="Nobody has cellar"):
            await client.call_tool("first", {"name": "cellar"})
