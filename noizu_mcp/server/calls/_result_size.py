"""Sizes of results: an estimate to schedule large ones, and the limit of a tool."""

from typing import Final

from ...components import ToolSpec
from ...jsonrpc import render
from ...types import ToolResult

#: Maximum characters or bytes of a result that is encoded at once: a millisecond of work. Larger
#: results take turns, so that many of them do not block the loop.
LARGE: Final = 256 * 1024


def size_of(value: object) -> int:
    """Estimate the JSON size of a text, or of bytes as base64, in bytes; 0 for anything else."""
    if isinstance(value, str):
        return len(value)
    return len(value) * 4 // 3 if isinstance(value, bytes) else 0


def bounded(spec: ToolSpec | None, most: int, answer: ToolResult | str) -> ToolResult | str:
    """Replace a result that is too large by an error result.

    Args:
        spec: The tool; None if only an override of `call_tool` knows it.
        most: The maximum size of its result as JSON, in bytes.
        answer: The result; a text is a result of one text block.
    """
    wire = ToolResult(answer).to_wire() if isinstance(answer, str) else answer.to_wire()
    size = len(render(wire))
    if size <= most:
        return answer
    noun = "the tool" if spec is None else spec.name
    text = f"The result of {noun} has {size} bytes, and may have {most}: ask for less"
    return ToolResult.error(text)
