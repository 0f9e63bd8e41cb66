"""The fixtures of the plugin in this suite: an example behaves the same on every version."""

from pathlib import Path
from typing import Any

import pytest

EVERYTHING = Path(__file__).resolve().parents[2] / "docs" / "examples" / "everything.py"


@pytest.fixture
def mcp_server() -> Path:
    return EVERYTHING


async def test_results(mcp_client: Any) -> None:
    """Each kind of content, an error, a resource and a prompt arrive."""
    mixed = await mcp_client.call_tool("test_multiple_content_types")
    failed = await mcp_client.call_tool("test_error_handling")
    read = await mcp_client.read_resource("test://template/123/data")
    prompt = await mcp_client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})

    assert [each.type for each in mixed.content] == ["text", "image", "resource"]
    assert failed.is_error
    assert "123" in read.contents[0].text
    assert "a" in prompt.messages[0].content.text


async def test_lists(mcp_client: Any, mcp_transcript: Any) -> None:
    """Every list is complete, in the same order each time."""
    for fetch in (mcp_client.list_tools, mcp_client.list_prompts, mcp_client.list_resources):
        first = [each.name for each in await fetch()]
        assert first
        assert [each.name for each in await fetch()] == first
    assert mcp_transcript.sent("tools/list")


def test_plain_code(mcp_client: Any, mcp_variant: Any) -> None:
    """A plain test has the same client, on its version and transport."""
    assert mcp_client.protocol_version == mcp_variant.version
    assert mcp_client.call_tool("test_simple_text").content[0].text.startswith("This is a simple")
