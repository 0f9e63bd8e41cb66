"""Event streams of one session, stored for clients that resume them after a break.

Theory of operation. A stream is open until `end`, and has at most one reader: an `EventWriter`, set
by `attach` and removed by `detach`. Each message becomes an event with a number. It is stored, and
sent to the reader if there is one. A reader that returns names the last event that it received, and
`replay` sends it the later ones. Without a name it gets the events after `_delivered`, the last
event sent to any reader. A stream that has ended can still be replayed.

Why memory is bounded: `EventLog` counts the bytes of all streams of the session before it stores
them. Without room it drops ended streams first, then the oldest events of the growing stream, and
then events of other sessions. Why it cannot deadlock: only `room` waits, and the writer wakes it
when it has sent a part and when it closes.

Source: 2025-11-25 `basic/transports`, "Resumability and Redelivery".
"""

import os
from typing import Final, TypeVar

import trio

from ....types import Principal, RequireScopes
from ._event_writer import EventWriter, event, priming_event
from ._quotas import Reservation

#: Ended streams that are stored for their readers. The oldest are dropped first.
MAX_ENDED: Final = 32
#: Digits of the number in an event id. A longer number is foreign, and the time that `int` takes
#: grows quadratically with the length.
DIGITS: Final = 18
#: Bytes counted for each event in addition to its text, for its objects: without them a million
#: tiny events would stay within the limit.
OVERHEAD: Final = 128


Stream = TypeVar("Stream", bound="EventStream")


class EventStream:
    """One stream: its last events, and its current reader; a `ReplyChannel`.

    Args:
        name: Unique in its session; part of every event id.
        log: Stores it, and limits the bytes of its events.

    Attributes:
        ended: True once no more events can come.
        size: Bytes of stored events.
    """

    __slots__ = (
        "_delivered",
        "_events",
        "_last",
        "_log",
        "_reader",
        "_writer",
        "ended",
        "name",
        "size",
    )
    is_broken = False  # see `ReplyChannel`

    def __init__(self, name: str, log: "EventLog") -> None:
        self.name = name
        self.ended = False
        self.size = 0
        self._log = log
        self._last = 0
        self._delivered = 0  # the last event that was sent to a reader
        self._events: list[tuple[int, bytes, RequireScopes | None]] = []
        self._writer: EventWriter | None = None
        self._reader: Principal | None = None

    @property
    def is_read(self) -> bool:
        """True while it has a reader."""
        return self._writer is not None

    @property
    def last_id(self) -> str:
        """The id of the last event."""
        return f"{self.name}-{self._last}"

    def attach(self, writer: EventWriter, reader: Principal | None) -> None:
        """Set the reader of the stream, in place of the current one.

        The connection of the old reader may be dead without any sign. If it is alive, its answer
        ends gracefully, after all events that were sent to it.

        Args:
            writer: Writes to the reader.
            reader: The verified principal; None without authentication.
        """
        # Never two readers: a message is sent on one stream only (2025-11-25 `basic/transports`,
        # "Multiple Connections").
        if self._writer is not None:
            self._writer.end()
        self._writer, self._reader = writer, reader
        if self.ended:
            writer.end()

    def hang_up(self) -> None:
        """End the answer of the reader in order, if there is one."""
        if self._writer is not None:
            self._writer.end()
            self._writer = None

    def dismiss(self, requires: RequireScopes | None) -> None:
        """Close the stream gracefully if the reader's token lacks scopes for later messages.

        A client with another token returns and continues to read.
        """
        if not self._may_have(requires):
            self.hang_up()

    def _may_have(self, requires: RequireScopes | None) -> bool:
        return requires is None or requires.admits(self._reader)

    def detach(self, writer: EventWriter) -> None:
        """Remove the reader, if it is still the current one."""
        # By now another one may read: a client can return before its old connection is given up.
        if self._writer is writer:
            self._writer = None

    # Channel

    def reserve(self, _size: int, /) -> bool:
        """Return True; see `ReplyChannel`."""
        return True  # the event log and the queue of the reader count the event when it is sent

    def answer(self, message: bytes, _code: int | None = None, /) -> None:
        """Send the last message; see `ReplyChannel`."""
        self.deliver(message)
        self.end()

    def abandon(self) -> None:
        """End without an answer; see `ReplyChannel`."""
        self.end()

    def release(self, seconds: float, /) -> None:
        """End the reader's answer, so that it comes back for the rest; see `ReplyChannel`."""
        if self._writer is not None:
            # The id comes before the end: without an id the client could not come back.
            self.prime(seconds)
            self._writer.end()

    def deliver(self, message: bytes, requires: RequireScopes | None = None) -> None:
        """Send a message. Without a reader it is stored, as long as there is room.

        Args:
            message: The message.
            requires: Only readers with these scopes get it, now and when they return.
        """
        self._put(message, droppable=False, requires=requires)

    def offer(self, message: bytes) -> None:
        """Send a message if the reader has room. It is stored in any case."""
        self._put(message, droppable=True)

    @property
    def has_room(self) -> bool:
        """False while too much is waiting for the reader; see `ReplyChannel`."""
        return self._writer is None or self._writer.has_room

    async def room(self) -> None:
        """Wait until the reader has room; see `ReplyChannel`."""
        if self._writer is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._writer.room()

    # Readers that leave and return

    def prime(self, retry: float) -> None:
        """Send the reader an id to return with, before there is an event.

        Args:
            retry: Seconds that it should wait before.
        """
        if self._writer is not None:
            self._last += 1
            self._delivered = self._last
            # A number of its own, although nothing is stored for it: an id must be unique in the
            # session (2025-11-25 `basic/transports`, "Resumability and Redelivery").
            self._writer.put(priming_event(self.last_id, retry))

    def replay(self, number: int | None) -> None:
        """Send the reader the stored events after a given one.

        Args:
            number: The event; None for the last one sent to any reader.
        """
        after, writer = self._delivered if number is None else number, self._writer
        if writer is not None:
            self._delivered = self._last
            # Only this stream: events of others must not be replayed on it. Scopes are checked
            # again, since the reader may have returned with another token. A copy: making room for
            # a waiting event may drop events.
            for each, data, requires in list(self._events):
                if each > after and self._may_have(requires):
                    writer.put(data)

    def end(self) -> None:
        """Accept no more messages. The reader's answer ends after the last event."""
        if not self.ended:
            self.ended = True
            self._log.note_end(self)
            if self._writer is not None:
                self._writer.end()

    def _put(
        self, message: bytes, *, droppable: bool, requires: RequireScopes | None = None
    ) -> None:
        if self.ended:
            return
        self._last += 1
        data = event(message, self.last_id)
        # Stored even while there is a reader: bytes passed to the host may still be lost.
        if self._log.make_room(self, len(data) + OVERHEAD):
            self._events.append((self._last, data, requires))
            self.size += len(data) + OVERHEAD
        if self._writer is not None and self._may_have(requires):
            self._delivered = self._last
            self._writer.put(data, droppable=droppable)

    def shrink(self, size: int) -> int:
        """Drop the oldest events.

        Args:
            size: Minimum bytes to free.

        Returns:
            The bytes freed.
        """
        freed = count = 0
        while freed < size and count < len(self._events):
            freed += len(self._events[count][1]) + OVERHEAD
            count += 1
        # One deletion: removing them one by one would move the rest each time.
        del self._events[:count]
        self.size -= freed
        return freed


