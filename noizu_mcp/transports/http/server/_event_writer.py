"""Server-sent events: the text of an event, and an answer that is a stream of events.

Theory of operation. `put` adds events to a queue, and one task, `run`, writes them to the client
in parts. A writer passes through these states:

- *sending*: `run` is inside of the host's `send`; `_since` is the time at which the part began;
- *idle*: the queue is empty, and `run` waits for `_wake`. Where the host can write at once, `put`
  goes past the queue;
- *ended*: `end` was called. `run` writes the rest, then the end of the body;
- *closed*: nothing is written any more. Every way out of `run` leads here.

A second task, `lost`, ends once the client has gone or has left a part unread for `Pace.stall`
seconds. Its caller then closes the writer. `close` cancels both tasks and wakes all who wait for
room, so nobody waits for a client that has gone. The queue cannot grow: above `Pace.room` notices
are dropped, and each request has only one answer.
"""

import math
from typing import Final

import attrs
import trio

from ..._asgi_extension import WriteNowait
from ._asgi import Header, HttpRequest, Message

#: `X-Accel-Buffering` keeps proxies from holding events back (2026-07-28 `streamable-http`);
#: `no-transform` keeps them from compressing, which would hold events back as well.
EVENT_STREAM: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
#: A comment, which clients ignore (the HTML standard, section 9.2.6): proxies close streams that
#: are silent for long.
KEEPALIVE: Final = b":\n\n"
#: Bytes of events in one part of the body; later events wait until the client has taken the part.
CHUNK: Final = 64 * 1024
#: Seconds without an event after which the next one is written at once; those that follow are
#: written together.
QUIET: Final = 0.001


def event(message: bytes, id_: str | None = None) -> bytes:
    """Write one message as one event.

    Args:
        message: JSON without line ends, as the codec writes it.
        id_: The event id. A client sends it as `Last-Event-ID` to get the later events.
    """
    if id_ is None:
        return b"event: message\ndata: %b\n\n" % message
    return b"id: %b\nevent: message\ndata: %b\n\n" % (id_.encode(), message)


def priming_event(id_: str, retry: float) -> bytes:
    """Write an event that only gives an id and a time (2025-11-25 `basic/transports`).

    Args:
        id_: The id.
        retry: Seconds that the client is to wait before it comes back.
    """
    return b"id: %b\nretry: %d\ndata: \n\n" % (id_.encode(), round(retry * 1000))


@attrs.frozen(kw_only=True)
class Pace:
    """The timing of an event stream, and its limits.

    Attributes:
        silence: Seconds without any message after which an answer becomes a stream.
        keepalive: Seconds of silence after which a comment is written.
        stall: Seconds that the reader may leave a part unread.
        room: Bytes waiting for it above which notices are dropped.
        streams: The open streams; telemetry counts them.
    """

    silence: float
    keepalive: float
    stall: float
    room: int
    streams: set[object] = attrs.field(factory=set, repr=False)


