"""Places that the clients of a server share: its worker threads, and the calls of one tool.

Theory of operation. A client may take a place while it holds fewer than `SHARE` times as many as
are free. One client alone so leaves a quarter of them to others, two leave a seventh, and a client
that holds none is refused only when none is free. Calls that must wait do so by client, in order;
a place that becomes free goes to the client that has waited for longest among those that may
take one. Where the places to wait are bounded, they are shared by the same rule. All of this
happens in the loop, between two checkpoints, so nothing needs a lock.
"""

from collections import Counter, deque
from collections.abc import Hashable
from typing import Final

import trio

from .._errors import McpException

#: Places that a client may hold for each free place.
SHARE: Final = 3


class QueueFull(McpException):
    """Too many calls wait for a place."""


class FairLimiter:
    """A bounded number of places.

    Args:
        total: The number.
        queue: Calls that may wait for a place; None for any number.

    Attributes:
        total_tokens: The number.
        borrowed_tokens: Number of places in use.
        waiting: Number of calls that wait for one.
    """

    def __init__(self, total: int, queue: int | None = None) -> None:
        self.total_tokens: Final = total
        self.borrowed_tokens = 0
        self.waiting = 0
        self._queue = queue
        self._held: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[trio.Event]] = {}

    def of(self, client: Hashable) -> "ClientShare":
        """Return the places as one client may use them; None is not bound to a share."""
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
        """Wait until a client may take a place, and take it; not a checkpoint if it may now.

        Args:
            client: The client.
            again: True for a call that has had a place before: it may wait however many do.

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
            if event.is_set():  # it was given one in the moment of its cancellation
                self.release(client)
            else:
                self._forget(client, event)
            raise

    def release(self, client: Hashable) -> None:
        """Give a place of a client back; calls that wait may go on."""
        self.borrowed_tokens -= 1
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """Give a place to the next client that waits and may take one, if there is any."""
        for client, events in self._waiting.items():
            if self._may_take(client):
                event = events[0]
                self._forget(client, event)
                if client in self._waiting:  # behind the others
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
        """Give a place back."""
        self._limiter.release(self._client)

    async def acquire_on_behalf_of(self, _borrower: object) -> None:
        """Wait until the client may take a place, and take it."""
        await self.acquire()

    def release_on_behalf_of(self, _borrower: object) -> None:
        """Give a place back."""
        self.release()
