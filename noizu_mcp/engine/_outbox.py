"""What waits to be written: bounded, in order, one writer."""

import trio

from ._abc import MessageStream


class Outbox:
    """The messages that one connection has yet to write.

    Answers are always kept: their number is bounded by the requests in flight, and the reader
    waits for `room` before it takes more of those. Notices can be dropped instead.

    Args:
        stream: Where they go.
        limit: Bytes waiting above which there is no room.

    Attributes:
        dropped: Messages that were dropped for want of room or of a peer.
    """

    def __init__(self, stream: MessageStream, limit: int) -> None:
        self.dropped = 0
        self._stream = stream
        self._limit = limit
        self._queue: list[bytes] = []
        self._size = 0
        self._broken = False
        self._writing = False
        self._unfinished = False
        self._work = trio.Event()
        self._emptied = trio.Event()

    @property
    def has_room(self) -> bool:
        """False while more than the limit is waiting."""
        return self._size <= self._limit or self._broken

    def put(self, message: bytes, *, droppable: bool = False) -> None:
        """Queue one message; nothing is written before `flush_now` or `flush_soon`."""
        if self._broken or (droppable and not self.has_room):
            self.dropped += 1
            return
        self._queue.append(message)
        self._size += len(message)

    def flush_now(self) -> None:
        """Write from the calling task what can be written without waiting."""
        if self._writing or self._unfinished:
            return  # the writer is at it and takes what is queued by then
        if self._queue and not self._broken:
            messages = self._take()
            try:
                self._unfinished = not self._stream.send_nowait(messages)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._break()
            self._settle()

    def flush_soon(self) -> None:
        """Let the writer task write, together with what else is queued until it runs."""
        self._work.set()

    async def room(self) -> None:
        """Wait until there is room; a checkpoint."""
        await trio.lowlevel.checkpoint()
        while not self.has_room:
            await self._emptied.wait()

    async def write(self) -> None:
        """Write what `flush_soon` asks for and `flush_now` leaves over, for ever; one task."""
        while True:
            await self._work.wait()
            self._work = trio.Event()
            await self._write_all()

    async def drain(self) -> None:
        """Wait until nothing is left to write, or the peer is gone; `write` must be running."""
        self._work.set()
        while (self._queue or self._unfinished or self._writing) and not self._broken:
            await self._emptied.wait()

    def close(self) -> None:
        """Drop what is left and what still comes; nobody waits for room any longer."""
        self._break()
        self._settle()

    async def _write_all(self) -> None:
        while (self._queue or self._unfinished) and not self._broken:
            self._writing = True
            try:
                await self._stream.send(self._take())
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._break()
            finally:
                self._writing = False
            self._unfinished = False
            self._settle()

    def _take(self) -> list[bytes]:
        messages, self._queue = self._queue, []
        return messages

    def _settle(self) -> None:
        if self._unfinished:
            self._work.set()
            return
        self._size = sum(map(len, self._queue))
        self._emptied.set()
        self._emptied = trio.Event()

    def _break(self) -> None:
        self._broken = True
        self._unfinished = False
        self.dropped += len(self._queue)
        self._queue.clear()
