"""Server-sent events: the text of an event, and an answer that is a stream of events.

Theory of operation. `put` adds events to a queue, and `_drain` sends them to the client in parts. A
writer has these states:

- *writing*: a task runs `_drain`, in the scope `_writing`; while it is in the host's `send`,
  `_since` is the time at which the part began;
- *idle*: the queue is empty, and no task writes. If the host can write without waiting, `put`
  bypasses the queue. Otherwise it starts a task for `_drain`, which ends when the queue is empty;
- *ended*: `end` was called. `_drain` writes the rest, then the end of the body;
- *closed*: nothing more is written. `_drain` closes the writer when it fails or has sent the end.

The task of the request writes the head and the first events. Then it waits for the disconnect
(`serve`), or returns if the host waits for it (`HandOver`): so an idle stream needs no task.
Another task may write the stream, since hosts may shield their `send`: the task of the request must
be able to return meanwhile.

One task for all streams, `OpenStreams.sweep`, handles time: it writes a comment to streams that
were silent for long, ends those whose token must be verified again, and closes those whose readers
have left a part unread for `HttpLimits.stall` seconds. `close` cancels what `_drain` is doing,
wakes all tasks that wait for room, and calls `on_close`, so no task waits for a lost client, even
if the host cannot be cancelled while it sends. The queue is bounded: above `HttpLimits.room`
notifications are dropped, and waiting bytes are counted for the client. If there is no room for a
message that must not be lost, the writer is closed.
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

#: `X-Accel-Buffering` keeps proxies from buffering events (2026-07-28 `streamable-http`);
#: `no-transform` keeps them from compressing, which would delay events as well.
EVENT_STREAM: Final[tuple[HttpHeader, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
#: A comment, which clients ignore (HTML standard, section 9.2.6). Proxies close streams that are
#: silent for long.
KEEPALIVE: Final = b":\n\n"
#: Maximum bytes of events in one part of the body. Later events wait until the part is sent.
CHUNK: Final = 64 * 1024
#: Seconds without an event after which the next one is written at once. Events shortly after it are
#: written together.
QUIET: Final = 0.001
#: Minimum seconds of a stream. Verifiers accept a token slightly after its expiry, since clocks
#: differ; a stream that ended at once would be reopened at once.
LEAST: Final = 30.0
#: Maximum checks of all streams within one keepalive period: with many streams one is always due.
LOOKS: Final = 16


def event(message: bytes, id_: str | None = None) -> bytes:
    """Format a message as an event.

    Args:
        message: JSON without line breaks, as the codec writes it.
        id_: The event id. A client sends it as `Last-Event-ID` to get later events.
    """
    if id_ is None:
        return b"event: message\ndata: %b\n\n" % message
    return b"id: %b\nevent: message\ndata: %b\n\n" % (id_.encode(), message)


def priming_event(id_: str, retry: float) -> bytes:
    """Format an event that has only an id and a retry time (2025-11-25 `basic/transports`).

    Args:
        id_: The id.
        retry: Seconds that the client should wait before it returns.
    """
    return b"id: %b\nretry: %d\ndata: \n\n" % (id_.encode(), round(retry * 1000))


def time_left(principal: Principal | None, life: float) -> float:
    """Return the seconds until a stream must end, since its token must be verified again.

    Args:
        principal: The principal that opened the stream; None for no limit.
        life: Seconds after which a token must be sent again, even if it is valid for longer. It may
            have been revoked, and a client that only reads sends no request.
    """
    if principal is None:
        return math.inf
    if principal.expires_at is None:
        return life
    # `expires_at` is a date, so it is compared with the system's clock, not trio's.
    return min(max(principal.expires_at - time.time(), LEAST), life)


class EventWriter:
    """Events that wait to be sent to one reader: bounded, in order, with one writing task.

    Args:
        streams: The open streams; includes this one while it is served.
        quota: Counts the waiting bytes.
        expires: Time, on trio's clock, at which the stream must end.
        on_expiry: Called then instead of `end`; again after `LEAST` seconds if it is still open.

    Attributes:
        closed: True once nothing more is written: all events are written, or the connection
            to the reader is closed.
        complete: True once all events and the end are written.
        dropped: Number of events dropped for lack of room or of a reader.
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

    _send: AsgiSend  # set once it is served

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
        self._rest = 0  # bytes passed to the host past the queue, and not written
        self._ended = False
        self._sending = False
        self._since = math.inf  # when the last part began
        self._served = False
        self._head: Iterable[HttpHeader] | None = None  # of the answer, until it is sent
        self._write: WriteNowait | None = None
        self._writing: trio.CancelScope | None = None  # while a task writes
        self._leave: Callable[[], object] | None = None  # ends the wait for the disconnect
        self._taken: trio.Event | None = None  # made by tasks that wait for room

    @property
    def has_room(self) -> bool:
        """False while more bytes than the limit wait."""
        return self._size <= self._streams.limits.room or self.closed

    def put(self, data: bytes, *, droppable: bool = False) -> None:
        """Write an event after all earlier ones."""
        if self.closed or (droppable and not self.has_room):
            self.dropped += 1
        elif not self._writes_now(data):
            self._queue_up(data, len(data), droppable=droppable)

    def deliver(self, message: bytes) -> None:
        """Write a message that must not be lost, as an event without an id."""
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
                # The client must notice that something is missing. It may return for it.
                self.close()

    def _writes_now(self, data: bytes) -> bool:
        """Write an event past the queue, if the host supports it and no event is waiting."""
        # Before the first part there is no head. While no task writes, the queue is empty, so no
        # event is overtaken.
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
            # The host keeps the rest, and writes it before the next part, for which an empty part
            # is enough. While it is being sent, a client that does not read is noticed.
            self._rest = left
            self._queue_up(b"", left, droppable=False)
        return True

    async def room(self) -> None:
        """Wait until there is room; a checkpoint."""
        await trio.lowlevel.checkpoint()
        # One event for all waiting tasks: each checks again, since others may have used the room.
        while not self.has_room:
            if self._taken is None:
                self._taken = trio.Event()
            await self._taken.wait()

    def end(self) -> None:
        """End the answer once everything is written."""
        self._ended = True
        self._rouse()

    def close(self) -> None:
        """Write nothing more: the reader has disconnected, or is disconnected here."""
        if not self.closed:
            self.closed = True
            self._queue.clear()
            if self._writing is None:
                self._reservation.close()
            else:
                # The part being sent counts until `_drain` ends, which may be in a `send` that
                # never returns by itself.
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

        Returns when it is closed, whatever the host does. Without `end` the answer has no end, so
        the reader notices that something is missing.

        Args:
            http: The request that it answers; its body was read.
            may_hand_over: True if the task of the request has nothing else to do. If the host can
                continue without the task, this returns earlier.

        Returns:
            True if the host continues without the task.
        """
        if self.closed:
            return False
        # Counted from the start, even if the head is never read.
        self._streams.add(self)
        self._served = True
        self._send, self._write, self._head = http.send, http.write_nowait, http.extra
        hand_over = http.hand_over if may_hand_over else None
        handed_over = False
        try:
            if self._write is None:
                # Another host may shield its `send`, which returns when the connection is closed,
                # after this task has returned.
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
        """Write the queue. Runs in the scope `_writing`."""
        drained = False
        try:
            await trio.lowlevel.checkpoint_if_cancelled()  # the request may have ended
            await self._send_queue()
            drained = True
        except OSError:
            pass  # raised by hosts once the client is gone (ASGI 2.4)
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
            await self._send_part()  # hosts send the head with the first part, even an empty one
        while self._queue:
            await self._send_part()
        # A closed stream has no end: its reader must notice that something is missing.
        if self._ended and not self.closed:
            await self._send_message({"type": "http.response.body", "body": b""})
            self.complete = True

    async def _send_part(self) -> None:
        more = {"type": "http.response.body", "body": self._take(), "more_body": True}
        await self._send_message(more)

    async def _send_message(self, message: AsgiMessage) -> None:
        self._since = trio.current_time()
        # Stays True if the host raises: the writer is then closed, and does not use it again.
        self._sending = True
        await self._send(message)
        self._sending = False
        self._reservation.release(self._part)
        self._part = 0

    def _take(self) -> bytes:
        size = count = 0
        # At least one event, whatever its size: half an event is useless.
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
        """Do everything that is due.

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
        # A part may begin at any time, and stall; a stream that is sending may become silent.
        return min(due, self._expires, now + limits.stall, now + limits.keepalive)

    def _rouse(self) -> None:
        if self._served and self._writing is None and not self.closed:
            self._writing = self._streams.spawn(self._drain)

    def _note_taken(self) -> None:
        if self._taken is not None:
            self._taken.set()
            self._taken = None


