"""Newline framing: chunks of bytes in, whole lines out (2026-07-28 `basic/transports/stdio`).

Theory of operation. Two states: *keeping* (the bytes since the last newline are kept) and
*skipping* (the line went over the limit and was reported; its bytes are dropped up to the next
newline). The buffer holds at most `limit` bytes, and each byte is copied a bounded number of times.
"""

from typing import Final, NamedTuple

from .._limits import DEFAULTS

#: Bytes from the start of a message that are searched for its id; of a message over the size limit
#: no more are kept.
HEAD: Final = 1024


class Oversized(NamedTuple):
    """A line over the limit; its bytes are gone except for the first, for `too_large`."""

    head: bytes


class LineBuffer:
    """Cuts a stream of bytes into lines. Linear in the input; keeps at most `limit` bytes of it.

    Args:
        limit: The longest line accepted, in bytes, without its newline.
    """

    __slots__ = ("_partial", "_skipping", "limit")

    def __init__(self, limit: int = DEFAULTS.message_size) -> None:
        self.limit = limit
        # One array and not a list of chunks: chunks of one byte would cost forty bytes each.
        self._partial = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Add the next chunk, and return the lines that it completes; blank ones are left out.

        The same bytes give the same lines, however they are cut into chunks.
        """
        # A carriage return before the newline stays: it is white space of JSON.
        if data.endswith(b"\n") and not (self._partial or self._skipping or len(data) > self.limit):
            # Most chunks are whole lines, and are cut in one step.
            return [line for line in data.split(b"\n") if line and not line.isspace()]
        *complete, rest = data.split(b"\n")
        lines = [line for piece in complete if (line := self._complete(piece)) is not None]
        overflow = self._keep(rest)
        return lines if overflow is None else [*lines, overflow]

    def _complete(self, piece: bytes) -> bytes | Oversized | None:
        # The end of a line that was reported already.
        if self._skipping:
            self._skipping = False
            return None
        if len(self._partial) + len(piece) > self.limit:
            return self._overflow(piece)
        # Most lines arrive in one chunk and are not copied.
        line = piece
        if self._partial:
            line = bytes(self._partial) + piece
            self._partial.clear()
        return line if line and not line.isspace() else None

    def _keep(self, rest: bytes) -> Oversized | None:
        if self._skipping:
            return None
        if len(self._partial) + len(rest) > self.limit:
            # Reported at once, not at its newline: the rest may never come.
            self._skipping = True
            return self._overflow(rest)
        self._partial += rest
        return None

    def _overflow(self, piece: bytes) -> Oversized:
        # Not more than `limit`: that much is always there, wherever the chunks were cut.
        size = min(HEAD, self.limit)
        head = (bytes(self._partial[:size]) + piece[:size])[:size]
        self._partial.clear()
        return Oversized(head)

    @property
    def pending(self) -> int:
        """Bytes of a line that has not ended."""
        return len(self._partial)
