"""Where the handles of a server are kept: in this process, or in the backend of its nodes."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from ..._limits import PART, Limits
from ...backends import Backend, Memory

#: Bytes of bookkeeping for each handle in memory: its record, its lock and its groups.
_OVERHEAD: Final = 4096
#: Handles that are counted before expired ones are forgotten.
_CROWD: Final = 1000


class HandleBytes:
    """The bytes of the handles that this process has stored.

    Args:
        most: Maximum bytes; one verified principal may use a part.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._of_owners = Counter[str]()
        self._records: dict[str, tuple[int, str | None, float]] = {}
        self._crowd = _CROWD

    def has_room(self, key: str, owner: str | None, size: int, now: float) -> bool:
        """Tell whether a handle may have so many bytes; expired ones make room first."""
        if not self._fits(key, owner, size) or len(self._records) >= self._crowd:
            for each in [key for key, (_, _, end) in self._records.items() if end <= now]:
                self.discard(each)
            # So that forgetting takes constant time for each handle.
            self._crowd = max(_CROWD, 2 * len(self._records))
        return self._fits(key, owner, size)

    def _fits(self, key: str, owner: str | None, size: int) -> bool:
        change = size - self._records.get(key, (0, None, 0.0))[0]
        own = owner is None or self._of_owners[owner] + change <= self._most // PART
        return change <= 0 or (own and self._held + change <= self._most)

    def set(self, key: str, owner: str | None, size: int, expires_at: float) -> None:
        """Record the bytes of a handle, and when it expires."""
        self.discard(key)
        self._records[key] = (size, owner, expires_at)
        self._count(owner, size)

    def extend(self, key: str, expires_at: float) -> None:
        """Record that a handle expires later, if this process has stored it."""
        if key in self._records:
            self._records[key] = (*self._records[key][:2], expires_at)

    def discard(self, key: str) -> None:
        """Count a handle no more. Unknown ones are ignored."""
        size, owner, _ = self._records.pop(key, (0, None, 0.0))
        self._count(owner, -size)

    def _count(self, owner: str | None, change: int) -> None:
        self._held += change
        if owner is not None:
            self._of_owners[owner] += change
            if not self._of_owners[owner]:
                del self._of_owners[owner]


class HandleBacking:
    """The store of the handles of a server.

    Args:
        backend: The backend. It is open, or is opened by `opened`.
        limits: The limits of the server.
        seal: Encrypts a value for a key.
        unseal: Decrypts such a value; returns None for a value that was not sealed for this key.

    Attributes:
        backend: See Args.
        seal: See Args.
        unseal: See Args.
        bytes: The bytes that this process has stored in it.
    """

    def __init__(
        self,
        backend: Backend,
        limits: Limits,
        seal: Callable[[str, bytes], bytes] = lambda _, value: value,
        unseal: Callable[[str, bytes], bytes | None] = lambda _, value: value,
    ) -> None:
        self.backend = backend
        self.seal = seal
        self.unseal = unseal
        self.bytes = HandleBytes(limits.handle_memory)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Backend]:
        """Give the backend while a server is served. Its owner opens and closes it."""
        yield self.backend


class LocalBacking(HandleBacking):
    """Handles in the memory of this process; they last as long as the object of the server.

    Args:
        name: The name of the server.
        limits: Its limits.
    """

    def __init__(self, name: str, limits: Limits) -> None:
        memory = limits.handle_memory + _OVERHEAD * limits.handles
        super().__init__(Memory(memory=memory), limits)
        self._name = name
        self._runs = Counter[trio.lowlevel.TrioToken]()

    def is_elsewhere(self) -> bool:
        """Tell whether another trio loop uses it now: a loop has its own clock."""
        return bool(self._runs) and trio.lowlevel.current_trio_token() not in self._runs

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Backend]:
        """Open the memory while a server is served."""
        token = trio.lowlevel.current_trio_token()
        self._runs[token] += 1
        try:
            async with self.backend.open(self._name) as backend:
                yield backend
        finally:
            self._runs -= Counter([token])  # without entries of 0
