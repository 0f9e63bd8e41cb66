"""`FaultyMemory`: a backend in memory that fails on demand, for tests of many nodes.

Each node reaches it over a link of its own, on which operations wait, fail or lose their answers,
as over a network. The data itself is that of `Memory`.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from random import Random
from typing import Final, TypeVar

import trio

from ..backends import Backend, BackendUnavailable, Gap, LogEntry, Memory, Record

Result = TypeVar("Result")

#: Writes that `lose_tail` can undo.
_UNDOABLE: Final = 1000


class FaultyMemory(Memory):
    """A backend in this process that fails on demand. `Fleet.backend` is one.

    Its own operations have no faults: a test may read and change the data with them.

    Args:
        seed: The seed of all random choices.
        lease: Seconds that a node lives after each renewal.
        timeout: Seconds after which an operation of a node fails.
        start: See `Memory`.
    """

    def __init__(
        self,
        *,
        seed: object = 0,
        lease: float = 10.0,
        timeout: float = 1.0,
        start: float | None = None,
    ) -> None:
        super().__init__(lease=lease, start=start)
        self._timeout = timeout
        self._random = Random(f"{seed}-backend")
        self._is_down = False
        self._slowness = self._lost = self._doubled = 0.0
        self._running: dict[trio.CancelScope, _Link] = {}
        self._undo: deque[Callable[[], None]] = deque(maxlen=_UNDOABLE)
        self._writing = trio.Lock()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Backend]:
        """Open it for a node, over a new link. See `Backend.open`."""
        async with self.link().open(name) as opened:
            yield opened

    def link(self) -> "_Link":
        """Make the link of one node: a backend whose faults do not affect other nodes."""
        return _Link(self)

    def down(self) -> None:
        """Fail every operation of the nodes, the running ones too, until `up`."""
        self._is_down = True
        for scope in self._running:
            scope.cancel()

    def up(self) -> None:
        """End `down` and `slow`."""
        self._is_down = False
        self._slowness = 0.0

    def slow(self, seconds: float) -> None:
        """Delay every operation of the nodes, until `up`.

        Args:
            seconds: The time of one operation, which is executed after half of it. Above `timeout`
                it fails then, and may have been executed.
        """
        self._slowness = seconds

    def lose_answers(self, probability: float) -> None:
        """Execute operations of the nodes, and then let them fail.

        Args:
            probability: The probability for each one; 0 for no more.
        """
        self._lost = probability

    def double_entries(self, probability: float) -> None:
        """Append entries of the nodes twice, as after a lost answer.

        Args:
            probability: The probability for each entry; 0 for no more.
        """
        self._doubled = probability

    def clear(self) -> None:
        """Drop all data, like a backend that comes back empty; `epoch` changes."""
        super().clear()
        self._undo = deque(maxlen=_UNDOABLE)

    def lose_tail(self, number: int) -> None:
        """Undo the last writes, like a failover to a copy that is behind; `epoch` changes.

        Args:
            number: How many records written or deleted, and entries appended, are lost; at most
                1,000. Uses of rate limits stay.
        """
        for _ in range(min(number, len(self._undo))):
            self._undo.pop()()
        self._begin_epoch()

    async def put(
        self,
        key: str,
        value: bytes,
        *,
        ttl: float,
        version: int | None = None,
        groups: Mapping[str, int] = {},
    ) -> int:
        # The lock: between a checkpoint of the write and its undo nothing else is written.
        async with self._writing:
            undo = self._remember(key)
            written = await super().put(key, value, ttl=ttl, version=version, groups=groups)
            self._undo.append(undo)
            return written

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        async with self._writing:
            undo = self._remember(key)
            deleted = await super().delete(key, version=version)
            if deleted:
                self._undo.append(undo)
            return deleted

    async def append(self, stream: str, entry: bytes, *, keep: int, ttl: float) -> str:
        async with self._writing:
            position = await super().append(stream, entry, keep=keep, ttl=ttl)
            self._undo.append(partial(self._drop_newest, stream))
            return position

    def _remember(self, key: str) -> Callable[[], None]:
        """Return a function that brings the present record of a key back."""
        before = self._records.get(key)

        def restore() -> None:
            if key in self._records:
                self._drop(key)
            if before is not None:
                self._store(key, before)

        return restore

    def _drop_newest(self, name: str) -> None:
        stream = self._streams.get(name)
        if stream is not None and stream.entries:
            self._release(stream.entries.pop())
            stream.last -= 1

    # For links

    @contextmanager
    def reaching(self, link: "_Link") -> Iterator[None]:
        """Fail where the block ends because the backend, or the link, went down.

        Raises:
            BackendUnavailable: It is down, or went down.
        """
        if self._is_down or link.is_cut:
            raise BackendUnavailable("the backend is down")
        with trio.CancelScope() as scope:
            self._running[scope] = link
            try:
                yield
            finally:
                del self._running[scope]
        if scope.cancelled_caught:
            raise BackendUnavailable("the backend went down")

    def cut(self, link: "_Link") -> None:
        """Fail the running operations of a link."""
        for scope, user in self._running.items():
            if user is link:
                scope.cancel()

    async def delayed(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Execute an operation with the faults of the network.

        Raises:
            BackendUnavailable: No answer came.
        """
        half = self._slowness / 2
        if half * 2 > self._timeout:
            with trio.move_on_after(self._timeout):
                await trio.sleep(half)
                await call()
                await trio.sleep_forever()
            raise BackendUnavailable(f"the backend has not answered within {self._timeout:g} s")
        await trio.sleep(half)
        result = await call()
        await trio.sleep(half)
        if self._random.random() < self._lost:
            raise BackendUnavailable("the answer of the backend was lost")
        return result

    def draw_double(self) -> bool:
        """Draw whether an entry is appended twice."""
        return self._random.random() < self._doubled


