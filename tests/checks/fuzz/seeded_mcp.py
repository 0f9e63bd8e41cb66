"""A server of the official Python package with one fault: `python seeded_mcp.py FAULT`."""

import sys
from typing import Annotated, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field
from seeded_tools import Tools

FAULT = sys.argv[1]
server = MCPServer("seeded", version="1", log_level="CRITICAL")
tools = Tools(FAULT, ToolError)


@server.tool()
def say(text: str, tone: Literal["calm", "loud"] = "calm") -> str:
    """Say a text."""
    return tools.say(text)


@server.tool()
def pick(index: Annotated[int, Field(ge=0, le=10)]) -> str:
    """Pick a letter."""
    return tools.pick(index)


@server.tool()
def keep_note(title: str) -> str:
    """Keep a note."""
    if FAULT == "notice" and len(title) > 3:
        server.remove_tool("read_note")
    return tools.keep_note(title)


@server.tool()
def drop_note(title: str) -> str:
    """Drop a note."""
    return tools.drop_note(title)


@server.tool()
def read_note(title: str) -> str:
    """Read a note."""
    return tools.read_note(title)


if __name__ == "__main__":
    server.run("stdio")
