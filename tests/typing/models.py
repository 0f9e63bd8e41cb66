"""Tools for models, and skills, as type checkers see them; checked, never run."""

from typing import Any, assert_type

from noizu_mcp import Client, ResourceContents, SyncClient, ToolError, ToolResult
from noizu_mcp.models import ModelCall, ModelTools, SchemaLoss, result_for, tools_for
from noizu_mcp.types import SkillDefinition


async def answer(client: Client, reply: dict[str, Any]) -> list[dict[str, Any]]:
    tools = tools_for("anthropic", await client.list_tools(), strict=True)
    assert_type(tools, ModelTools)
    assert_type(tools[0], dict[str, Any])
    assert_type(tools.report, tuple[SchemaLoss, ...])
    results = []
    for block in reply["content"]:
        try:
            call = tools.call_of(block)
            assert_type(call, ModelCall)
            result = await client.call_tool(call.name, call.arguments)
        except ToolError as error:
            result = ToolResult.error(str(error))
        results.append(result_for("anthropic", block, result, media=False))
    return results


async def load(client: Client) -> None:
    (skill,) = await client.list_skills()
    assert_type(skill, SkillDefinition)
    assert_type(await client.get_skill(skill.uri), SkillDefinition)
    assert_type(await client.read_skill(skill, "x.md"), ResourceContents)


def load_plainly(client: SyncClient) -> None:
    assert_type(client.list_skills(), list[SkillDefinition])
    assert_type(client.read_skill(client.get_skill("skill://a/SKILL.md")), ResourceContents)


# Wrong uses are errors; `warn_unused_ignores` fails where one is no longer an error.
tools_for("mistral", [])  # type: ignore[arg-type]
