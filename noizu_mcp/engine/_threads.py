"""The worker threads of a server, shared by its clients.

Theory of operation. A client may take a thread while it holds fewer than `SHARE` times as many as
are free. One client alone so leaves a quarter of them to others, two leave a seventh, and a client
that holds none is refused only when none is free. Calls that must wait do so by client, in order;
a thread that becomes free goes to the client that has waited for longest among those that may
take one. All of this happens in the loop, between two checkpoints, so nothing needs a lock.
"""

from collections import Counter, deque
from collections.abc import Hashable
from typing import Final

import trio

#: Threads that a client may hold for each one that is free.
SHARE: Final = 3


class Threads:
    """A bounded number of worker threads.

    Args:
        total: The number.

    Attributes:
        total_tokens: The number.
        borrowed_tokens: Number of threads in use.
    """

    def __init__(self, total: int) -> None:
        self.total_tokens: Final = total
        self.borrowed_tokens = 0
        self._held: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[trio.Event]] = {}

    def of(self, client: Hashable) -> "ClientThreads":
        """Return the threads as one client may use them; None is not bound to a share."""
        return ClientThreads(self, client)

    def _may_take(self, client: Hashable) -> bool:
        free = self.total_tokens - self.borrowed_tokens
        return free > 0 and (client is None or self._held[client] < SHARE * free)

    def _take(self, client: Hashable) -> None:
        self._held[client] += 1
        self.borrowed_tokens += 1

    async def acquire(self, client: Hashable) -> None:
        """Wait until a client may take a thread, and take it; not a checkpoint if it may now."""
        if self._may_take(client):  # nobody waits who may take one
            self._take(client)
            return
        event = trio.Event()
        self._waiting.setdefault(client, deque()).append(event)
        try:
            await event.wait()
        except BaseException:
            if event.is_set():  # it was given one in the moment of its cancellation
                self.release(client)
            else:
                self._forget(client, event)
            raise

    def release(self, client: Hashable) -> None:
        """Give a thread of a client back; calls that wait may go on."""
        self.borrowed_tokens -= 1
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """Give a thread to the next client that waits and may take one, if there is any."""
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
        self._waiting[client].remove(event)
        if not self._waiting[client]:
            del self._waiting[client]


class ClientThreads:
    """The worker threads of a server as one client may use them: a limiter for `trio.to_thread`.

    Args:
        threads: The threads of all clients.
        client: The client.
    """

    __slots__ = ("_client", "_threads")

    def __init__(self, threads: Threads, client: Hashable) -> None:
        self._threads = threads
        self._client = client

    @property
    def total_tokens(self) -> int:
        """The number of threads."""
        return self._threads.total_tokens

    @property
    def borrowed_tokens(self) -> int:
        """The number of threads in use, by all clients."""
        return self._threads.borrowed_tokens

    async def acquire_on_behalf_of(self, _borrower: object) -> None:
        """Wait until the client may take a thread, and take it."""
        await self._threads.acquire(self._client)

    def release_on_behalf_of(self, _borrower: object) -> None:
        """Give a thread back."""
        self._threads.release(self._client)
