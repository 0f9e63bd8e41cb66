"""Server-sent events: how messages are written, and one answer that is a stream of them."""

from typing import Final

import attrs
import trio

from ._asgi import Header, HttpRequest, Send

#: `X-Accel-Buffering` keeps proxies from holding events back (2026-07-28 `streamable-http`).
EVENT_STREAM: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
KEEPALIVE: Final = b":\n\n"
#: Bytes of events in one part of the body; what is behind waits until the client has taken it.
CHUNK: Final = 64 * 1024


def event(message: bytes, id_: str | None = None) -> bytes:
    """Write one message as one event.

    Args:
        message: JSON without line ends, as the codec writes it.
        id_: What a client sends as `Last-Event-ID` to get what came after it.
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
    """How an event stream treats its reader.

    Attributes:
        keepalive: Seconds of silence after which a comment is written.
        stall: Seconds that the reader may leave a part unread.
        room: Bytes waiting for it above which notices are dropped.
        streams: The streams that are open, for who counts them.
    """

    keepalive: float
    stall: float
    room: int
    streams: set[object] = attrs.field(factory=set, repr=False)


class EventWriter:
    """What waits to be written to one reader: bounded, in order, one writing task.

    Args:
        pace: How it treats the reader.

    Attributes:
        closed: True once the reader is gone, or was sent away: nothing is written any more.
        dropped: Events that were dropped for want of room.
    """

    def __init__(self, pace: Pace) -> None:
        self.closed = False
        self.dropped = 0
        self._pace = pace
        self._queue: list[bytes] = []
        self._size = 0
        self._ended = False
        self._scope = trio.CancelScope()
        self._wake = trio.Event()
        self._taken = trio.Event()

    @property
    def has_room(self) -> bool:
        """False while more than the limit is waiting."""
        return self._size <= self._pace.room or self.closed

    def put(self, data: bytes, *, droppable: bool = False) -> None:
        """Write an event, after those before it."""
        if self.closed or (droppable and not self.has_room):
            self.dropped += 1
            return
        self._queue.append(data)
        self._size += len(data)
        self._wake.set()

    async def room(self) -> None:
        """Wait until there is room; a checkpoint."""
        await trio.lowlevel.checkpoint()
        while not self.has_room:
            await self._taken.wait()

    def end(self) -> None:
        """End the answer once everything is written."""
        self._ended = True
        self._wake.set()

    def close(self) -> None:
        """Write nothing more: the reader is gone, or another one takes its place."""
        self.closed = True
        self._scope.cancel()

    async def run(self, http: HttpRequest) -> bool:
        """Write the whole answer: its head, and events until `end` or `close`.

        Without `end` the answer has no end: the reader must see that something is missing.

        Args:
            http: The request that it answers.

        Returns:
            True if all of it was written.
        """
        self._pace.streams.add(self)
        try:
            with self._scope:
                head = [*EVENT_STREAM, *http.extra]
                await http.send({"type": "http.response.start", "status": 200, "headers": head})
                return await self._run(http.send)
        except OSError:  # what hosts raise once the client is gone (ASGI 2.4)
            return False
        else:
            return False
        finally:
            self._pace.streams.discard(self)
            self.closed = True
            self._taken.set()

    async def _run(self, send: Send) -> bool:
        body = b""
        while True:
            with trio.move_on_after(self._pace.stall) as patience:
                await send({"type": "http.response.body", "body": body, "more_body": True})
            if patience.cancelled_caught:
                return False
            if self._ended and not self._queue:
                await send({"type": "http.response.body", "body": b""})
                return True
            body = await self._next()

    async def _next(self) -> bytes:
        if not self._wake.is_set():
            with trio.move_on_after(self._pace.keepalive) as patience:
                await self._wake.wait()
            if patience.cancelled_caught:
                return KEEPALIVE
        return self._take()

    def _take(self) -> bytes:
        size = count = 0
        while count < len(self._queue) and size < CHUNK:
            size += len(self._queue[count])
            count += 1
        taken, self._queue = self._queue[:count], self._queue[count:]
        self._size -= size
        if not self._queue and not self._ended:
            self._wake = trio.Event()
        self._taken.set()
        self._taken = trio.Event()
        return b"".join(taken)
