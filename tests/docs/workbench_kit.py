"""Files of a workbench, and a client of it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from noizu_mcp import ClientHandler, McpError

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
VERSIONS = ["2025-11-25", "2026-07-28"]
NEWS = "workflow:Tech News Digest"


class Notes(ClientHandler):
    """A client that keeps the notifications.

    Attributes:
        came: Their methods and parameters.
    """

    def __init__(self) -> None:
        self.came: list[tuple[str, Any]] = []

    async def handle_notification(self, method: str, params: Mapping[str, Any]) -> None:
        self.came.append((method, params))


def write(path: Path, text: str) -> None:
    """Write a file in one step, as the page advises."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    part.replace(path)


def skill(text: str, about: str = "Say it.") -> str:
    """Make the code of a skill."""
    return f'def run(name: str = "you") -> str:\n    """{about}"""\n    return f"{text} {{name}}"\n'


async def refusal(awaitable: Any) -> tuple[int, str]:
    """Wait for a protocol error; return its code and its text."""
    with pytest.raises(McpError) as raised:
        await awaitable
    return raised.value.code, raised.value.message


async def until(tools: Any, wanted: Callable[[], Any]) -> None:
    """Wait for a list of tools."""
    while not wanted():
        await tools.wait_changed()


async def read(client: Any, path: str) -> Any:
    """Read an entry of a store."""
    (contents,) = (await client.read_resource(f"workbench://{path}")).contents
    return json.loads(contents.text)