class _Link(Backend):
    """The way of one node to a `FaultyMemory`.

    Attributes:
        is_cut: True once nothing of the node reaches the backend.
    """

    in_process = True

    def __init__(self, shared: FaultyMemory) -> None:
        self.lease = shared.lease
        self.is_cut = False
        self._shared = shared
        self._is_answered = True
        self._freezes = 0
        self._thawed = trio.Event()
        self._thawed.set()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Backend]:
        with self._shared.reaching(self):
            await trio.lowlevel.checkpoint()
        async with Memory.open(self._shared, name):
            self.epoch = self._shared.epoch
            yield self

    @property
    def is_up(self) -> bool:
        return self._is_answered

    def now(self) -> float:
        return self._shared.now()

    def cut(self) -> None:
        """Let nothing of the node reach the backend from now on."""
        self.is_cut = True
        self._thawed.set()
        self._shared.cut(self)

    def freeze(self) -> None:
        """Let operations wait until `thaw` was called as often as this method."""
        if not self._freezes and not self.is_cut:
            self._thawed = trio.Event()
        self._freezes += 1

    def thaw(self) -> None:
        """Let operations go on."""
        self._freezes -= 1
        if not self._freezes:
            self._thawed.set()

    async def thawed(self) -> None:
        """Wait until the node is not frozen."""
        await self._thawed.wait()

    async def get(self, key: str, *, ttl: float | None = None, known: int = 0) -> Record | None:
        return await self._ask("get", partial(self._shared.get, key, ttl=ttl, known=known))

    async def put(
        self,
        key: str,
        value: bytes,
        *,
        ttl: float,
        version: int | None = None,
        groups: Mapping[str, int] = {},
    ) -> int:
        put = partial(self._shared.put, key, value, ttl=ttl, version=version, groups=groups)
        return await self._ask("put", put)

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        return await self._ask("delete", partial(self._shared.delete, key, version=version))

    async def members(self, group: str) -> list[str]:
        return await self._ask("members", partial(self._shared.members, group))

    async def take(self, key: str, *, limit: int, period: float) -> float:
        return await self._ask("take", partial(self._shared.take, key, limit=limit, period=period))

    async def append(self, stream: str, entry: bytes, *, keep: int, ttl: float) -> str:
        append = partial(self._shared.append, stream, entry, keep=keep, ttl=ttl)
        if self._shared.draw_double():
            await self._ask("append", append)
        return await self._ask("append", append)

    async def read(self, positions: Mapping[str, str], *, wait: float) -> list[LogEntry | Gap]:
        # A copy: the node changes its own.
        return await self._ask("read", partial(self._shared.read, dict(positions), wait=wait))

    async def end_of(self, stream: str) -> str:
        return await self._ask("end_of", partial(self._shared.end_of, stream))

    async def _ask(self, name: str, call: Callable[[], Awaitable[Result]]) -> Result:
        with self.observed(name):
            self._is_answered = False
            await self.thawed()
            with self._shared.reaching(self):
                result = await self._shared.delayed(call)
            await self.thawed()
            # Learned with an answer, so a node may write before it knows of a loss.
            self.epoch = self._shared.epoch
            self._is_answered = True
            return result
