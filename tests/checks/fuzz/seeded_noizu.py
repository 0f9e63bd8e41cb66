"""A server of this package with one fault: `python seeded_noizu.py FAULT`.

The package checks arguments and results itself; these are the faults that authors can still make.
"""

import sys
from typing import Annotated

from seeded_tools import Tools

from noizu_mcp import Context, Server, ToolError, Toolkit, field, mcp

FAULT = sys.argv[1]
READS = {"read_only_hint": True}
WRITES = {"destructive_hint": False}
tools = Tools(FAULT, ToolError)


class Kit(Toolkit):
    """Tools."""

    @mcp(annotations=READS)
    def say(self, text: str) -> str:
        """Say a text."""
        return tools.say(text)

    @mcp(annotations=READS)
    def pick(self, index: Annotated[int, field(min=0, max=10)], ctx: Context) -> str:
        """Pick a letter."""
        if FAULT == "eras" and ctx.protocol_version == "2026-07-28" and index > 5:
            return "z"
        return tools.pick(index)

    @mcp(annotations=WRITES)
    def keep_note(self, title: str) -> str:
        """Keep a note."""
        return tools.keep_note(title)

    @mcp(annotations=WRITES)
    def drop_note(self, title: str) -> str:
        """Drop a note."""
        return tools.drop_note(title)

    @mcp(annotations=READS)
    def read_note(self, title: str) -> str:
        """Read a note."""
        return tools.read_note(title)


class Seeded(Server, name="seeded", version="1.0.0"):
    """The server."""

    tools = [Kit]


if __name__ == "__main__":
    Seeded().run()
