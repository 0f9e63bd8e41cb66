"""Parser of server-sent events, for chunks of any size; no I/O.

Source: the HTML standard, section 9.2.6 "Interpreting an event stream".
"""

from typing import Final, NamedTuple

from ...._errors import McpException

#: Seconds before the first resumption of a stream that names no time, and the maximum pause.
RETRY: Final = 1.0
MAX_RETRY: Final = 60.0
#: The minimum pause, whatever time a stream names. It doubles, up to `RETRY`, with each consecutive
#: stream without a message: a server could end all of them at once.
MIN_RETRY: Final = 0.1
#: A `retry` with more digits is ignored: more than eleven days.
_DIGITS: Final = 9
_CR, _LF = b"\r", b"\n"


class ServerEvent(NamedTuple):
    """One event.

    Attributes:
        type: Its event type; `message` by default.
        data: Its data lines, joined by line feeds.
    """

    type: str
    data: bytes


class EventSizeError(McpException):
    """An event over the size limit."""


class EventParser:
    """Splits one event stream into events.

    A stream that breaks can be resumed: the parser outlives it and keeps the last event id.

    Args:
        limit: Maximum bytes of one event, including field names.

    Attributes:
        last_id: The value of `Last-Event-ID` for a resumption; empty if the stream had no ids.
        retry: Seconds to wait before a resumption, if given by the stream.
    """

    def __init__(self, limit: int) -> None:
        self.last_id = ""
        self.retry: float | None = None
        # The events of a peer are untrusted: an endless one must not fill the memory.
        self._limit = limit
        self.begin()

    def begin(self) -> None:
        """Start to parse a new stream, or the continuation of a stream that broke."""
        self._rest: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._first = True
        # An id is valid until an event has another one, also after a break.
        self._id = self.last_id
        self._clear()

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Parse the next bytes.

        Returns:
            The events that these bytes complete. An incomplete event at the end of the stream is
            discarded, as the standard requires.

        Raises:
            EventSizeError: An event exceeds the limit.
        """
        if self._after_cr and chunk:
            # CR ended the line in the previous chunk; CR LF is one line end.
            chunk = chunk[1:] if chunk.startswith(_LF) else chunk
            self._after_cr = False
        if not chunk:
            return []
        if _CR not in chunk and _LF not in chunk:
            self._keep(chunk)
            return []
        # CR LF may be split between two chunks. The LF is then not an empty line, which would end
        # an event.
        self._after_cr = chunk.endswith(_CR)
        *lines, rest = chunk.replace(b"\r\n", _LF).replace(_CR, _LF).split(_LF)
        lines[0] = b"".join([*self._rest, lines[0]])
        self._size -= sum(map(len, self._rest))
        self._rest = []
        events = [event for line in lines if (event := self._take(line)) is not None]
        self._keep(rest)
        return events

    def resume_delay(self, failures: int, idle: int = 0) -> float:
        """Return the seconds to wait before resuming the stream.

        Args:
            failures: Consecutive failed attempts; the delay doubles with each.
            idle: Consecutive streams without a message.
        """
        # The server's time is never shortened (2025-11-25 `basic/transports`: it must be
        # respected).
        first = RETRY
        if self.retry is not None:
            first = max(self.retry, min(MIN_RETRY * 2.0 ** min(idle, 10), RETRY))
        return min(max(first, RETRY * failures) * 2.0 ** min(failures, 10), max(first, MAX_RETRY))

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._rest.append(rest)
            # Counted before its line ends: an endless line must not grow without limit.
            self._count(rest)

    def _count(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            raise EventSizeError

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")  # the stream may begin with a BOM
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
        elif name == b"id" and b"\0" not in value:  # an id with NUL is ignored (standard)
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _DIGITS:
            self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> ServerEvent | None:
        # An event with only an id counts: servers send one first, so that a stream that breaks
        # before its first message can be resumed (2025-11-25 `basic/transports`).
        self.last_id = self._id
        data, kind = self._data, self._type
        self._clear()
        return ServerEvent(kind or "message", b"\n".join(data)) if data else None

    def _clear(self) -> None:
        self._size = 0
        self._data: list[bytes] = []
        self._type = ""
