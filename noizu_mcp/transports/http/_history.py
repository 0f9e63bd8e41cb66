"""The event streams of one session, kept for clients that come back for what they missed.

Source: 2025-11-25 `basic/transports`, "Resumability and Redelivery".
"""

from typing import Final

import trio

from ._sse import EventWriter, event, priming_event

#: Streams that have ended and are still kept for their readers; the oldest go first.
MAX_ENDED: Final = 32
#: An event id with a longer number is none of ours.
DIGITS: Final = 18


class EventStream:
    """One stream: its last events, and who reads it now; a `Channel`.

    Args:
        name: Unique in its session; part of every event id.
        limit: Bytes of events that are kept; the oldest go first.

    Attributes:
        ended: True once no more events come.
        size: Bytes of events that are kept.
    """

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.ended = False
        self.size = 0
        self._limit = limit
        self._last = 0
        self._events: list[tuple[int, bytes]] = []
        self._writer: EventWriter | None = None

    @property
    def is_read(self) -> bool:
        """True while somebody reads it."""
        return self._writer is not None

    def attach(self, writer: EventWriter) -> None:
        """Give the stream a reader, in place of the one it has.

        The connection of that one may be dead without our knowing.
        """
        if self._writer is not None:
            self._writer.close()
        self._writer = writer
        if self.ended:
            writer.end()

    def detach(self, writer: EventWriter) -> None:
        """Take the reader away, if it still is the reader."""
        if self._writer is writer:
            self._writer = None

    # Channel

    def answer(self, message: bytes, _code: int | None = None, /) -> None:
        """Send the last message; see `Channel`."""
        self.deliver(message)
        self.end()

    def abandon(self) -> None:
        """End without an answer; see `Channel`."""
        self.end()

    def deliver(self, message: bytes) -> None:
        """Send a message; one that nobody reads is kept, as long as there is space."""
        self._put(message, droppable=False)

    def offer(self, message: bytes) -> None:
        """Send a message, if the reader has room; it is kept anyway."""
        self._put(message, droppable=True)

    @property
    def has_room(self) -> bool:
        """False while too much is waiting for the reader; see `Channel`."""
        return self._writer is None or self._writer.has_room

    async def room(self) -> None:
        """Wait until the reader has room; see `Channel`."""
        if self._writer is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._writer.room()

    # For readers that come and go

    def prime(self, retry: float) -> None:
        """Give the reader an id to come back with, before there is an event.

        Args:
            retry: Seconds that it is to wait before.
        """
        self._last += 1
        if self._writer is not None:
            self._writer.put(priming_event(f"{self.name}-{self._last}", retry))

    def replay(self, number: int) -> None:
        """Send the reader what came after an event."""
        if self._writer is not None:
            for each, data in self._events:
                if each > number:
                    self._writer.put(data)

    def end(self) -> None:
        """Take no more messages; the reader's answer ends when it has what was sent."""
        self.ended = True
        if self._writer is not None:
            self._writer.end()

    def _put(self, message: bytes, *, droppable: bool) -> None:
        self._last += 1
        data = event(message, f"{self.name}-{self._last}")
        self._keep(data)
        if self._writer is not None:
            self._writer.put(data, droppable=droppable)

    def _keep(self, data: bytes) -> None:
        self._events.append((self._last, data))
        self.size += len(data)
        gone = 0
        while self.size > self._limit:
            self.size -= len(self._events[gone][1])
            gone += 1
        del self._events[:gone]


class History:
    """The event streams of one session.

    Args:
        limit: Bytes of events that are kept, over all of them; what ended first goes first.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._opened = 0
        self._streams: dict[str, EventStream] = {}

    def open(self) -> EventStream:
        """Open a stream."""
        self._forget()
        name = str(self._opened)
        self._opened += 1
        stream = self._streams[name] = EventStream(name, self._limit)
        return stream

    def find(self, event_id: str) -> tuple[EventStream, int] | None:
        """Find the stream of an event, and the number of the event in it; None: not kept."""
        name, _, number = event_id.partition("-")
        stream = self._streams.get(name)
        if stream is None or not number.isascii() or not number.isdigit() or len(number) > DIGITS:
            return None
        return stream, int(number)

    @property
    def is_read(self) -> bool:
        """True while somebody reads one of the streams."""
        return any(stream.is_read for stream in self._streams.values())

    def end(self) -> None:
        """End all streams: the session is over."""
        for stream in self._streams.values():
            stream.end()
        self._streams.clear()

    def _forget(self) -> None:
        size = sum(stream.size for stream in self._streams.values())
        ended = [stream for stream in self._streams.values() if stream.ended]
        for count, stream in enumerate(ended):
            if size <= self._limit and len(ended) - count <= MAX_ENDED:
                return
            size -= stream.size
            del self._streams[stream.name]
