"""Received messages that wait for `receive`, on transports without a buffer of their own."""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import trio

Queued = TypeVar("Queued")

#: Bytes that may wait before those who bring more have to wait.
CAPACITY: Final = 1024 * 1024


class Inbox(Generic[Queued]):
    """Messages that wait for `receive`, in order of arrival.

    `put` never waits. The inbox is bounded in bytes because those who bring messages wait for
    `room` between them.
    """

    def __init__(self) -> None:
        self.closed = False
        self._items: list[Queued] = []
        self._size = 0
        self._arrived: trio.Event | None = None  # made by the task that waits
        self._taken: trio.Event | None = None

    @property
    def has_room(self) -> bool:
        """False while more than the capacity waits."""
        # A closed one has room: no task must wait for a peer that has gone.
        return self._size <= CAPACITY or self.closed

    def put(self, item: Queued, size: int) -> None:
        """Add a message of some bytes; a closed inbox drops it."""
        if not self.closed:
            self._items.append(item)
            self._size += size
            self._note_arrived()

    async def room(self) -> None:
        """Wait until there is room for more; a checkpoint."""
        # Always a checkpoint: a chunk with many events must not keep the loop to itself.
        await trio.lowlevel.checkpoint()
        while not self.has_room:
            if self._taken is None:
                self._taken = trio.Event()
            await self._taken.wait()

    async def take_all(self) -> Sequence[Queued]:
        """Wait for messages and take all of them; nothing once it is closed and empty."""
        # A checkpoint also if nothing has to be waited for, as trio demands of async functions.
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
        """End the inbox: waiting messages can still be taken, no more are added."""
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
