"""Places that the clients of a server share: its worker threads, or the calls of one tool.

Theory of operation. A client may take a place while it has fewer than `SHARE` times the number of
free places. So a single client leaves a quarter of them to others, two leave a seventh, and a
client with no place is refused only if none is free. Waiting calls are served by client, in order;
a free place is given to the client that has waited longest among those that may take one. If the
waiting places are limited, they are shared by the same rule. All of this happens in the loop,
between two checkpoints, so no lock is needed.
"""

from collections import Counter, deque
from collections.abc import Hashable
from typing import Final

import trio

from ..._errors import McpException

#: Places that a client may hold for each free place.
SHARE: Final = 3


class QueueFull(McpException):
    """Too many calls wait for a place."""


class FairLimiter:
    """A bounded number of places.

    Args:
        total: The number.
        queue: Maximum calls that may wait for a place; None for no limit.

    Attributes:
        total_tokens: The number.
        borrowed_tokens: Number of places in use.
        waiting: Number of waiting calls.
    """

    def __init__(self, total: int, queue: int | None = None) -> None:
        self.total_tokens: Final = total
        self.borrowed_tokens = 0
        self.waiting = 0
        self._queue = queue
        self._held: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[trio.Event]] = {}

    def of(self, client: Hashable) -> "ClientShare":
        """Return the places as one client may use them; None has no share limit."""
        return ClientShare(self, client)

    def _may_take(self, client: Hashable) -> bool:
        free = self.total_tokens - self.borrowed_tokens
        return free > 0 and (client is None or self._held[client] < SHARE * free)

    def _may_wait(self, client: Hashable) -> bool:
        if self._queue is None:
            return True
        free = self._queue - self.waiting
        return free > 0 and (client is None or len(self._waiting.get(client, ())) < SHARE * free)

    def _take(self, client: Hashable) -> None:
        self._held[client] += 1
        self.borrowed_tokens += 1

    async def acquire(self, client: Hashable, *, again: bool = False) -> None:
        """Wait until a client may take a place, and take it; not a checkpoint if it may at once.

        Args:
            client: The client.
            again: True for a call that had a place before: the number of waiting calls does not
                matter.

        Raises:
            QueueFull: Too many calls wait, of all clients or of this one.
        """
        if self._may_take(client):  # no waiting task may take one
            self._take(client)
            return
        if not again and not self._may_wait(client):
            raise QueueFull
        event = trio.Event()
        self._waiting.setdefault(client, deque()).append(event)
        self.waiting += 1
        try:
            await event.wait()
        except BaseException:
            if event.is_set():  # it was given a place just when it was cancelled
                self.release(client)
            else:
                self._forget(client, event)
            raise

    def release(self, client: Hashable) -> None:
        """Release a place of a client; waiting calls may continue."""
        self.borrowed_tokens -= 1
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """Give a place to the next waiting client that may take one, if any."""
        for client, events in self._waiting.items():
            if self._may_take(client):
                event = events[0]
                self._forget(client, event)
                if client in self._waiting:  # to the end of the queue
                    self._waiting[client] = self._waiting.pop(client)
                self._take(client)
                event.set()
                return True
        return False

    def _forget(self, client: Hashable, event: trio.Event) -> None:
        self.waiting -= 1
        self._waiting[client].remove(event)
        if not self._waiting[client]:
            del self._waiting[client]


class ClientShare:
    """The places of a `FairLimiter` as one client may use them: a limiter for `trio.to_thread`.

    Args:
        limiter: The places of all clients.
        client: The client.
    """

    __slots__ = ("_client", "_limiter")

    def __init__(self, limiter: FairLimiter, client: Hashable) -> None:
        self._limiter = limiter
        self._client = client

    @property
    def total_tokens(self) -> int:
        """The number of places."""
        return self._limiter.total_tokens

    @property
    def borrowed_tokens(self) -> int:
        """The number of places in use, by all clients."""
        return self._limiter.borrowed_tokens

    async def acquire(self, *, again: bool = False) -> None:
        """Wait until the client may take a place, and take it; see `FairLimiter`."""
        await self._limiter.acquire(self._client, again=again)

    def release(self) -> None:
        """Release a place."""
        self._limiter.release(self._client)

    async def acquire_on_behalf_of(self, _borrower: object) -> None:
        """Wait until the client may take a place, and take it."""
        await self.acquire()

    def release_on_behalf_of(self, _borrower: object) -> None:
        """Release a place."""
        self.release()