class EventWriter:
    """Events that wait to be written to one reader: bounded, in order, one writing task.

    Args:
        pace: How it treats the reader.

    Attributes:
        closed: True once nothing is written any more: all events are written, or the reader has
            gone, or was disconnected.
        done: Set then.
        dropped: Number of events that were dropped for want of room, or of a reader.
    """

    __slots__ = (
        "_ended",
        "_pace",
        "_queue",
        "_scope",
        "_sending",
        "_since",
        "_size",
        "_taken",
        "_wake",
        "_watching",
        "_write",
        "closed",
        "done",
        "dropped",
    )

    def __init__(self, pace: Pace) -> None:
        self.closed = False
        self.done = trio.Event()
        self.dropped = 0
        self._pace = pace
        self._queue: list[bytes] = []
        self._size = 0
        self._ended = False
        self._sending = False
        self._since = math.inf  # when the last part began; none yet
        self._scope = trio.CancelScope()
        self._watching: trio.CancelScope | None = None
        self._write: WriteNowait | None = None
        self._wake: trio.Event | None = None  # while there is nothing to write
        self._taken: trio.Event | None = None  # while somebody waits for room

    @property
    def has_room(self) -> bool:
        """False while more than the limit is waiting."""
        return self._size <= self._pace.room or self.closed

    def put(self, data: bytes, *, droppable: bool = False) -> None:
        """Write an event, after those before it."""
        if self.closed or (droppable and not self.has_room):
            self.dropped += 1
        elif not self._writes_now(data):
            self._queue.append(data)
            self._size += len(data)
            self._rouse()

    def _writes_now(self, data: bytes) -> bool:
        """Write an event past the queue, if the host can do that and no event is before it."""
        # An idle `run` and an empty queue: only then nothing can be overtaken.
        if self._write is None or self._wake is None or self._queue or self._ended:
            return False
        now = trio.current_time()
        # In a burst one part with many events is cheaper than a system call for each.
        if now - self._since < QUIET:
            return False
        left = self._write(data)
        if left is None:
            return False
        self._since = now
        if left:
            # The host keeps the rest, and writes it before the next part. An empty part is enough
            # for that, and while it is being sent `lost` notices a client that does not read.
            self._queue.append(b"")
            self._rouse()
        return True

    async def room(self) -> None:
        """Wait until there is room; a checkpoint."""
        await trio.lowlevel.checkpoint()
        # One event for all who wait: each checks again, since others may have used the room.
        while not self.has_room:
            if self._taken is None:
                self._taken = trio.Event()
            await self._taken.wait()

    def end(self) -> None:
        """End the answer once everything is written."""
        self._ended = True
        self._rouse()

    def close(self) -> None:
        """Write nothing more: the reader is gone, or is sent away."""
        self.closed = True
        self.done.set()
        # `run` may be inside of a `send` that never returns by itself.
        self._scope.cancel()
        if self._watching is not None:
            self._watching.cancel()
        self._note_taken()

    async def run(self, http: HttpRequest) -> None:
        """Write the answer: its head, and events until `end` or `close`.

        Without `end` the answer has no end: the reader must see that something is missing.

        Args:
            http: The request that it answers.
        """
        # Counted from the start, also if the head is never taken.
        self._pace.streams.add(self)
        self._write = http.write_nowait
        try:
            with self._scope:
                await trio.lowlevel.checkpoint_if_cancelled()  # the request may be over
                head = [*EVENT_STREAM, *http.extra]
                start = {"type": "http.response.start", "status": 200, "headers": head}
                await self._send(http, start)
                await self._run(http)
        except OSError:
            pass  # raised by hosts once the client has gone (ASGI 2.4)
        finally:
            self._pace.streams.discard(self)
            self.close()

    async def lost(self, http: HttpRequest) -> None:
        """Wait until the reader has gone, leaves a part unread for too long, or has everything.

        Meanwhile the reader gets a comment after each long silence. The sending itself has no
        timeout: not every host can be cancelled while it sends.

        Args:
            http: The request that is answered.
        """
        with trio.CancelScope() as self._watching:
            while not self.closed and (due := self._check()) is not None:
                with trio.CancelScope(deadline=due):
                    # Returns only if the client has gone; a deadline leads back to the check.
                    await http.gone()
                    return

    def _check(self) -> float | None:
        """Write a comment if the stream has been silent for long.

        Returns:
            The time of the next check, on trio's clock; None: the reader is stuck.
        """
        pace, now = self._pace, trio.current_time()
        if self._sending:
            due = self._since + pace.stall
            return min(due, now + pace.keepalive) if now < due else None
        # `_since` is infinite before the first part: then the silence begins now.
        due = min(self._since, now) + pace.keepalive
        if now >= due:
            self.put(KEEPALIVE)
            due = now + pace.keepalive
        return min(due, now + pace.stall)  # a part may begin at any time, and stall

    async def _run(self, http: HttpRequest) -> None:
        part: bytes | None = b""  # hosts send the head with the first part
        while part is not None:
            more = {"type": "http.response.body", "body": part, "more_body": True}
            await self._send(http, more)
            part = await self._next()
        await self._send(http, {"type": "http.response.body", "body": b""})

    async def _send(self, http: HttpRequest, message: Message) -> None:
        self._since = trio.current_time()
        # Stays True if the host raises: the writer is closed then, and nobody looks any more.
        self._sending = True
        await http.send(message)
        self._sending = False

    async def _next(self) -> bytes | None:
        """Wait for the next part; None: all of it is written."""
        if not self._queue and not self._ended:
            self._wake = trio.Event()
            await self._wake.wait()
            self._wake = None
        return self._take() if self._queue else None

    def _take(self) -> bytes:
        size = count = 0
        # At least one event, however long it is: half an event would be no use to anybody.
        while count < len(self._queue) and size < CHUNK:
            size += len(self._queue[count])
            count += 1
        taken = b"".join(self._queue[:count])
        del self._queue[:count]
        self._size -= size
        self._note_taken()
        return taken

    def _rouse(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def _note_taken(self) -> None:
        if self._taken is not None:
            self._taken.set()
            self._taken = None
