"""Event streams of a session that many nodes serve: each node can continue each stream.

Theory of operation. The GET stream has notifications of changes, and the log of all nodes has the
changes. So it stores nothing: the id of an event has the position in the log up to which the client
was told (`SharedGetStream`), and the next node reads the log from there.

The stream of an answer has messages that exist nowhere else. Each of its events is appended to a
log of its own in the backend, in order, while it is sent (`CopiedStream`); the last entry is its
end. The id of an event begins with the name of its stream, and that with the node. Another node
follows the log (`follow`). If it ends without an end, because the node is dead, the client gets an
error in place of its answer.

The log of an answer is bounded by the events that its node stores, and what waits to be appended
while the backend cannot be reached by `HttpLimits.history`. A lost entry is a lost event, as
if a full `EventLog` had dropped it.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

import trio

from ...._value import JSONObject
from ....backends import BackendUnavailable, LogEntry
from ....jsonrpc import INTERNAL_ERROR, ErrorResponse, Id, encode, encode_batch, render
from ....server import Node
from ....types import RequireScopes
from ._event_store import DIGITS, EventLog, EventStream
from ._event_writer import EventWriter, event
from ._http_options import HttpLimits
from ._quotas import Reservation

#: Bytes of JSON that fit into an entry of a log together with what is around them.
FITS: Final = 60 * 1024
#: Seconds between two attempts while the backend cannot be reached.
RETRY: Final = 0.25
#: Seconds between two looks at the log of another node's stream: the first, and the most.
FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.25
#: Seconds between two looks whether the node of a stream is dead.
LOOK: Final = 0.5
#: Seconds for which a stream may be on its way to the backend.
OPENING: Final = 1.0
#: Characters of an event id.
MAX_ID: Final = 512
_GONE: Final = "The node that ran this request is gone; the request may have been executed"
#: Separates the number of an event from the position in the log of all nodes.
_AT: Final = "@"

#: Starts work that the end of the application waits for.
WriteSoon = Callable[[Callable[[], Awaitable[object]]], object]


class SharedGetStream(EventStream):
    """The GET stream of a session of many nodes.

    Args:
        name: See `EventStream`.
        log: See `EventStream`.
        find_position: Returns the position in the log of all nodes up to which readers were told;
            None while a notification waits.

    """

    __slots__ = ("_find_position", "_is_caught_up", "_position")

    def __init__(self, name: str, log: EventLog, find_position: Callable[[], str | None]) -> None:
        super().__init__(name, log)
        self._is_caught_up = False
        self._position = ""
        self._find_position = find_position

    def begin(self, position: str) -> None:
        """Begin for a reader that was told of everything up to a position."""
        self._is_caught_up = False
        self._position = position

    def advance(self, writer: EventWriter, position: str) -> None:
        """Note that a reader is about to be told of everything up to a position."""
        if self._writer is writer and self._find_position() is not None:
            self._position = position

    def note_caught_up(self, writer: EventWriter) -> None:
        """Note that a reader was told of what happened before it came."""
        if self._writer is writer:
            self._is_caught_up = True

    @property
    def position(self) -> str:
        """The position up to which its reader was told."""
        if self._is_caught_up:
            self._position = self._find_position() or self._position
        return self._position

    @property
    def last_id(self) -> str:
        """The id of the last event; see `EventStream`."""
        return f"{super().last_id}{_AT}{quote(self.position, safe='')}"

    def replay(self, number: int | None) -> None:
        """Do nothing: the log of all nodes is read instead."""

    def _put(
        self, message: bytes, *, droppable: bool, requires: RequireScopes | None = None
    ) -> None:
        if self._writer is not None and not self.ended and self._may_have(requires):
            self._last += 1
            self._writer.put(event(message, self.last_id), droppable=droppable)


def position_in(event_id: str) -> str | None:
    """Return the position in the id of an event of a GET stream; None in the id of another one."""
    _, at, position = event_id.partition(_AT)
    return unquote(position) if at and len(event_id) <= MAX_ID else None


class CopiedStream(EventStream):
    """The stream of one answer, copied to the backend.

    Args:
        log: See `EventStream`.
        copy: Stores its events in the backend.
    """

    __slots__ = ("copy",)

    def __init__(self, log: EventLog, copy: "StreamCopy") -> None:
        super().__init__(copy.name, log)
        self.copy = copy

    def _put(
        self, message: bytes, *, droppable: bool, requires: RequireScopes | None = None
    ) -> None:
        super()._put(message, droppable=droppable, requires=requires)
        # Not more than this node stores, and the end. What follows the end is not read.
        self.copy.keep = len(self._events) + 2
        self.copy.add(message, self._last)

    def end(self) -> None:
        """Accept no more messages; see `EventStream`."""
        if not self.ended:
            super().end()
            self.copy.add(None, self._last)


class StreamCopy:
    """Appends the events of one stream to its log in the backend, in order.

    Args:
        node: The node.
        name: The name of the stream.
        digest: The digest of the session.
        ids: The requests that the stream answers.
        limits: Bounds what waits, and how long the log lives.
        write_soon: Starts a task.

    Attributes:
        name: See Args.
        keep: Number of entries that the log keeps.
    """

    __slots__ = (
        "_head",
        "_ids",
        "_is_open",
        "_is_sent",
        "_limits",
        "_log",
        "_node",
        "_size",
        "_waiting",
        "_write_soon",
        "keep",
        "name",
    )

    def __init__(
        self,
        node: Node,
        name: str,
        digest: str,
        ids: Sequence[Id],
        *,
        limits: HttpLimits,
        write_soon: WriteSoon,
    ) -> None:
        self.name = name
        self.keep = 2
        self._node = node
        self._log, self._head = keys_of(digest, name)
        self._ids = list(ids)
        self._limits = limits
        self._write_soon = write_soon
        self._waiting: deque[tuple[bytes | None, int]] = deque()
        self._size = 0
        self._is_open = False
        self._is_sent = True
        write_soon(self._send)

    def add(self, message: bytes | None, number: int) -> None:
        """Append an event, or None for the end. Does not wait."""
        self._waiting.append((message, number))
        self._size += len(message or b"")
        while self._size > self._limits.history and len(self._waiting) > 1:
            self._drop()
        if not self._is_sent:
            self._is_sent = True
            self._write_soon(self._send)

    def _drop(self) -> None:
        message, _ = self._waiting.popleft()
        self._size -= len(message or b"")

    async def _send(self) -> None:
        while self._waiting or not self._is_open:
            try:
                await self._open()
                while self._waiting:
                    first = self._waiting[0]
                    await self._append(*first)
                    # It may have been dropped for newer ones.
                    if self._waiting[0] is first:
                        self._drop()
            except BackendUnavailable:
                await trio.sleep(RETRY)
        # No checkpoint since nothing waited.
        self._is_sent = False

    async def _open(self) -> None:
        if not self._is_open:
            start = await self._node.backend.end_of(self._log)
            head = {"ids": self._ids, "start": start}
            await self._node.records.put(self._head, head, ttl=self._limits.session_idle)
            self._is_open = True

    async def _append(self, message: bytes | None, number: int) -> None:
        records, ttl = self._node.records, self._limits.session_idle
        entry: JSONObject = {"number": number}
        if message is not None:
            entry["text"] = message.decode()
            if len(render(entry)) > FITS:
                # An entry of a log is smaller than the value of a record.
                key = f"{self._head}:{number}"
                await records.put(key, entry.pop("text"), ttl=ttl)
                entry["key"] = key
        sealed = records.seal(self._log, render(entry))
        await self._node.backend.append(self._log, sealed, keep=self.keep, ttl=ttl)

    async def renew(self) -> None:
        """Keep the stream for readers that come later, while it is open."""
        await self._node.records.get(self._head, ttl=self._limits.session_idle)

    async def forget(self) -> None:
        """Delete the stream from the backend."""
        # If it fails, it expires.
        await self._node.records.delete(self._head)
        await self._node.backend.append(self._log, b"", keep=1, ttl=1.0)


def keys_of(digest: str, name: str) -> tuple[str, str]:
    """Return the keys of the log of a stream, and of the record about it."""
    return f"e:{digest}:{name}", f"h:{digest}:{name}"


class RemoteStream(EventStream):
    """The stream of an answer at another node, as its log is read here. It stores nothing.

    Args:
        name: See `EventStream`.
        log: See `EventStream`.
        writer: Writes to its one reader.
    """

    __slots__ = ("_out",)

    def __init__(self, name: str, log: EventLog, writer: EventWriter) -> None:
        super().__init__(name, log)
        self._out = writer

    def put(self, message: bytes, number: int) -> None:
        """Send an event of the other node, unless the reader has left."""
        self._last = number
        self._out.put(event(message, self.last_id))

    def end(self) -> None:
        """End the answer of the reader; see `EventStream`."""
        self.ended = True
        self._out.end()


class SharedEventLog(EventLog):
    """The event streams of one session at one node.

    Args:
        limit: See `EventLog`.
        reservation: See `EventLog`.
        node: The node; names of streams begin with its id.
        write_soon: Starts a task.

    Attributes:
        remote: The streams of other nodes that are read here, by name.
    """

    __slots__ = ("_write_soon", "remote")

    def __init__(
        self, limit: int, reservation: Reservation, node: Node, write_soon: WriteSoon
    ) -> None:
        super().__init__(limit, reservation, f"{node.id}.")
        self._write_soon = write_soon
        self.remote: dict[str, RemoteStream] = {}

    @property
    def is_read(self) -> bool:
        """True while one of the streams has a reader."""
        return super().is_read or bool(self.remote)

    def end(self) -> None:
        """End all streams; see `EventLog`."""
        super().end()
        for stream in self.remote.values():
            stream.end()

    def _forget_one(self) -> None:
        stream = next(iter(self._ended.values()))
        super()._forget_one()
        if isinstance(stream, CopiedStream):
            self._write_soon(stream.copy.forget)


def parse_id(event_id: str) -> tuple[str, int] | None:
    """Read the id of an event: the name of its stream, and its number; None if malformed."""
    name, _, number = event_id.partition("-")
    is_number = number.isascii() and number.isdigit() and len(number) <= DIGITS
    if not is_number or len(name) > MAX_ID or "." not in name or not name.isascii():
        return None
    return name, int(number)


async def find_head(node: Node, digest: str, name: str) -> JSONObject | None:
    """Find the record about the stream of an answer; None without such a stream.

    Raises:
        BackendUnavailable: The backend cannot answer now.
    """
    _, key = keys_of(digest, name)
    with trio.move_on_after(OPENING):
        while True:
            stored = await node.records.get(key)
            if stored is not None:
                return stored.value if isinstance(stored.value, dict) else None
            if node_of(name) not in node.alive:
                break
            # The node tells its client the name before it has written the record.
            await trio.sleep(LONGEST_PAUSE)
    return None


async def follow(
    node: Node, digest: str, head: JSONObject, stream: RemoteStream, after: int
) -> None:
    """Send the events of another node's stream to its reader here, until the end or a disconnect.

    Args:
        node: This node.
        digest: The digest of the session.
        head: The record about the stream.
        stream: Passes the events on.
        after: The number of the last event that the reader has.
    """
    log, _ = keys_of(digest, stream.name)
    position, pause, looked, is_gone = str(head["start"]), FIRST_PAUSE, trio.current_time(), False
    while stream.is_read and not stream.ended:
        try:
            items = await node.backend.read({log: position}, wait=0)
            for item in items:
                if isinstance(item, LogEntry):
                    number, message = await _open_entry(node, log, item)
                    if number > after and message is not None:
                        stream.put(message, after := number)
                    elif message is None and number >= 0:
                        stream.end()
                        return
                position = item.position
            if items:
                pause = FIRST_PAUSE
                await stream.room()
                continue
            if is_gone:
                # Nothing came after its death.
                stream.put(_gone(head), after + 1)
                stream.end()
                return
            if trio.current_time() - looked >= LOOK:
                looked = trio.current_time()
                is_gone = await node.is_dead(node_of(stream.name))
        except BackendUnavailable as error:
            node.note_failure(error)
            pause = LONGEST_PAUSE
        await trio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _open_entry(node: Node, log: str, item: LogEntry) -> tuple[int, bytes | None]:
    """Open an entry: the number of the event and its message, None for the end; -1 for neither."""
    entry = node.records.open(log, item.entry)
    if not isinstance(entry, dict):
        return -1, None
    text: Any = entry.get("text")
    if "key" in entry:
        stored = await node.records.get(entry["key"])
        if stored is None:
            return -1, None
        text = stored.value
    return entry["number"], None if text is None else text.encode()


def _gone(head: JSONObject) -> bytes:
    errors = [encode(ErrorResponse(id_, INTERNAL_ERROR, _GONE)) for id_ in head["ids"]]
    return errors[0] if len(errors) == 1 else encode_batch(errors)


def node_of(name: object) -> str:
    """Return the node at the begin of a name, or of the id of a question; empty without a node."""
    return name.partition(".")[0] if isinstance(name, str) and "." in name else ""
