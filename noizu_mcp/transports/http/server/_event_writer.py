"""Server-sent events: the text of an event, and an answer that is a stream of events.

Theory of operation. `put` adds events to a queue, and `_drain` writes them to the client in parts.
A writer has these states:

- *writing*: a task runs `_drain`, with `_writing` as its scope; while that is inside of the host's
  `send`, `_since` is the time at which the part began;
- *idle*: the queue is empty, and no task writes. Where the host can write at once, `put` goes past
  the queue. Else it begins a task for `_drain`, which ends with the queue;
- *ended*: `end` was called. `_drain` writes the rest, then the end of the body;
- *closed*: nothing more is written. A failure of `_drain`, and its end of the body, lead here.

The task of the request writes the head and the first events. Then it waits for the client to go
(`serve`), or returns, if the host does that for it (`HandOver`): so an idle stream needs no task
there. A stream may still be written by another task, since hosts may shield their `send`: the task
of the request must be able to return meanwhile.

Time is the matter of one task for all streams, `OpenStreams.sweep`: it writes a comment to those
that were silent for long, ends those whose token must be verified again, and closes those whose
readers have left a part unread for `HttpLimits.stall` seconds. `close` cancels what `_drain` is at,
wakes all tasks that wait for room, and calls `on_close`, so no task waits for a lost client, even
if the host cannot be cancelled while it sends. The queue cannot grow: above `HttpLimits.room`
notices are dropped, and everything that waits is counted for the client. If there is no room for a
message that must not get lost, the writer is closed.
"""

import math
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import trio

from ....types import Principal
from ._asgi import AsgiMessage, AsgiSend, HttpHeader, HttpRequest, WriteNowait
from ._http_options import HttpLimits
from ._quotas import Quota, Reservation

TaskWork = Callable[[], Awaitable[object]]

