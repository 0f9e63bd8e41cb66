"""Results of a `call_tool` override, and the output schemas that its server lists."""

import logging

import pytest

from noizu_mcp import Server, Tool, ToolResult, connect
from noizu_mcp.engine import logger
from noizu_mcp.types import ToolDefinition

COUNT = ToolDefinition("count", input_schema={"type": "object"}, output_schema={"type": "integer"})


class Count(Tool):
    """Is registered, and never called."""

    def call(self) -> int:
        return 0


class Computed(Server, name="computed", version="1"):
    """Answers by itself; of `count` it knows nothing but what it lists."""

    async def list_tools(self, cursor, ctx):
        return [COUNT]

    async def call_tool(self, name, args, ctx):
        return ToolResult.ok(structured=5)


class Replacing(Server, name="replacing", version="1"):
    """Answers for a registered tool, with whatever it is asked for."""

    tools = [Count]

    async def call_tool(self, name, args, ctx):
        return args["answer"]


@pytest.mark.parametrize(
    ("version", "sent"), [("2025-06-18", {"result": 5}), ("2025-11-25", {"result": 5})]
)
async def test_the_answer_fits_the_listed_schema(version, sent):
    """A listed schema that is not an object's is wrapped, and so is the result."""
    async with connect(Computed, version=version) as client:
        (tool,) = await client.list_tools()
        assert tool.output_schema["required"] == ["result"]
        assert (await client.call_tool("count")).structured == sent


async def test_any_value_is_sent_as_it_is():
    """On 2026-07-28 results are sent without wrapping."""
    async with connect(Computed) as client:
        assert (await client.call_tool("count")).structured == 5


def test_helpers_of_ones_own():
    """A method whose signature is neither an override's nor a list's may have a similar name."""

    class Own(Server, name="own", version="1"):
        tool = "hammer"

        def list_tool(self, cursor, ctx):
            """Is not async."""

        async def get_prompts(self):
            """Takes nothing."""

    assert Own().tool == "hammer"


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_an_override_keeps_the_contract_of_a_registered_tool(version, caplog):
    """The result of an override must fit the listed schema of a registered tool (server/tools)."""
    async with connect(Replacing, version=version) as client:
        found = await client.call_tool("count", {"answer": 3})
        assert found.structured == (3 if version == "2026-07-28" else {"result": 3})
        with caplog.at_level(logging.ERROR, logger.name):
            found = await client.call_tool("count", {"answer": "three"})
    assert found.is_error
    assert found.content[0].text == "Tool count broke its output contract"
    assert "expected integer" in caplog.text
