"""The contract of a backend: records that expire, and logs that every node reads.

Keys, groups, streams and positions are texts; values and entries are bytes. A backend knows nothing
of servers and sessions. It may be slow, unreachable, or lose its data: `BackendUnavailable` and
`Backend.epoch` say so. Expiry follows the clock of the backend, which is the same for all nodes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Final

import attrs
import trio

from .._errors import McpException
from .._value import Value

#: Maximum size of the value of a record, in bytes. Larger than every limit of this package for a
#: message, and small enough that one record does not fill a node.
MAX_VALUE: Final = 16 * 2**20
#: Maximum size of an entry of a log, in bytes: every node reads every entry.
MAX_ENTRY: Final = 64 * 2**10
#: Maximum number of entries that one `read` returns for one stream.
MAX_ENTRIES: Final = 100
#: Maximum number of keys that `members` returns.
MAX_MEMBERS: Final = 10_000


@attrs.frozen(eq=False, repr=False)
class Record(Value):
    """A record of a store.

    Attributes:
        value: The stored bytes; empty where the caller knew this version.
        version: The version, from 1. Versions of a key never repeat.
        expires_at: When the record expires, in seconds since the epoch, by `Backend.now`.
    """

    value: bytes
    version: int
    expires_at: float


@attrs.frozen(eq=False, repr=False)
class LogEntry(Value):
    """An entry of a log.

    Attributes:
        stream: The stream.
        position: The position of this entry: `read` goes on after it.
        entry: The bytes.
    """

    stream: str
    position: str
    entry: bytes


@attrs.frozen(eq=False, repr=False)
class Gap(Value):
    """Entries that were dropped before they were read.

    Attributes:
        stream: The stream.
        position: The position after the dropped entries: `read` goes on from it.
    """

    stream: str
    position: str


class BackendUnavailable(McpException):
    """The backend cannot do this now: unreachable, too slow, or full. A later try may succeed.

    The operation may have been executed, where only its answer was lost.
    """


class Conflict(McpException):
    """A record does not have the version that a write expected.

    Attributes:
        version: The present version; 0 where there is no record.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(f"the record has version {version}")