#: `X-Accel-Buffering` keeps proxies from holding events back (2026-07-28 `streamable-http`);
#: `no-transform` keeps them from compressing, which would hold events back as well.
EVENT_STREAM: Final[tuple[HttpHeader, ...]] = (
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
#: Seconds that a stream gets at least. Verifiers take a token a little after its end, as clocks
#: differ; a stream that ended at once would be opened again at once.
LEAST: Final = 30.0
#: Looks at all streams within one silence, at most: with many streams one of them is always due.
LOOKS: Final = 16


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


def time_left(principal: Principal | None, life: float) -> float:
    """Return the seconds after which a stream is ended, since its token must be verified again.

    Args:
        principal: The principal that opened the stream; without one the time is infinite.
        life: Seconds after which a token must be shown again, even if it is valid for longer. It
            may have been revoked, and a client that only reads sends no request.
    """
    if principal is None:
        return math.inf
    if principal.expires_at is None:
        return life
    # `expires_at` is a date, so the clock of the system counts here, and not trio's.
    return min(max(principal.expires_at - time.time(), LEAST), life)


class EventWriter:
    """Events that wait to be written to one reader: bounded, in order, one writing task at a time.

    Args:
        streams: The open streams; this one is in it while it is written.
        quota: Counts the bytes that wait.
        expires: Time, on trio's clock, at which it is ended.
        on_expiry: Called then, in place of `end`; again after `LEAST` seconds if it goes on.

    Attributes:
        closed: True once nothing more is written: all events are written, or the reader has
            gone, or was disconnected.
        complete: True once all events and the end are written.
        dropped: Number of events that were dropped for want of room, or of a reader.
        on_close: Called when it is closed.
    """

    __slots__ = (
        "_ended",
        "_expires",
        "_head",
        "_leave",
        "_on_expiry",
        "_part",
        "_queue",
        "_reservation",
        "_rest",
        "_send",
        "_sending",
        "_served",
        "_since",
        "_size",
        "_streams",
        "_taken",
        "_write",
        "_writing",
        "closed",
        "complete",
        "dropped",
        "on_close",
    )

    _send: AsgiSend  # once it is served

    def __init__(
        self,
        streams: "OpenStreams",
        quota: Quota,
        expires: float = math.inf,
        on_expiry: Callable[[], object] | None = None,
    ) -> None:
        self.closed = False
        self.complete = False
        self.dropped = 0
        self.on_close: Callable[[], object] | None = None
        self._streams = streams
        self._expires = expires
        self._on_expiry = on_expiry
        self._reservation = Reservation(quota)
        self._queue: list[bytes] = []
        self._size = 0
        self._part = 0  # bytes that are being sent
        self._rest = 0  # bytes that the host has taken past the queue, and not written
        self._ended = False
        self._sending = False
        self._since = math.inf  # when the last part began; none yet
        self._served = False
        self._head: Iterable[HttpHeader] | None = None  # of the answer, until it is sent
        self._write: WriteNowait | None = None
        self._writing: trio.CancelScope | None = None  # while a task writes
        self._leave: Callable[[], object] | None = None  # ends the wait for the client
        self._taken: trio.Event | None = None  # while somebody waits for room

    @property
    def has_room(self) -> bool:
        """False while more than the limit is waiting."""
        return self._size <= self._streams.limits.room or self.closed

    def put(self, data: bytes, *, droppable: bool = False) -> None:
        """Write an event, after those before it."""
        if self.closed or (droppable and not self.has_room):
            self.dropped += 1
        elif not self._writes_now(data):
            self._queue_up(data, len(data), droppable=droppable)

    def deliver(self, message: bytes) -> None:
        """Write a message that must not get lost, as an event without an id."""
        self.put(event(message))

    def offer(self, message: bytes) -> None:
        """Write a message, if there is room, as an event without an id."""
        self.put(event(message), droppable=True)

    def _queue_up(self, data: bytes, size: int, *, droppable: bool) -> None:
        if self._reservation.reserve(size):
            self._queue.append(data)
            self._size += len(data)
            self._rouse()
        else:
            self.dropped += 1
            if not droppable:
                # The client must see that something is missing. It may come back for it.
                self.close()

    def _writes_now(self, data: bytes) -> bool:
        """Write an event past the queue, if the host can do that and no event is before it."""
        # Before the first part there is no head. While no task writes, the queue is empty, so that
        # nothing can be overtaken.
        if self._write is None or self._writing is not None or self._since == math.inf:
            return False
        # The host would copy the rest of a large event.
        if len(data) > CHUNK:
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
            # for that, and while it is being sent a client that does not read is noticed.
            self._rest = left
            self._queue_up(b"", left, droppable=False)
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
        if not self.closed:
            self.closed = True
            self._queue.clear()
            if self._writing is None:
                self._reservation.close()
            else:
                # The part that is being sent counts until `_drain` ends. That may be inside of a
                # `send` which never returns by itself.
                self._reservation.release(self._reservation.size - self._part)
                self._writing.cancel()
            self._note_taken()
            self._streams.discard(self)
            if self._leave is not None:
                self._leave()
            if self.on_close is not None:
                self.on_close()

    async def serve(self, http: HttpRequest, *, may_hand_over: bool = False) -> bool:
        """Write the answer: its head, and events until `end`, `close` or a disconnect.

        Returns when it is closed, whatever the host does. Without `end` the answer has no end: the
        reader must see that something is missing.

        Args:
            http: The request that it answers; its body has been read.
            may_hand_over: The task of the request has nothing else to do. If the host can go on
                without it, this returns earlier.

        Returns:
            True if the host goes on without the task.
        """
        if self.closed:
            return False
        # Counted from the start, also if the head is never taken.
        self._streams.add(self)
        self._served = True
        self._send, self._write, self._head = http.send, http.write_nowait, http.extra
        hand_over = http.hand_over if may_hand_over else None
        handed_over = False
        try:
            if self._write is None:
                # Another host may shield its `send`, which returns when the connection is closed:
                # when this task has returned.
                self._rouse()
            else:
                with trio.CancelScope() as self._writing:
                    await self._drain()
            if hand_over is not None and not self.closed:
                self._leave = hand_over(self.close)
                handed_over = True
            elif not self.closed:
                with trio.CancelScope() as waiting:
                    self._leave = waiting.cancel
                    await http.wait_disconnect()
        finally:
            if not handed_over:
                self.close()
        return handed_over

    async def _drain(self) -> None:
        """Write the queue; in the scope `_writing`."""
        drained = False
        try:
            await trio.lowlevel.checkpoint_if_cancelled()  # the request may be over
            await self._send_queue()
            drained = True
        except OSError:
            pass  # raised by hosts once the client has gone (ASGI 2.4)
        finally:
            self._writing = None
            if self.closed:
                self._reservation.close()
            elif not drained or self.complete:
                self.close()

    async def _send_queue(self) -> None:
        if self._head is not None:
            headers, self._head = [*EVENT_STREAM, *self._head], None
            await self._send_message(
                {"type": "http.response.start", "status": 200, "headers": headers}
            )
            await self._send_part()  # hosts send the head with the first part, be it empty
        while self._queue:
            await self._send_part()
        # One that is closed ends without the end: its reader must see that something is missing.
        if self._ended and not self.closed:
            await self._send_message({"type": "http.response.body", "body": b""})
            self.complete = True

    async def _send_part(self) -> None:
        more = {"type": "http.response.body", "body": self._take(), "more_body": True}
        await self._send_message(more)

    async def _send_message(self, message: AsgiMessage) -> None:
        self._since = trio.current_time()
        # Stays True if the host raises: the writer is closed then, and does not read it again.
        self._sending = True
        await self._send(message)
        self._sending = False
        self._reservation.release(self._part)
        self._part = 0

    def _take(self) -> bytes:
        size = count = 0
        # At least one event, however long it is: half an event would be no use to anybody.
        while count < len(self._queue) and size < CHUNK:
            size += len(self._queue[count])
            count += 1
        taken = b"".join(self._queue[:count])
        del self._queue[:count]
        self._size -= size
        self._part, self._rest = size + self._rest, 0
        self._note_taken()
        return taken

    def check(self, now: float) -> float:
        """Do the things that are due.

        Returns:
            The time of the next check, on trio's clock.
        """
        limits = self._streams.limits
        if now >= self._expires:
            self._expires = now + LEAST
            (self._on_expiry or self.end)()
        if self._sending:
            due = self._since + limits.stall
            if now >= due:
                self.close()
        else:
            # `_since` is infinite before the first part: then the silence begins now.
            due = min(self._since, now) + limits.keepalive
            if now >= due:
                self.put(KEEPALIVE)
                due = now + limits.keepalive
        # A part may begin at any time, and stall; a stream that is sending may fall silent.
        return min(due, self._expires, now + limits.stall, now + limits.keepalive)

    def _rouse(self) -> None:
        if self._served and self._writing is None and not self.closed:
            self._writing = self._streams.spawn(self._drain)

    def _note_taken(self) -> None:
        if self._taken is not None:
            self._taken.set()
            self._taken = None


class OpenStreams:
    """The open streams of one application, and their time.

    A scope and a task for the time of each stream would take as much memory as the stream.

    Args:
        limits: The limits on time and memory for the readers.
        counted: The open streams of all applications of the server, for telemetry.
        spawn: Runs a coroutine function in a task; returns the scope that cancels it.

    Attributes:
        limits: See Args.
        spawn: See Args.
    """

    def __init__(
        self,
        limits: HttpLimits,
        counted: set[object],
        spawn: Callable[[TaskWork], trio.CancelScope],
    ) -> None:
        self.limits = limits
        self.spawn = spawn
        self._counted = counted
        self._open: dict[EventWriter, None] = {}
        self._sleeping = trio.CancelScope()
        self._ended: trio.Event | None = None  # while the last one is waited for

    def __len__(self) -> int:
        return len(self._open)

    def add(self, writer: EventWriter) -> None:
        """Take in a stream that is being written."""
        self._open[writer] = None
        self._counted.add(writer)
        due = writer.check(trio.current_time())
        self._sleeping.deadline = min(self._sleeping.deadline, due)

    def discard(self, writer: EventWriter) -> None:
        """Forget a stream."""
        self._open.pop(writer, None)
        self._counted.discard(writer)
        if self._ended is not None and not self._open:
            self._ended.set()

    async def wait_for_end(self) -> None:
        """Wait until none is open; no more are opened."""
        self._ended = trio.Event()
        if self._open:
            await self._ended.wait()

    def close(self) -> None:
        """Wait no longer for readers that have not read everything."""
        for writer in list(self._open):
            writer.close()

    async def sweep(self) -> None:
        """Check the streams when it is time, again and again, until cancelled."""
        least = min(self.limits.keepalive, self.limits.stall) / LOOKS
        while True:
            now = trio.current_time()
            due = min([writer.check(now) for writer in list(self._open)], default=math.inf)
            with trio.CancelScope(deadline=max(due, now + least)) as self._sleeping:
                await trio.sleep_forever()
