"""A server of the official Python package with one fault: `python seeded_mcp.py FAULT`."""

import os
import sys
import threading
import traceback
from typing import Annotated, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

FAULT = sys.argv[1]
server = MCPServer("seeded", version="1", log_level="CRITICAL")
notes = {}


class Total(BaseModel):
    total: int


@server.tool()
def say(text: str, tone: Literal["calm", "loud"] = "calm") -> str:
    """Say a text."""
    if FAULT == "crash":
        return text[0]
    if FAULT == "leak":
        try:
            return text[0]
        except IndexError:
            raise ToolError(traceback.format_exc()) from None
    if FAULT == "hang" and any(ord(letter) > 0xFFFF for letter in text):
        threading.Event().wait()
    if FAULT == "exit" and "\0" in text:
        os._exit(3)
    return text


@server.tool()
def pick(index: Annotated[int, Field(ge=0, le=10)]) -> str:
    """Pick a letter."""
    return ("abcdefghij" if FAULT == "bound" else "abcdefghijk")[index]


@server.tool()
def keep_note(title: str) -> str:
    """Keep a note."""
    notes[title] = title
    if FAULT == "notice" and len(title) > 3:
        server.remove_tool("read_note")
    return "kept"


@server.tool()
def drop_note(title: str) -> str:
    """Drop a note."""
    if FAULT == "sequence" and title in notes:
        notes[title] = None
    else:
        notes.pop(title, None)
    return "dropped"


@server.tool()
def read_note(title: str) -> str:
    """Read a note."""
    if title not in notes:
        raise ToolError("no such note")
    return notes[title].upper()


if __name__ == "__main__":
    server.run("stdio")
