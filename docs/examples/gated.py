"""Tools that a session sees only after it has called `unlock`.

Sessions exist in the revisions with a handshake, up to 2025-11-25. On 2026-07-28, which has no
sessions, `unlock` returns a key, and `drop_table` takes it as an argument.

Hiding is not access control. Anyone who knows the name can call the tool, so `drop_table` checks
its caller itself.

Try it:

    noizu-mcp list --protocol 2025-11-25 docs/examples/gated.py
    noizu-mcp call docs/examples/gated.py unlock password=sesame
    noizu-mcp call docs/examples/gated.py drop_table table=users key=open-sesame
"""

from typing import Any

from noizu_mcp import Context, NoSessionError, Schema, Server, Tool, ToolError, field
from noizu_mcp.types import Page

# A real server reads both from its secrets, and makes a key for each caller.
PASSWORD, KEY = "sesame", "open-sesame"


class Unlock(Tool):
    """Show the tools that change things."""

    class Input(Schema):
        password: str

    async def call(self, args: Input, ctx: Context) -> str:
        if args.password != PASSWORD:
            raise ToolError("Wrong password")
        try:
            await ctx.put_session("unlocked", True)
        except NoSessionError:
            return f"Unlocked: call drop_table with key={KEY}"
        ctx.notify.tools()
        return "Unlocked: list the tools again"


class DropTable(Tool, hidden=True):
    """Drop a table."""

    class Input(Schema):
        table: str
        key: str | None = field(default=None, description="Needed without a session")

    async def call(self, args: Input, ctx: Context) -> str:
        if not ctx.session.get("unlocked") and args.key != KEY:
            raise ToolError("Locked: call unlock first")
        return f"Dropped {args.table}"


class Gated(Server, name="gated", version="1.0.0"):
    tools = [Unlock, DropTable]

    async def list_tools(self, cursor: str | None, ctx: Context) -> Page[Any]:
        unlocked = bool(ctx.session.get("unlocked"))
        return self.registry.list_tools(cursor, include_hidden=unlocked)


if __name__ == "__main__":
    Gated().run()
