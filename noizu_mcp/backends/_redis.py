"""A backend in Redis or Valkey: what the operations mean, in scripts and replies.

One connection has all commands at once; another one waits for entries of logs. A position in a
stream is `<epoch>:<birth>-<number>`, with an abbreviated epoch; `_scripts` explains the rest.
"""

import copy
import math
import re
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from .._groups import single_failure
from . import _scripts as scripts
from ._address import read_url
from ._interface import (
    MAX_ENTRIES,
    MAX_ENTRY,
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
from ._reads import Question, Reads

if TYPE_CHECKING:
    from ._link import Link

Part = TypeVar("Part")

#: Longest try to connect, in seconds.
_MAX_ATTEMPT: Final = 2.0
#: Longest wait in one command, in seconds; a longer `read` checks its positions, and waits again.
_MAX_BLOCK: Final = 10.0


class Redis(Backend):
    """A backend in Redis 6.2 or newer, or in Valkey.

    Each node that opens it has two connections, which are kept up. While Redis does not answer,
    every operation raises `BackendUnavailable`: at once where this is known, else after `timeout`.
    Needs the extra `redis`.

    Redis should have `maxmemory-policy noeviction`. These rights suffice for its user: `~noizu:*
    +@read +@write +@stream +@scripting +@connection -@dangerous +time +info`. Without `+info` a
    restart that kept the data does not change the epoch.

    Args:
        url: `redis://[user][:password]@host[:port][/db]`, `rediss://…` for TLS, or
            `unix:///path/to/socket?db=0`. Special characters of a password are percent-encoded.
        prefix: All keys begin with it and a colon.
        lease: Seconds that a node lives after each renewal.
        timeout: Maximum seconds of one operation.
        connect_timeout: Maximum seconds until the first connection.
        max_waiting: Maximum number of reads, and of other operations, without an answer; more are
            refused at once.
        ssl_context: For `rediss://`; None verifies the certificate with the system's authorities.

    Raises:
        ValueError: The URL or a number is not valid. No message shows the password.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "noizu",
        lease: float = 10.0,
        timeout: float = 1.0,
        connect_timeout: float = 10.0,
        max_waiting: int = 1000,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        numbers = {"lease": lease, "timeout": timeout, "connect_timeout": connect_timeout}
        for name, number in {**numbers, "max_waiting": max_waiting}.items():
            if not 0 < number < math.inf:
                raise ValueError(f"{name} must be a number above 0, got {number!r}")
        self._address = read_url(url, ssl_context)
        self.lease = lease
        self._prefix = prefix
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._max_waiting = max_waiting
        # Where it is open: the prefix of all keys, and the connections.
        self._root = b""
        self._commands: Link | None = None
        self._waiter: Link | None = None
        self._reads: Reads | None = None
        self._run_id = b""
        self._offset = 0.0
        # The last position that came out of each stream. Others are checked before they wait.
        self._known: dict[str, str] = {}
        self._reading = trio.Lock()

    def __repr__(self) -> str:
        return f"Redis({self._address.url!r}, prefix={self._prefix!r}, lease={self.lease!r})"

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Backend]:
        """Connect for a node. See `Backend.open`.

        Yields:
            A backend with connections of its own.

        Raises:
            BackendUnavailable: There is no Redis, it is too old, or it refuses the password.
            ImportError: The extra `redis` is not installed.
        """
        opened = copy.copy(self)
        async with opened._connected(name):  # noqa: SLF001 - a copy of this object
            yield opened

    @asynccontextmanager
    async def _connected(self, name: str) -> AsyncIterator[None]:
        try:
            from ._link import Link
        except ModuleNotFoundError:
            text = "a backend in Redis needs coredis: pip install 'noizu-mcp[redis]'"
            raise ImportError(text) from None
        self._root = f"{self._prefix}:{{{name}}}:".encode()
        self._known, self._reading = {}, trio.Lock()
        options: Any = {"timeout": self._timeout, "max_waiting": self._max_waiting}
        # Time for a second try at the start; a name may have to be resolved.
        options["attempt"] = max(self._timeout, min(_MAX_ATTEMPT, self._connect_timeout / 2))
        commands = self._commands = Link(self._address, beat=self._learn, **options)
        waiter = self._waiter = Link(self._address, **options)
        crowd = f"too many operations wait for Redis at {self._address}"
        reads = self._reads = Reads(self._read_records, crowd, self._max_waiting)
        with single_failure():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(reads.run)
                nursery.start_soon(commands.keep)
                nursery.start_soon(waiter.keep)
                with trio.move_on_after(self._connect_timeout) as scope:
                    await commands.wait_up()
                    await waiter.wait_up()
                if scope.cancelled_caught:
                    raise BackendUnavailable((waiter if commands.is_up else commands).explain())
                try:
                    yield
                finally:
                    nursery.cancel_scope.cancel()

    @property
    def is_up(self) -> bool:
        return self._commands is not None and self._commands.is_up

    def now(self) -> float:
        return trio.current_time() + self._offset

    async def get(self, key: str, *, ttl: float | None = None, known: int = 0) -> Record | None:
        return await self._opened(self._reads).get((key, ttl, known))

    async def _read_records(
        self, questions: Sequence[Question], late: float
    ) -> list[Record | None]:
        """Read records together, which is one operation for `observe`; see `Reads`."""
        keys = [self._key("k", key) for key, _, _ in questions]
        arguments = [self._key("g", "")]
        for key, ttl, known in questions:
            arguments += key.encode(), b"" if ttl is None else _ms(ttl), b"%d" % known
        with self.observed("get"):
            link = self._opened(self._commands)
            found = await link.run_script(scripts.GET, keys, *arguments, wait=-late)
        return [each and Record(each[2], each[0], each[1] / 1e6) for each in found]

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
        done, number = await self._run(
            "put",
            scripts.PUT,
            [self._key("k", key)],
            self._key("g", ""),
            key.encode(),
            value,
            _ms(ttl),
            b"" if version is None else b"%d" % version,
            *(text for name, most in groups.items() for text in (name.encode(), b"%d" % most)),
        )
        if done == 0:
            raise Conflict(number)
        if done < 0:
            raise Full([*groups][number])
        return int(number)

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        done = await self._run(
            "delete",
            scripts.DELETE,
            [self._key("k", key)],
            self._key("g", ""),
            key.encode(),
            b"" if version is None else b"%d" % version,
        )
        return bool(done)

    async def members(self, group: str) -> list[str]:
        found = await self._run("members", scripts.MEMBERS, [self._key("g", group)])
        return [key.decode(errors="replace") for key in found]

    async def take(self, key: str, *, limit: int, period: float) -> float:
        wait = await self._run(
            "take",
            scripts.TAKE,
            [self._key("r", key)],
            b"%f" % (period * 1e6 / limit),
            b"%f" % (period * 1e6),
        )
        return float(wait / 1e6)

    async def append(self, stream: str, entry: bytes, *, keep: int, ttl: float) -> str:
        check_size(entry, MAX_ENTRY, "the entry")
        key = self._key("l", stream)
        entry_id = await self._run("append", scripts.APPEND, [key], entry, b"%d" % keep, _ms(ttl))
        return self._position(entry_id)

    async def end_of(self, stream: str) -> str:
        entry_id = await self._run("end_of", scripts.END, [self._key("l", stream)])
        return self._position(entry_id)

    async def read(self, positions: Mapping[str, str], *, wait: float) -> list[LogEntry | Gap]:
        with self.observed("read"):
            if wait <= 0:
                return await self._read_now(positions)
            if items := await self._read_unknown(positions):
                return items
            deadline = trio.current_time() + wait
            with trio.move_on_at(deadline) as scope:
                await self._reading.acquire()
            if scope.cancelled_caught:
                return []
            try:
                while not items and (left := deadline - trio.current_time()) > 0.001:
                    items = await self._read_unknown(positions)
                    items = items or await self._read_next(positions, min(left, _MAX_BLOCK))
            finally:
                self._reading.release()
            return items

    async def _read_unknown(self, positions: Mapping[str, str]) -> list[LogEntry | Gap]:
        """Check positions that have not come out of the last read, as `XREAD` cannot.

        Where a position is not in the stream, or past its end, `XREAD` waits for ever.
        """
        if positions.items() <= self._known.items():
            return []
        return await self._read_now(positions)

    async def _read_now(self, positions: Mapping[str, str]) -> list[LogEntry | Gap]:
        """Read what is there, and check the positions."""
        found = {stream: self._id(position) for stream, position in positions.items()}
        keys = [self._key("l", stream) for stream in positions]
        replies = await self._opened(self._commands).run_script(
            scripts.READ, keys, *(entry_id for entry_id, _ in found.values())
        )
        items: list[LogEntry | Gap] = []
        for (stream, (after, is_current)), (newest, flat) in zip(
            found.items(), replies, strict=True
        ):
            if not newest and is_current:
                continue
            if not newest:
                items.append(Gap(stream, await self.end_of(stream)))
            elif not after or _numbers(after) > _numbers(newest):
                items.append(Gap(stream, self._position(newest)))
            else:
                if not is_current:
                    items.append(Gap(stream, self._position(after)))
                pairs = iter(flat)
                items += self._items(stream, after, zip(pairs, pairs, strict=True))
        self._known = {**positions, **{item.stream: item.position for item in items}}
        return items

    async def _read_next(self, positions: Mapping[str, str], wait: float) -> list[LogEntry | Gap]:
        """Wait for the next entries after known positions."""
        waiter = self._opened(self._waiter)
        # Where a cancelled `read` has ended the connection, the next one is under way.
        with trio.move_on_after(self._timeout):
            await waiter.wait_up()
        # Known again after an answer; after a wait in vain the next read checks them.
        self._known = {}
        streams = {self._key("l", stream): stream for stream in positions}
        ids = {stream: self._id(position)[0] for stream, position in positions.items()}
        reply = await waiter.request(
            *(b"XREAD", b"BLOCK", b"%d" % math.ceil(wait * 1000)),
            *(b"COUNT", b"%d" % MAX_ENTRIES, b"STREAMS", *streams, *ids.values()),
            wait=wait,
        )
        items: list[LogEntry | Gap] = []
        for key, entries in (reply or {}).items():
            stream = streams[key]
            pairs = ((entry_id, f[1] if f[0] == b"d" else b"") for entry_id, f in entries)
            items += self._items(stream, ids[stream], pairs)
        if items:
            self._known = {**positions, **{item.stream: item.position for item in items}}
        return items

    def _items(
        self, stream: str, after: bytes, pairs: Iterable[tuple[bytes, bytes]]
    ) -> Iterator[LogEntry | Gap]:
        """Give the entries after a position, with gaps where their numbers do not follow."""
        birth, number = _numbers(after)
        for entry_id, data in pairs:
            new_birth, new_number = _numbers(entry_id)
            if (new_birth, new_number) != (birth, number + 1):
                before = f"{new_birth}-{max(new_number - 1, 0)}"
                yield Gap(stream, self._position(before.encode()))
            if data and len(data) <= MAX_ENTRY:
                yield LogEntry(stream, self._position(entry_id), data)
            else:
                # The entry 0 of a stream, or not an entry of this backend.
                yield Gap(stream, self._position(entry_id))
            birth, number = new_birth, new_number

    def _position(self, entry_id: bytes) -> str:
        return f"{self.epoch}:{entry_id.decode()}"

    def _id(self, position: str) -> tuple[bytes, bool]:
        """Return the id of a position, or b"" if it has none; and whether it is of this epoch."""
        epoch, _, entry_id = position.partition(":")
        if re.fullmatch(r"[0-9]{1,20}-[0-9]{1,20}", entry_id) is None:
            return b"", False
        return entry_id.encode(), epoch == self.epoch

    def _key(self, kind: str, name: str) -> bytes:
        return b"%b%b:%b" % (self._root, kind.encode(), name.encode())

    def _opened(self, part: Part | None) -> Part:
        if part is None:
            raise BackendUnavailable("the backend is not open: use what `open` gives")
        return part

    async def _run(
        self, operation: str, script: scripts.Script, keys: list[bytes], *args: bytes
    ) -> Any:
        with self.observed(operation):
            return await self._opened(self._commands).run_script(script, keys, *args)

    async def _learn(self) -> None:
        """Learn the epoch and the clock."""
        commands = self._opened(self._commands)
        if not commands.is_up:
            self._run_id = await self._read_run_id()
        start = trio.current_time()
        epoch, now = await commands.run_script(
            scripts.BEAT, [self._root + b"epoch"], token_hex(8).encode(), urgent=True
        )
        self._offset = int(now) / 1e6 - (start + trio.current_time()) / 2
        # The same key in another process may be a copy that lacks the last writes.
        epoch = sha256(epoch + self._run_id).hexdigest()[:16]
        if epoch != self.epoch:
            if self.epoch:
                # A reader that waits in the old one learns of it by its next `read`.
                self._opened(self._waiter).drop()
            self.epoch, self._known = epoch, {}

    async def _read_run_id(self) -> bytes:
        try:
            info = await self._opened(self._commands).request(b"INFO", b"server", urgent=True)
        except BackendUnavailable:
            # The user of Redis may lack this right: then only the epoch key tells of a loss.
            return b""
        return bytes(info).partition(b"run_id:")[2][:40]


def _ms(seconds: float) -> bytes:
    return b"%d" % max(1, math.ceil(seconds * 1000))


def _numbers(entry_id: bytes) -> tuple[int, int]:
    birth, _, number = entry_id.partition(b"-")
    return int(birth), int(number)
