"""Our client follows lists and checks results of servers of the official packages."""

from collections.abc import Callable

import pytest
import trio

from noizu_mcp import Stdio, connect

SCRIPTS = {
    "typescript-2": ("foreign_v2.mjs", "@modelcontextprotocol/server"),
    "typescript-1": ("foreign_v1.mjs", "@modelcontextprotocol/sdk"),
}
SPOKEN = [
    ("python", "2025-11-25"),
    ("python", "2026-07-28"),
    ("typescript-1", "2025-11-25"),
    ("typescript-2", "2025-11-25"),
    ("typescript-2", "2026-07-28"),
]


@pytest.mark.parametrize(("name", "version"), SPOKEN)
async def test_a_list_of_a_foreign_server_is_followed(
    foreign: Callable[..., Stdio], name: str, version: str
) -> None:
    """A tool that a server adds appears in the list, and results fit their schemas."""
    command = foreign(name, "foreign_server.py", SCRIPTS)
    with trio.fail_after(60):
        async with (
            connect(command, version=version, strictness="strict") as client,
            client.tools as tools,
        ):
            assert "extra" not in tools
            assert tools["weigh"].output_schema is not None
            assert (await client.call_tool("weigh", {"city": "Oslo"})).violations == ()
            await client.call_tool("add_extra")
            await tools.wait_changed()
            assert "extra" in tools