class OpenStreams:
    """The open streams of one application, and their deadlines.

    A scope and a task for each stream's deadlines would take as much memory as the stream.

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
        self._ended: trio.Event | None = None  # set by the task that waits for the last one

    def __len__(self) -> int:
        return len(self._open)

    def add(self, writer: EventWriter) -> None:
        """Add a stream that is being written."""
        self._open[writer] = None
        self._counted.add(writer)
        due = writer.check(trio.current_time())
        self._sleeping.deadline = min(self._sleeping.deadline, due)

    def discard(self, writer: EventWriter) -> None:
        """Remove a stream."""
        self._open.pop(writer, None)
        self._counted.discard(writer)
        if self._ended is not None and not self._open:
            self._ended.set()

    async def wait_for_end(self) -> None:
        """Wait until no stream is open. No more are opened by then."""
        self._ended = trio.Event()
        if self._open:
            await self._ended.wait()

    def close(self) -> None:
        """Close all streams, even if their readers have not read everything."""
        for writer in list(self._open):
            writer.close()

    async def sweep(self) -> None:
        """Check the streams whenever one is due, until cancelled."""
        least = min(self.limits.keepalive, self.limits.stall) / LOOKS
        while True:
            now = trio.current_time()
            due = min([writer.check(now) for writer in list(self._open)], default=math.inf)
            with trio.CancelScope(deadline=max(due, now + least)) as self._sleeping:
                await trio.sleep_forever()
