"""A server of this package with one fault: `python seeded_noizu.py FAULT`.

The package checks arguments and results itself; these are the faults that are left to an author.
"""

import sys
import threading
import traceback
from typing import Annotated

from noizu_mcp import Context, Server, ToolError, Toolkit, field, mcp

FAULT = sys.argv[1]
READS = {"read_only_hint": True}
WRITES = {"destructive_hint": False}
notes = {}


class Kit(Toolkit):
    """Tools."""

    @mcp(annotations=READS)
    def say(self, text: str) -> str:
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
        return text

    @mcp(annotations=READS)
    def pick(self, index: Annotated[int, field(min=0, max=10)], ctx: Context) -> str:
        """Pick a letter."""
        letters = "abcdefghij" if FAULT == "bound" else "abcdefghijk"
        if FAULT == "eras" and ctx.protocol_version == "2026-07-28" and index > 5:
            return "z"
        return letters[index]

    @mcp(annotations=WRITES)
    def keep_note(self, title: str) -> str:
        """Keep a note."""
        notes[title] = title
        return "kept"

    @mcp(annotations=WRITES)
    def drop_note(self, title: str) -> str:
        """Drop a note."""
        if FAULT == "sequence" and title in notes:
            notes[title] = None
        else:
            notes.pop(title, None)
        return "dropped"

    @mcp(annotations=READS)
    def read_note(self, title: str) -> str:
        """Read a note."""
        if title not in notes:
            raise ToolError("no such note")
        return notes[title].upper()


class Seeded(Server, name="seeded", version="1.0.0"):
    """The server."""

    tools = [Kit]


if __name__ == "__main__":
    Seeded().run()
