"""Newline framing: chunks of bytes in, whole lines out (MCP `basic/transports/stdio`)."""

from typing import Final

import attrs

MIB: Final = 1024 * 1024
#: One message. Room for a photograph in base64; a peer must not be able to fill memory.
MAX_MESSAGE: Final = 16 * MIB
#: How much of an oversized message is kept, to find its id.
_HEAD: Final = 1024


@attrs.frozen
class Oversized:
    """A line over the limit; its bytes are gone except for the first."""

    head: bytes


class LineBuffer:
    """Cuts a stream of bytes into lines. Linear in the input; holds at most `limit` bytes.

    Args:
        limit: The longest line accepted, in bytes, without its newline.
    """

    __slots__ = ("_parts", "_size", "_skipping", "limit")

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Take the next chunk and return the lines that it completes; blank ones are left out."""
        *complete, rest = data.split(b"\n")
        lines: list[bytes | Oversized] = []
        for piece in complete:
            line = self._complete(piece)
            if line is not None:
                lines.append(line)
        if rest:
            overflow = self._keep(rest)
            if overflow is not None:
                lines.append(overflow)
        return lines

    def _complete(self, piece: bytes) -> bytes | Oversized | None:
        if self._skipping:
            self._skipping = False
            return None
        if self._size + len(piece) > self.limit:
            return self._overflow(piece)
        line = b"".join((*self._parts, piece)) if self._parts else piece
        self._clear()
        return line if line and not line.isspace() else None

    def _keep(self, rest: bytes) -> Oversized | None:
        if self._skipping:
            return None
        if self._size + len(rest) > self.limit:
            # Reported at once, not at its newline: the rest may never come.
            overflow = self._overflow(rest)
            self._skipping = True
            return overflow
        self._parts.append(rest)
        self._size += len(rest)
        return None

    def _overflow(self, piece: bytes) -> Oversized:
        head = b"".join((*self._parts, piece[:_HEAD]))[:_HEAD]
        self._clear()
        return Oversized(head)

    def _clear(self) -> None:
        self._parts.clear()
        self._size = 0

    @property
    def pending(self) -> int:
        """Bytes of a line that has not ended."""
        return self._size
