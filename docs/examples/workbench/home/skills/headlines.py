from typing import Annotated, Literal

from noizu_mcp import Schema, field


class Headlines(Schema):
    result: list[str]
    branch: Literal["some", "none"]


def run(text: Annotated[str, field(max_length=100_000)], limit: int = 10) -> Headlines:
    """Find the headlines of a text in Markdown."""
    found = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")][:limit]
    return Headlines(result=found, branch="some" if found else "none")
