"""What has come from a server and was not taken yet."""

from collections.abc import Sequence
from typing import Final

import trio

from ....engine import Unanswered

#: Bytes that may wait before those who read from the server must.
CAPACITY: Final = 1024 * 1024


class Inbox:
    """Gathers the messages of all HTTP answers into one stream; one task takes them."""

    def __init__(self) -> None:
        self._arrived = trio.Event()
        self._taken = trio.Event()
        self._messages: list[bytes | Unanswered] = []
        self._size = 0
        self._closed = False

    def put_nowait(self, message: bytes | Unanswered) -> None:
        """Add what was read, or why nothing will be."""
        if not self._closed:
            self._messages.append(message)
            self._size += len(message)
            self._arrived.set()

    async def put(self, message: bytes) -> None:
        """Add a message, and wait until there is room for more; a checkpoint."""
        self.put_nowait(message)
        await trio.lowlevel.checkpoint()
        while self._size > CAPACITY:
            await self._taken.wait()

    async def take(self) -> Sequence[bytes | Unanswered]:
        """Wait for messages; nothing once it is closed and empty."""
        if self._messages or self._closed:
            await trio.lowlevel.checkpoint()
        while not self._messages and not self._closed:
            self._arrived = trio.Event()
            await self._arrived.wait()
        messages, self._messages = self._messages, []
        self._size = 0
        self._taken.set()
        self._taken = trio.Event()
        return messages

    def close(self) -> None:
        """Add nothing more."""
        self._closed = True
        self._arrived.set()
