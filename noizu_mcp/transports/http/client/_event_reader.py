"""Server-sent events as a client reads them, in chunks of any size.

Source: the HTML standard, section 9.2.6 "Interpreting an event stream".
"""

from typing import Final, NamedTuple

#: A `retry` with more digits is none.
_DIGITS: Final = 9
_CR, _LF = b"\r", b"\n"


class ServerEvent(NamedTuple):
    """One event.

    Attributes:
        type: Its type; `message` where it has none.
        data: Its lines, joined by line feeds.
    """

    type: str
    data: bytes


class EventTooLarge(Exception):
    """An event over the size limit."""


class EventParser:
    """Cuts one event stream into events.

    Args:
        limit: Bytes that one event may have.

    Attributes:
        last_id: The id to come back with; empty for none. It outlives the stream.
        retry: Seconds to wait before coming back, if the stream has said so.
    """

    def __init__(self, limit: int) -> None:
        self.last_id = ""
        self.retry: float | None = None
        self._limit = limit
        self.begin()

    def begin(self) -> None:
        """Begin a new stream, which goes on where the last one broke off."""
        self._rest: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._first = True
        self._id = self.last_id
        self._clear()

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Take the next bytes.

        Returns:
            The events that are complete now. One whose blank line never came is lost, as it must.

        Raises:
            EventTooLarge: One is over the limit.
        """
        if self._after_cr and chunk:
            # The line has ended with the last chunk; CR and LF together are one end.
            chunk = chunk[1:] if chunk.startswith(_LF) else chunk
            self._after_cr = False
        if not chunk:
            return []
        if _CR not in chunk and _LF not in chunk:
            self._keep(chunk)
            return []
        self._after_cr = chunk.endswith(_CR)
        *lines, rest = chunk.replace(b"\r\n", _LF).replace(_CR, _LF).split(_LF)
        lines[0] = b"".join([*self._rest, lines[0]])
        self._size -= sum(map(len, self._rest))
        self._rest = []
        events = [event for line in lines if (event := self._take(line)) is not None]
        self._keep(rest)
        return events

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._rest.append(rest)
            self._count(rest)

    def _count(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            raise EventTooLarge

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._count(line)
            self._data.append(value)
        elif name == b"event":
            self._count(line)
            self._type = value.decode(errors="replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _DIGITS:
            self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> ServerEvent | None:
        # An id alone counts as well: so a stream gives one before its first event.
        self.last_id = self._id
        data, kind = self._data, self._type
        self._clear()
        return ServerEvent(kind or "message", b"\n".join(data)) if data else None

    def _clear(self) -> None:
        self._size = 0
        self._data: list[bytes] = []
        self._type = ""
