"""A backend in the memory of this process: for tests of many nodes, and for the hub of workers.

Time is trio's clock plus a constant, so `trio.testing.MockClock` controls every expiry. Expired
data is dropped when it is met, and swept where memory gets short.
"""

import itertools
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from ._interface import (
    MAX_ENTRIES,
    MAX_ENTRY,
    MAX_MEMBERS,
    MAX_VALUE,
    Backend,
    BackendUnavailable,
    Conflict,
    Full,
    Gap,
    LogEntry,
    Record,
    check_size,
)

#: What an item costs beside its bytes: the object, its key and its entry in a dict.
_OVERHEAD: Final = 400
#: Clock arithmetic at seconds since 1970 is exact to a quarter of this.
_TICK: Final = 1e-6
#: Seconds that a stream without entries lives, like a stream in Redis.
_EMPTY_STREAM_TTL: Final = 3600.0


@attrs.define(eq=False)
class _Stored:
    value: bytes
    version: int
    expires_at: float
    groups: set[str]


@attrs.define(eq=False)
class _Stream:
    # Tells a stream from an earlier one of this name, which has expired.
    birth: int
    expires_at: float
    # The number of the newest entry, from 1.
    last: int = 0
    entries: deque[bytes] = attrs.field(factory=deque)


class Memory(Backend):
    """A backend in this process. Servers that are given the same object are nodes of one another.

    At most `memory` bytes are held, expired data not counted; beyond that, what would add to it
    raises `BackendUnavailable`.

    Args:
        lease: Seconds that a node lives after each renewal.
        memory: Maximum bytes of keys, values, entries and bookkeeping.
        start: The time at which its clock begins, in seconds since the epoch; None for the present.
            With a number and `MockClock` every time is the same in each run.
    """

    in_process = True

    def __init__(
        self, *, lease: float = 10.0, memory: int = 256 * 2**20, start: float | None = None
    ) -> None:
        self.lease = lease
        self._most = memory
        self._start = start
        self._offset = 0.0
        self._opened = 0
        self._name: str | None = None
        # Versions, births of streams and epochs: never repeat, also after `clear`.
        self._numbers = itertools.count(1)
        self._seed = secrets.token_hex(4) if start is None else "0"
        self._appended = trio.Event()
        self.clear()

    def __repr__(self) -> str:
        return f"Memory(lease={self.lease!r}, memory={self._most!r})"

    def clear(self) -> None:
        """Drop all data, like a backend that comes back empty; `epoch` changes."""
        self._records: dict[str, _Stored] = {}
        self._groups: dict[str, set[str]] = {}
        self._streams: dict[str, _Stream] = {}
        self._arrivals: dict[str, float] = {}
        self._used = 0
        self._begin_epoch()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Backend]:
        """Open it for a node. See `Backend.open`.

        Raises:
            ValueError: The object is used by a server of another name.
        """
        if self._name not in (None, name):
            raise ValueError(
                f"this Memory belongs to the server {self._name!r}: give {name!r} another one"
            )
        if not self._opened:
            # trio's clock begins anew with each `trio.run`; the data stays.
            start = time.time() if self._start is None else self._start
            self._offset = start - trio.current_time()
        self._name = name
        self._opened += 1
        try:
            yield self
        finally:
            self._opened -= 1

    def now(self) -> float:
        return trio.current_time() + self._offset

    async def get(self, key: str, *, ttl: float | None = None, known: int = 0) -> Record | None:
        with self.observed("get"):
            await trio.lowlevel.checkpoint()
            stored = self._live(key)
            if stored is None:
                return None
            if ttl is not None:
                stored.expires_at = self.now() + ttl
            value = b"" if stored.version == known else stored.value
            return Record(value, stored.version, stored.expires_at)

    async def put(
        self,
        key: str,
        value: bytes,
        *,
        ttl: float,
        version: int | None = None,
        groups: Mapping[str, int] = {},
    ) -> int:
        check_size(value, MAX_VALUE, "the value")
        with self.observed("put"):
            await trio.lowlevel.checkpoint()
            stored = self._live(key)
            present = 0 if stored is None else stored.version
            if version is not None and version != present:
                raise Conflict(present)
            joined = set() if stored is None else stored.groups
            for group, most in groups.items():
                if group not in joined and self._is_full(group, most):
                    raise Full(group)
            new = _Stored(value, next(self._numbers), self.now() + ttl, joined | set(groups))
            self._make_room(_cost(key, new) - (0 if stored is None else _cost(key, stored)))
            if stored is not None:
                self._drop(key)
            self._store(key, new)
            return new.version

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        with self.observed("delete"):
            await trio.lowlevel.checkpoint()
            stored = self._live(key)
            if stored is None or version not in (None, stored.version):
                return False
            self._drop(key)
            return True

    async def members(self, group: str) -> list[str]:
        with self.observed("members"):
            await trio.lowlevel.checkpoint()
            return self._live_members(group)[:MAX_MEMBERS]

    async def take(self, key: str, *, limit: int, period: float) -> float:
        with self.observed("take"):
            await trio.lowlevel.checkpoint()
            now, interval = self.now(), period / limit
            arrival = max(self._arrivals.get(key, now), now) + interval
            # A thousandth of the interval makes up for rounding.
            if (wait := arrival - period - now) > interval / 1000:
                return wait
            if key not in self._arrivals:
                self._charge(_OVERHEAD + len(key))
            self._arrivals[key] = arrival
            return 0.0

    async def append(self, stream: str, entry: bytes, *, keep: int, ttl: float) -> str:
        check_size(entry, MAX_ENTRY, "the entry")
        with self.observed("append"):
            await trio.lowlevel.checkpoint()
            found = self._stream(stream)
            self._charge(_OVERHEAD + len(entry))
            found.entries.append(entry)
            found.last += 1
            found.expires_at = self.now() + ttl
            while len(found.entries) > keep:
                self._release(found.entries.popleft())
            self._wake()
            return self._position(found, found.last)

    async def read(self, positions: Mapping[str, str], *, wait: float) -> list[LogEntry | Gap]:
        with self.observed("read"):
            await trio.lowlevel.checkpoint()
            with trio.move_on_after(wait):
                while True:
                    appended = self._appended
                    if items := [item for each in positions.items() for item in self._after(*each)]:
                        return items
                    await appended.wait()
            return []

    async def end_of(self, stream: str) -> str:
        with self.observed("end_of"):
            await trio.lowlevel.checkpoint()
            found = self._stream(stream)
            return self._position(found, found.last)

    def _after(self, name: str, position: str) -> list[LogEntry | Gap]:
        """Return the entries after a position, with gaps where entries are missing."""
        parts = re.fullmatch(r"([^:]*):([0-9]{1,20})-([0-9]{1,20})", position)
        epoch, birth, after = parts.groups() if parts else ("", "-1", "-1")
        is_current = epoch == self.epoch
        stream = self._live_stream(name)
        if stream is None and is_current:
            return []
        stream = stream or self._stream(name)
        oldest = stream.last - len(stream.entries)
        items: list[LogEntry | Gap] = []
        if parts is None:
            number = stream.last
        elif is_current and int(birth) == stream.birth:
            number = min(max(int(after), oldest), stream.last)
        else:
            number = oldest
        if not is_current or (int(birth), int(after)) != (stream.birth, number):
            items.append(Gap(name, self._position(stream, number)))
        rest = itertools.islice(stream.entries, number - oldest, number - oldest + MAX_ENTRIES)
        for following, entry in enumerate(rest, number + 1):
            items.append(LogEntry(name, self._position(stream, following), entry))
        return items

    def _position(self, stream: _Stream, number: int) -> str:
        return f"{self.epoch}:{stream.birth}-{number}"

    def _stream(self, name: str) -> _Stream:
        """Return a stream, a new one where there is no live one."""
        found = self._live_stream(name)
        if found is None:
            self._charge(_OVERHEAD + len(name))
            found = _Stream(next(self._numbers), self.now() + _EMPTY_STREAM_TTL)
            self._streams[name] = found
        return found

    def _live_stream(self, name: str) -> _Stream | None:
        found = self._streams.get(name)
        if found is not None and self._is_over(found.expires_at):
            self._drop_stream(name)
            return None
        return found

    def _begin_epoch(self) -> None:
        self.epoch = f"{self._seed}.{next(self._numbers)}"
        self._wake()

    def _wake(self) -> None:
        self._appended.set()
        self._appended = trio.Event()

    def _live(self, key: str) -> _Stored | None:
        stored = self._records.get(key)
        if stored is not None and self._is_over(stored.expires_at):
            self._drop(key)
            return None
        return stored

    def _is_full(self, group: str, most: int) -> bool:
        # Expired members are looked for only where the group would be full with them.
        return len(self._groups.get(group, ())) >= most and len(self._live_members(group)) >= most

    def _live_members(self, group: str) -> list[str]:
        return [key for key in list(self._groups.get(group, ())) if self._live(key) is not None]

    def _is_over(self, expires_at: float) -> bool:
        return self.now() >= expires_at - _TICK

    def _store(self, key: str, stored: _Stored) -> None:
        self._records[key] = stored
        self._used += _cost(key, stored)
        for group in stored.groups:
            self._groups.setdefault(group, set()).add(key)

    def _drop(self, key: str) -> None:
        stored = self._records.pop(key)
        self._used -= _cost(key, stored)
        for group in stored.groups:
            self._groups[group].discard(key)
            if not self._groups[group]:
                del self._groups[group]

    def _drop_stream(self, name: str) -> None:
        stream = self._streams.pop(name)
        self._used -= _OVERHEAD + len(name)
        self._used -= sum(_OVERHEAD + len(entry) for entry in stream.entries)

    def _release(self, entry: bytes) -> None:
        self._used -= _OVERHEAD + len(entry)

    def _charge(self, size: int) -> None:
        """Account for bytes that are added."""
        self._make_room(size)
        self._used += size

    def _make_room(self, size: int) -> None:
        """Drop expired data where more bytes would not fit."""
        if size > 0 and self._used + size > self._most:
            self._sweep()
            if self._used + size > self._most:
                raise BackendUnavailable(f"the memory of the backend is full: {self._most:,} bytes")

    def _sweep(self) -> None:
        for key in list(self._records):
            self._live(key)
        for name in list(self._streams):
            self._live_stream(name)
        for key in [k for k, arrival in self._arrivals.items() if self._is_over(arrival)]:
            del self._arrivals[key]
            self._used -= _OVERHEAD + len(key)


def _cost(key: str, stored: _Stored) -> int:
    groups = sum(_OVERHEAD + len(group) for group in stored.groups)
    return _OVERHEAD + len(key) + len(stored.value) + groups
