"""The body of a request: finds its end by its length or its chunks.

Chunks are parsed strictly (RFC 9112 section 7.1). Lenient parsers disagree about bare line feeds
and white space after sizes, so what one parser takes for an extension is a request for another.
"""

import re
from typing import Final

from ._head import BadRequest

#: Maximum bytes of a chunk's line with its extensions. They are ignored, and have no known use.
MAX_LINE: Final = 256
#: Maximum bytes of all trailers together. They are read and dropped.
MAX_TRAILERS: Final = 4096
#: Chunks of one body that may have any size.
MAX_SMALL_CHUNKS: Final = 16 * 1024
#: Average bytes that the chunks of a body with more of them must have: each chunk costs the same
#: work, so a body of 16 MiB in single bytes would cost seconds.
CHUNK_SIZE: Final = 64
#: Chunks after which other tasks run: well below a millisecond of work.
TURN: Final = 128

_TCHARS: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED: Final = rb'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"'
#: At most 15 digits: more than any body has, and exact in every language. White space around
#: extensions is not allowed: it is obsolete, and parsers differ.
_CHUNK_LINE: Final = re.compile(
    rb"([0-9A-Fa-f]{1,15})(?:;%b(?:=(?:%b|%b))?)*\r\n" % (_TCHARS, _TCHARS, _QUOTED)
)
_TRAILER: Final = re.compile(rb"%b:[\t -~\x80-\xff]*\r\n" % _TCHARS)
_SIZE, _DATA, _DATA_END, _TRAILERS = range(4)


class RequestBody:
    """The unread part of one request body.

    Args:
        length: Its length in bytes; None if it is chunked.

    Attributes:
        complete: True once its end has been read.
    """

    __slots__ = ("_chunks", "_left", "_size", "_state", "_trailers", "complete")

    def __init__(self, length: int | None) -> None:
        self.complete = length == 0
        self._left = length or 0  # remaining bytes of the body or the chunk
        self._state = _DATA if length else _SIZE
        self._chunks = -1 if length else 0  # -1 if it has a length instead of chunks
        self._size = 0
        self._trailers = 0

    def is_in(self, size: int) -> bool:
        """Tell whether the received bytes contain the rest of the body; False if it is chunked."""
        return self._chunks < 0 and size >= self._left

    def read(self, data: bytes) -> tuple[bytes, bytes]:
        """Read the received part of the body.

        Args:
            data: Received bytes from the first unread one on. May include later requests.

        Returns:
            A part of the body, and the bytes that are still unread. The part is empty only if more
            bytes are needed or the body is complete.

        Raises:
            BadRequest: The chunks are malformed, or too many and too small.
        """
        if self._chunks < 0:
            part, rest = data[: self._left], data[self._left :]
            self._left -= len(part)
            self.complete = not self._left
            return part, rest
        parts: list[bytes] = []
        at, turn = 0, self._chunks + TURN
        while not self.complete and self._chunks < turn:
            if self._state == _DATA:
                part = data[at : at + self._left]
                if not part:
                    break
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                if not self._left:
                    self._state = _DATA_END
            else:
                line = _line(data, at, MAX_TRAILERS if self._state == _TRAILERS else MAX_LINE)
                if line is None:
                    break
                at += len(line)
                self._take_line(line)
        return b"".join(parts), data[at:]

    def _take_line(self, line: bytes) -> None:
        if self._state == _SIZE:
            match = _CHUNK_LINE.fullmatch(line)
            if match is None:
                raise BadRequest
            self._left = int(match[1], 16)
            if not self._left:
                self._state = _TRAILERS
                return
            self._state = _DATA
            self._chunks += 1
            self._size += self._left
            # The size of this chunk is only announced yet.
            if self._chunks > MAX_SMALL_CHUNKS and self._size < CHUNK_SIZE * (self._chunks - 1):
                raise BadRequest
        elif line == b"\r\n":
            self.complete = self._state == _TRAILERS
            self._state = _SIZE
        else:
            self._trailers += len(line)
            is_trailer = self._state == _TRAILERS and _TRAILER.fullmatch(line) is not None
            if not is_trailer or self._trailers > MAX_TRAILERS:
                raise BadRequest


def _line(data: bytes, at: int, limit: int) -> bytes | None:
    """Find a line, with its line end; None if it is not complete."""
    end = data.find(b"\n", at, at + limit)
    if end >= 0:
        return data[at : end + 1]
    if len(data) - at >= limit:
        raise BadRequest
    return None
