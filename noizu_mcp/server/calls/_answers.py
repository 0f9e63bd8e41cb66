"""Answers of tools, and the sizes of results: turns of large ones, and the limit of a tool."""

from collections.abc import Callable
from typing import Final

import trio

from ...components import ToolSpec
from ...jsonrpc import render
from ...types import ToolResult

#: The answer to a call of a tool. A text is short for a result of one text block.
Answer = ToolResult | str
#: Maximum characters or bytes of a result that is encoded at once: a millisecond of work.
LARGE: Final = 256 * 1024
#: Bytes around a large result, rounded up.
_AROUND: Final = 1024


class EncodingTurns:
    """Lets large results take turns, so that many of them do not block the loop."""

    def __init__(self) -> None:
        self._lock = trio.Lock()

    async def take(self, size: int, reserve: Callable[[int], bool]) -> bool:
        """Wait for permission to encode a large result: one of them in each round of the loop.

        Args:
            size: Approximate bytes of the result; above `LARGE`.
            reserve: Reserves bytes before it waits, as `InboundRequest.reserve` does.

        Returns:
            False if there is no room for them. The request is then answered with an error.
        """
        if not reserve(size + _AROUND):
            return False
        # The holder of the lock releases it in the next round, and encodes before that.
        async with self._lock:
            pass
        return True


def as_result(answer: Answer) -> ToolResult:
    """Convert an answer into a result."""
    return ToolResult(answer) if isinstance(answer, str) else answer


def size_of(value: object) -> int:
    """Estimate the JSON size of a text, or of bytes as base64, in bytes; 0 for anything else."""
    if isinstance(value, str):
        return len(value)
    return len(value) * 4 // 3 if isinstance(value, bytes) else 0


def size_of_answer(answer: ToolResult) -> int:
    """Estimate the bytes of an answer, without structured content; see `size_of`."""
    return sum(size_of(value) for block in answer.content for value in block.fields.values())


def bounded(spec: ToolSpec | None, most: int, answer: Answer) -> Answer:
    """Replace a result that is too large by an error result.

    Args:
        spec: The tool; None if only an override of `call_tool` knows it.
        most: The maximum size of its result as JSON, in bytes.
        answer: The result.
    """
    size = len(render(as_result(answer).to_wire()))
    if size <= most:
        return answer
    noun = "the tool" if spec is None else spec.name
    text = f"The result of {noun} has {size} bytes, and may have {most}: ask for less"
    return ToolResult.error(text)
