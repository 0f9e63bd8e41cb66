"""Sizes of results: an estimate for the turns of large ones, and the bound of a tool."""

from typing import Final

from ...components import ToolSpec
from ...jsonrpc import render
from ...types import ToolResult

#: Characters or bytes of the largest result that is encoded at once: a millisecond of work. Larger
#: ones take turns, so that many of them do not stop the loop for all.
LARGE: Final = 256 * 1024


def size_of(value: object) -> int:
    """Estimate the bytes of JSON that a text, or bytes in base64, will take; 0 for the rest."""
    if isinstance(value, str):
        return len(value)
    return len(value) * 4 // 3 if isinstance(value, bytes) else 0


def bounded(spec: ToolSpec | None, most: int, answer: ToolResult | str) -> ToolResult | str:
    """Replace a result that is too large by one that says so.

    Args:
        spec: The tool; None for one that only an override of `call_tool` knows.
        most: Bytes that its result may have as JSON.
        answer: The result; a text stands for one block of text.
    """
    wire = ToolResult(answer).to_wire() if isinstance(answer, str) else answer.to_wire()
    size = len(render(wire))
    if size <= most:
        return answer
    noun = "the tool" if spec is None else spec.name
    text = f"The result of {noun} has {size} bytes, and may have {most}: ask for less"
    return ToolResult.error(text)
