"""Messages that wait to be written to a pipe: bounded, in order, one writer.

States: *clear* (no messages wait), *queued* (messages wait for a flush), *unfinished* (the stream
has the rest of a message that the pipe did not accept), *writing* (the writer task is in `send`),
*broken* (the peer is gone). A flush from the calling task is allowed only in *queued*, since one
task at a time may use the stream; otherwise the writer takes the queue when it is done.

Memory is bounded: answers are limited by the requests in flight, and the message loop reads no
request while the outbox is over its limit; notifications beyond the limit are dropped. It cannot
deadlock: the writer waits for the pipe only, and `close` wakes every task that waits for room.
"""

from collections.abc import Sized

import trio

from ._contracts import MessageStream


class Outbox:
    """Messages of one connection that are not written yet; the `ReplyChannel` of a pipe.

    Args:
        stream: Writes the messages.
        limit: Bytes waiting above which there is no room.
        in_flight: The unanswered requests of the peer.

    Attributes:
        corked: True while the reader handles messages that arrived together; it flushes afterwards.
        dropped: Messages dropped for lack of room or of a peer.
        is_broken: True once the peer is known to accept no more messages.
    """

    def __init__(self, stream: MessageStream, limit: int, in_flight: Sized = ()) -> None:
        self.corked = False
        self.dropped = 0
        self.is_broken = False
        self._stream = stream
        self._limit = limit
        self._in_flight = in_flight
        self._queue: list[bytes] = []
        self._size = 0
        self._writing = False
        self._unfinished = False
        self._work = trio.Event()
        self._emptied: trio.Event | None = None  # while a task waits

    # ReplyChannel: all messages of a connection use the same pipe.

    def reserve(self, _size: int, /) -> bool:
        """Return True; see `ReplyChannel`."""
        return True  # the message loop reads no request while there is no room

    def answer(self, message: bytes, _code: int | None = None, /) -> None:
        """Send an answer; see `ReplyChannel`."""
        self.put(message)
        self._flush()

    def abandon(self) -> None:
        """Do nothing: the answers to other requests do not depend on it."""

    def release(self, _seconds: float, /) -> None:
        """Do nothing: a pipe is not reconnected."""

    def deliver(self, message: bytes) -> None:
        """Send a message; see `ReplyChannel`."""
        self.put(message)
        self._flush()

    def offer(self, message: bytes) -> None:
        """Send a message if there is room; see `ReplyChannel`."""
        self.put(message, droppable=True)
        self._flush()

    @property
    def has_room(self) -> bool:
        """False while more bytes than the limit wait."""
        # A broken pipe has room: everything is dropped, and no task must wait for a peer that is
        # gone.
        return self._size <= self._limit or self.is_broken

    async def room(self) -> None:
        """Wait until there is room; a checkpoint."""
        await trio.lowlevel.checkpoint()
        # A loop: all waiting tasks wake up together, and the first may use up the room.
        while not self.has_room:
            await self._wait_emptied()

    # Queue and flush

    def put(self, message: bytes, *, droppable: bool = False) -> None:
        """Queue one message; `flush_now` or `flush_soon` writes it."""
        if self.is_broken or (droppable and not self.has_room):
            self.dropped += 1
            return
        self._queue.append(message)
        # Bytes that the writer has taken count until the pipe has accepted them; see `_settle`.
        self._size += len(message)

    def _flush(self) -> None:
        # Writing at once saves a task switch (20 µs) when a peer sends one request at a time.
        # Leaving it to the writer saves a system call per answer when it sends many.
        if self.corked:
            return
        if self._in_flight:
            self._work.set()
        else:
            self.flush_now()

    def flush_now(self) -> bool:
        """Write from the calling task as much as possible without waiting.

        Returns:
            True if there is room afterwards.
        """
        # A writer that works takes the whole queue when it is done.
        may_write = not (self._writing or self._unfinished or self.is_broken)
        if self._queue and may_write:
            messages = self._take()
            try:
                # A pipe may accept a part of a message. The stream has the rest, and until it is
                # written no other message may start.
                self._unfinished = not self._stream.send_nowait(messages)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._break()
            if self._unfinished or self._emptied is not None:
                self._settle()
            else:  # the same, inlined for most answers
                self._size = 0
        return not self._size or self.has_room

    def flush_soon(self) -> None:
        """Let the writer task write, together with all messages that are queued until it runs."""
        self._work.set()

    # The writer

    async def write(self) -> None:
        """Write the messages that `flush_now` did not, forever. Exactly one task runs this."""
        while True:
            await self._work.wait()
            # Replaced before the work: a flush in the meantime sets the new event, so no wake-up is
            # lost.
            self._work = trio.Event()
            await self._write_all()

    async def drain(self) -> None:
        """Wait until nothing is left to write, or the peer is gone; `write` must be running."""
        self._work.set()
        # Woken by every `_settle`, and so also by the end of the peer.
        while (self._queue or self._unfinished or self._writing) and not self.is_broken:
            await self._wait_emptied()

    def close(self) -> None:
        """Drop all messages, current and future, and wake every task that waits for room."""
        self._break()
        self._settle()

    async def _write_all(self) -> None:
        while (self._queue or self._unfinished) and not self.is_broken:
            self._writing = True
            try:
                await self._stream.send(self._take())
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._break()
            finally:
                # Also on cancellation: the flag means that a task is in `send`.
                self._writing = False
            # `send` has begun with the rest that `flush_now` left.
            self._unfinished = False
            self._settle()

    def _take(self) -> list[bytes]:
        messages, self._queue = self._queue, []
        return messages

    def _settle(self) -> None:
        if self._unfinished:
            # The bytes of an unfinished message count until the writer has written them: only the
            # stream knows how many are left.
            self._work.set()
            return
        self._size = sum(map(len, self._queue)) if self._queue else 0
        if self._emptied is not None:
            self._emptied.set()
            self._emptied = None  # tasks that start to wait now wait for the next event

    async def _wait_emptied(self) -> None:
        """Wait for the next `_settle` that leaves no message unfinished."""
        if self._emptied is None:
            self._emptied = trio.Event()
        await self._emptied.wait()

    def _break(self) -> None:
        self.is_broken = True
        self._unfinished = False
        self.dropped += len(self._queue)
        self._queue.clear()
