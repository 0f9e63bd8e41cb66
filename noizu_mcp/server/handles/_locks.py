"""Locks of handles: calls that take the same handle run one after the other, at all nodes.

Theory of operation. A lock is a record of the store that exists while a call holds it, and expires
with the lease of the backend unless it is renewed. Within a process, the calls that want one lock
form a queue, and only its head asks the store: order is kept, a wait here costs no polling, and a
node asks once for all of its calls. There is one way for one process and for many; in one process
the head gets the lock at once. `renew` runs beside the calls. A lock that could not be renewed in
time counts as lost: its call stores nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from ..._util import random_pause
from ...backends import Backend, BackendUnavailable, Conflict

#: Seconds between two attempts to get a lock that another node holds: the first and the longest.
_PAUSES: Final = (0.005, 0.1)
#: Seconds that giving a lock back may take in a cancelled call.
_PATIENCE: Final = 1.0


class Lock:
    """A lock that is held.

    Attributes:
        version: The version of its record.
        ends: When it is lost unless it is renewed, on trio's clock.
    """

    def __init__(self, version: int, ends: float) -> None:
        self.version = version
        self.ends = ends

    @property
    def is_lost(self) -> bool:
        """True once another call may hold it."""
        return trio.current_time() >= self.ends


class Locks:
    """The locks that the calls of one served server hold or want.

    Attributes:
        wanted: Set while locks are held, and `renew` has work.
    """

    def __init__(self) -> None:
        self.wanted = trio.Event()
        self._queues: dict[str, trio.Lock] = {}
        self._held: dict[str, Lock] = {}

    @asynccontextmanager
    async def hold(self, backend: Backend, key: str) -> AsyncIterator[Lock]:
        """Wait for a lock, and hold it for the block.

        Raises:
            BackendUnavailable: The backend cannot be asked now.
        """
        queue = self._queues.setdefault(key, trio.Lock())
        try:
            async with queue:
                lock = self._held[key] = await self._take(backend, key)
                self.wanted.set()
                try:
                    await trio.lowlevel.checkpoint_if_cancelled()
                    yield lock
                finally:
                    del self._held[key]
                    with trio.move_on_after(_PATIENCE, shield=True), suppress(BackendUnavailable):
                        await backend.delete(f"lock:{key}", version=lock.version)
        finally:
            if not queue.locked():
                self._queues.pop(key, None)

    async def _take(self, backend: Backend, key: str) -> Lock:
        attempts, (first, longest) = 0, _PAUSES
        while True:
            asked = trio.current_time()
            # Shielded: a write that is cancelled may have happened, and would block the handle.
            with suppress(Conflict), trio.CancelScope(shield=True):
                version = await backend.put(f"lock:{key}", b"", ttl=backend.lease, version=0)
                return Lock(version, asked + backend.lease)
            attempts += 1
            await trio.sleep(random_pause(attempts, first=first, longest=longest))

    async def renew(self, backend: Backend) -> None:
        """Renew the locks, for as long as the server is served."""
        while True:
            await self.wanted.wait()
            await trio.sleep(backend.lease / 3)
            for key, lock in tuple(self._held.items()):
                if not lock.is_lost and key in self._held:
                    await _renew(backend, key, lock)
            if not self._held:
                self.wanted = trio.Event()


async def _renew(backend: Backend, key: str, lock: Lock) -> None:
    asked = trio.current_time()
    try:
        lock.version = await backend.put(
            f"lock:{key}", b"", ttl=backend.lease, version=lock.version
        )
    except Conflict:
        lock.ends = asked
    except BackendUnavailable:
        return  # the next attempt, or the end of the lease, decides
    else:
        lock.ends = asked + backend.lease
