"""Tools that are computed, and tools that come and go while the server runs.

`Notes` has no registrations: `list_tools` computes the tools for each caller, and `call_tool`
answers calls. `Plugins` adds and removes registered tools, and clients are notified.

Try it:

    noizu-mcp list docs/examples/dynamic.py:Notes
    noizu-mcp call docs/examples/dynamic.py:Notes note:groceries
    noizu-mcp call docs/examples/dynamic.py:Plugins load plugin=shout
"""

import enum
from collections.abc import Callable
from typing import Any

from noizu_mcp import Context, McpError, Schema, Server, Tool, ToolError, field, tool
from noizu_mcp.types import ToolDefinition

NOTES = {"groceries": "bread, milk", "Tech News Digest": "read, pick, write"}


class Notes(Server, name="notes", version="1.0.0"):
    async def list_tools(self, cursor: str | None, ctx: Context) -> list[ToolDefinition]:
        caller = ctx.client_info.name if ctx.client_info else "you"
        return [
            ToolDefinition(
                f"note:{name}",
                input_schema={"type": "object"},
                description=f"A note for {caller}",
            )
            for name in NOTES
        ]

    async def call_tool(self, name: str, args: dict[str, Any], ctx: Context) -> str:
        note = NOTES.get(name.removeprefix("note:"))
        if note is None:
            raise McpError(-32602, f"Unknown tool: {name}")
        return note


class Plugin(enum.Enum):
    SHOUT = "shout"
    WHISPER = "whisper"


CHANGES: dict[Plugin, Callable[[str], str]] = {
    Plugin.SHOUT: str.upper,
    Plugin.WHISPER: str.lower,
}


class ChangeText(Tool):
    """Change a text."""

    class Input(Schema):
        text: str = field(min_length=1)

    def __init__(self, change: Callable[[str], str]) -> None:
        self.change = change

    def call(self, args: Input) -> str:
        return self.change(args.text)


class Load(Tool):
    """Load a plugin, which adds a tool."""

    class Input(Schema):
        plugin: Plugin

    async def call(self, args: Input, ctx: Context) -> str:
        name = args.plugin.value
        if name in ctx.server.tools:
            raise ToolError(f"{name} is loaded already")
        ctx.server.tools.add(tool(ChangeText(CHANGES[args.plugin]), name=name))
        return f"There is a tool {name} now"


class Unload(Tool):
    """Unload a plugin and remove its tool."""

    class Input(Schema):
        plugin: Plugin

    async def call(self, args: Input, ctx: Context) -> str:
        name = args.plugin.value
        if name not in ctx.server.tools:
            raise ToolError(f"{name} is not loaded")
        ctx.server.tools.remove(name)
        return f"There is no tool {name} now"


class Plugins(Server, name="plugins", version="1.0.0"):
    tools = [Load, Unload]


if __name__ == "__main__":
    Plugins().run()
