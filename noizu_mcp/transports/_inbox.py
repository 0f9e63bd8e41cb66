"""Received messages that wait for `receive`, for transports without a buffer."""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import trio

Queued = TypeVar("Queued")

#: Bytes that may wait before senders must wait for room.
CAPACITY: Final = 1024 * 1024


class Inbox(Generic[Queued]):
    """Messages that wait for `receive`, in order of arrival.

    `put` never waits. The inbox is bounded in bytes because senders call `room` between messages.
    """

    def __init__(self) -> None:
        self.closed = False
        self._items: list[Queued] = []
        self._size = 0
        self._arrived: trio.Event | None = None  # set by `take_all` while it waits
        self._taken: trio.Event | None = None

    @property
    def has_room(self) -> bool:
        """False while more bytes than the capacity wait."""
        # A closed inbox has room: no task must wait for a peer that is gone.
        return self._size <= CAPACITY or self.closed

    def put(self, item: Queued, size: int) -> None:
        """Add a message of a size in bytes. A closed inbox drops it."""
        if not self.closed:
            self._items.append(item)
            self._size += size
            self._note_arrived()

    async def room(self) -> None:
        """Wait until there is room for more; a checkpoint."""
        # Always a checkpoint: a chunk with many events must not block the loop.
        await trio.lowlevel.checkpoint()
        while not self.has_room:
            if self._taken is None:
                self._taken = trio.Event()
            await self._taken.wait()

    async def take_all(self) -> Sequence[Queued]:
        """Wait for messages and take all of them; an empty list once it is closed and empty."""
        # A checkpoint even if there is nothing to wait for, as trio requires.
        if self._items or self.closed:
            await trio.lowlevel.checkpoint()
        while not self._items and not self.closed:
            self._arrived = trio.Event()
            await self._arrived.wait()
        items, self._items = self._items, []
        self._size = 0
        self._note_taken()
        return items

    def close(self) -> None:
        """Close the inbox. Stored messages can still be taken, no more are added."""
        self.closed = True
        self._note_arrived()
        self._note_taken()

    def _note_arrived(self) -> None:
        if self._arrived is not None:
            self._arrived.set()

    def _note_taken(self) -> None:
        if self._taken is not None:
            self._taken.set()
            self._taken = None
