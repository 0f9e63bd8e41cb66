"""Many small tools in one class, with each way to declare arguments.

Try it:

    noizu-mcp list docs/examples/toolkit.py
    noizu-mcp call docs/examples/toolkit.py add a=2 b=40
    noizu-mcp call docs/examples/toolkit.py files.read path=toolkit.py
    noizu-mcp call docs/examples/toolkit.py catalog category=Files
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from noizu_mcp import Schema, Server, ToolError, Toolkit, field, mcp, tool
from noizu_mcp import fields as f
from noizu_mcp.tools import Catalog

FOLDER = Path(__file__).resolve().parent


class Booking(Schema):
    guest: str = field(min_length=1)
    nights: int = field(default=1, min=1, max=30)


class Receipt(Schema):
    text: str
    total: int


class Utilities(Toolkit, category="Utility"):
    """Small tools that need no class of their own."""

    @mcp(
        name="files.read",
        category="Files",
        description="Read a file of the examples",
        input={"path": f.string(required=True, description="Path below the folder")},
    )
    def read_file(self, args: Any) -> str:
        try:
            path = Path(FOLDER, args.path).resolve()
            if path.is_relative_to(FOLDER):
                return path.read_text(encoding="utf-8")
        except (OSError, ValueError):  # also a folder, a NUL, and a file that is not a text
            pass
        raise ToolError(f"No text file {args.path}")

    @mcp
    def server_time(self) -> str:
        """Server time, ISO 8601."""
        return datetime.now(UTC).isoformat()

    @mcp(visible=False)
    @mcp(input='{"type": "object", "properties": {"q": {"type": "string"}}}')
    def lookup(self, args: dict[str, Any]) -> str:
        """Repeat a word. The tool is not listed, but clients can call it."""
        return str(args.get("q", ""))

    @mcp
    async def add(self, a: int, b: int = 1) -> int:
        """Add two numbers.

        Args:
            a: The first addend.
            b: The second addend.
        """
        return a + b

    @mcp
    async def book(self, args: Booking) -> Receipt:
        """Book a room."""
        return Receipt(text=f"{args.guest}, {args.nights} night(s)", total=80 * args.nights)


class Workshop(Server, name="workshop", version="1.0.0"):
    tools = [Utilities, tool(Catalog, hidden=True)]


if __name__ == "__main__":
    Workshop().run()