class EventLog:
    """The event streams of one session.

    Args:
        limit: Maximum bytes of stored events of all streams. The stream that ended first is dropped
            first; then the oldest events of the growing stream.
        reservation: Counts the events for the client.
        place: The begin of the names of its streams.

    Attributes:
        size: Bytes of stored events.
        streams: The streams by name: open ones, and ended ones that can still be replayed.
    """

    __slots__ = ("_ended", "_limit", "_opened", "_prefix", "_reservation", "size", "streams")

    def __init__(self, limit: int, reservation: Reservation, place: str = "") -> None:
        # Ids must be unique in the session, and another process may serve a sealed session with its
        # own streams.
        self._prefix = place + os.urandom(3).hex()
        self._reservation = reservation
        self._limit = limit
        self._opened = 0
        self.size = 0
        self.streams: dict[str, EventStream] = {}
        self._ended: dict[str, EventStream] = {}  # in the order in which they ended

    def open(self) -> EventStream:
        """Open a stream."""
        return self.add(EventStream(self.next_name(), self))

    def next_name(self) -> str:
        """Return a name for a stream, unique in the session."""
        self._opened += 1
        return f"{self._prefix}.{self._opened}"

    def add(self, stream: Stream) -> Stream:
        """Add an open stream."""
        self.streams[stream.name] = stream
        return stream

    def find(self, event_id: str) -> tuple[EventStream, int] | None:
        """Find the stream of an event, and the event's number in it; None if it is not stored."""
        name, _, number = event_id.partition("-")
        stream = self.streams.get(name)
        # Nothing is left to replay: the client must learn that its answer is lost.
        if stream is None or (stream.ended and stream.size == 0):
            return None
        # `isdigit` alone accepts superscripts, which `int` rejects.
        if not number.isascii() or not number.isdigit() or len(number) > DIGITS:
            return None
        return stream, int(number)

    @property
    def is_read(self) -> bool:
        """True while one of the streams has a reader."""
        return any(stream.is_read for stream in self.streams.values())

    def end(self) -> None:
        """End all streams: the session has ended."""
        # A copy: the end of one stream may remove others, in `note_end`.
        for stream in list(self.streams.values()):
            stream.end()
        self.streams.clear()
        self._ended.clear()
        self._release(self.size)

    def make_room(self, stream: EventStream, size: int) -> bool:
        """Make room for an event of a stream, and count it; False if it cannot be stored."""
        quota = self._reservation.quota
        while (excess := max(self.size + size - self._limit, quota.excess(size))) > 0:
            # The growing stream pays for itself in the end: a request with many messages must not
            # erase the events of other open ones.
            if self._ended:
                self._forget_one()
            elif stream.size:
                self._release(stream.shrink(excess))
            # To store an event only events are dropped, not sessions.
            elif self.size + size > self._limit or not quota.forget_events(size):
                return False
        if not self._reservation.reserve(size):
            return False  # the session has ended
        if not self.size:
            quota.logs[self] = quota.quotas.logs[self] = None
        self.size += size
        return True

    def forget(self, size: int) -> None:
        """Drop the oldest events to make room for others.

        Args:
            size: Bytes to free, if there are as many.
        """
        wanted = self.size - size
        while self._ended and self.size > wanted:
            self._forget_one()
        for stream in self.streams.values():
            if self.size > wanted:
                self._release(stream.shrink(self.size - wanted))

    def note_end(self, stream: EventStream) -> None:
        """Keep a stream that has ended, as long as there is room."""
        self._ended[stream.name] = stream
        while len(self._ended) > MAX_ENDED:
            self._forget_one()

    def _forget_one(self) -> None:
        name = next(iter(self._ended))
        del self.streams[name]
        self._release(self._ended.pop(name).size)

    def _release(self, size: int) -> None:
        self.size -= size
        self._reservation.release(size)
        if not self.size:
            quota = self._reservation.quota
            quota.logs.pop(self, None)
            quota.quotas.logs.pop(self, None)