class Full(McpException):
    """A group has as many live members as it may have.

    Attributes:
        group: The group.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        super().__init__(f"the group {group!r} is full")


class Store(ABC):
    """Records that expire. Every operation is atomic for all nodes.

    Records, groups and rate limits of one name are different things. A cancelled operation may have
    been executed.

    Raises:
        BackendUnavailable: By every operation that cannot be done now.
    """

    @abstractmethod
    async def get(self, key: str, *, ttl: float | None = None, known: int = 0) -> Record | None:
        """Return a record.

        Args:
            key: The key.
            ttl: Seconds from now to the expiry of the record and its memberships; None leaves it.
            known: The version that the caller has. Where it is the present one, the value of the
                answer is empty.

        Returns:
            The record; None where there is no live one.
        """

    @abstractmethod
    async def put(
        self,
        key: str,
        value: bytes,
        *,
        ttl: float,
        version: int | None = None,
        groups: Mapping[str, int] = {},
    ) -> int:
        """Write a record, if it has the expected version and its groups have room.

        Args:
            key: The key.
            value: At most 16 MiB.
            ttl: Seconds from now to the expiry of the record and all its memberships.
            version: The version to replace; 0 where no live record may exist; None replaces any.
            groups: Groups that the key joins, each with the maximum number of live members. A
                present member has room. Memberships last as long as the record, also where a later
                `put` names no groups.

        Returns:
            The new version. Versions of a key grow, also after deletion and expiry.

        Raises:
            Conflict: The record has another version. Nothing is written.
            Full: A group has no room. Nothing is written.
            ValueError: The value is larger than 16 MiB.
        """

    @abstractmethod
    async def delete(self, key: str, *, version: int | None = None) -> bool:
        """Delete a record, which leaves its groups.

        Args:
            key: The key.
            version: The version to delete; None deletes any.

        Returns:
            True if this call deleted it; False where there is no live record of this version.
        """

    @abstractmethod
    async def members(self, group: str) -> list[str]:
        """Return the live keys of a group: at most 10,000, in any order."""

    @abstractmethod
    async def take(self, key: str, *, limit: int, period: float) -> float:
        """Count one use against a rate limit (GCRA).

        Args:
            key: What is limited.
            limit: Maximum number of uses at once, and in each period; from 1.
            period: Seconds.

        Returns:
            0.0 if the use is admitted, and counted; else the seconds to wait.
        """


class Log(ABC):
    """Streams of entries in order. Each reader has its own position.

    Raises:
        BackendUnavailable: By every operation that cannot be done now.
    """

    @abstractmethod
    async def append(self, stream: str, entry: bytes, *, keep: int, ttl: float) -> str:
        """Append an entry.

        Args:
            stream: The stream; it begins with its first entry.
            entry: At most 64 KiB.
            keep: Maximum number of entries in the stream; the oldest are dropped. From 1.
            ttl: Seconds from now to the end of the whole stream, unless another entry comes.

        Returns:
            The position of the entry.

        Raises:
            ValueError: The entry is larger than 64 KiB.
        """

    @abstractmethod
    async def read(self, positions: Mapping[str, str], *, wait: float) -> list[LogEntry | Gap]:
        """Read the entries after a position, of several streams.

        Calls with a `wait` above 0 may wait for each other: a node has one such reader.

        Args:
            positions: The position in each stream: of `end_of`, `append`, or an item of `read`.
            wait: Maximum seconds to wait for the first entry.

        Returns:
            For each stream its oldest entries, in order, at most 100. A `Gap` stands where entries
            were dropped; where the whole stream was lost, it comes with the next entry at the
            latest. A position of another epoch is answered at once with a gap, before what is
            there; a malformed position with a gap that ends at the end of the stream. Empty where
            nothing came.
        """

    @abstractmethod
    async def end_of(self, stream: str) -> str:
        """Return the position after the newest entry, from which the next one is read."""


class Backend(Store, Log):
    """The records and logs that the nodes of one server share. Subclass it for another engine.

    An engine bounds the time of each operation: where no answer comes within a second or so, it
    raises `BackendUnavailable`.

    Attributes:
        lease: Seconds that a node lives in the backend after each renewal.
        epoch: A text that changes where the backend may have lost data: it came back empty, was
            emptied, or another process answers. Read when opened, and kept up by the engine.
        in_process: Whether all nodes are in this process. Nodes of several processes must be given
            the keys of the server.
        observe: A function that is called after each operation: with its name, `"ok"`,
            `"unavailable"` or `"cancelled"`, and its seconds. `Conflict` and `Full` are `"ok"`. It
            is set on the object that `open` gives.
    """

    lease: float = 10.0
    epoch: str = ""
    in_process: bool = False
    observe: Callable[[str, str, float], None] | None = None

    @abstractmethod
    def open(self, name: str) -> AbstractAsyncContextManager["Backend"]:
        """Open the backend for a node; an async context manager, which owns all tasks and closes.

        `async with backend.open("shop") as shared:` gives the object with the operations, which may
        be another one than this. A backend may be open several times at once: each is a node. Nodes
        that open one name share all data; other names share nothing with it.

        Args:
            name: The name of the server.

        Raises:
            BackendUnavailable: It cannot be reached; the message is one line with the reason.
        """

    @property
    def is_up(self) -> bool:
        """True if the backend was reachable when it was last asked."""
        return True

    @abstractmethod
    def now(self) -> float:
        """Return the clock of the backend, in seconds since the epoch, as this process knows it."""

    def observed(self, operation: str) -> AbstractContextManager[None]:
        """Report one operation to `observe`; engines put it around the work of each operation."""
        return _UNOBSERVED if self.observe is None else _Observed(self.observe, operation)


_UNOBSERVED: Final = nullcontext()


class _Observed:
    """Reports one operation. A class, since a generator costs as much as a batched read."""

    __slots__ = ("_observe", "_operation", "_start")

    def __init__(self, observe: Callable[[str, str, float], None], operation: str) -> None:
        self._observe = observe
        self._operation = operation

    def __enter__(self) -> None:
        self._start = trio.current_time()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        outcome = "ok"
        if isinstance(error, BackendUnavailable):
            outcome = "unavailable"
        elif isinstance(error, trio.Cancelled):
            outcome = "cancelled"
        self._observe(self._operation, outcome, trio.current_time() - self._start)


def check_size(data: bytes, most: int, what: str) -> None:
    """Refuse bytes that are larger than a bound."""
    if len(data) > most:
        raise ValueError(f"{what} has {len(data):,} bytes; at most {most:,} are stored")
