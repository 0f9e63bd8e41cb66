"""Audits: the decisions of policies, kept in a file or a table.

Theory of operation. A call waits in `confirm` until its record is written, so no call is answered
without one. Records that come meanwhile wait in a queue; one thread at a time takes all of them,
writes them together, and wakes their calls in the loops that they belong to. The thread ends when
the queue is empty. `_writing` is True exactly while there is one, and changes together with the
queue under `_lock`, so no record is left behind. A call waits for `patience` seconds at most, and
the queue is bounded: beyond these limits `confirm` raises, and the call is denied. The thread that
writes holds `_file_lock`, and so does `close`.
"""

import abc
import json
import os
import stat
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from .._util import utc_text
from ..events import Event, Listener

if TYPE_CHECKING:
    import sqlite3

#: Records that wait to be written. Each belongs to a call that waits for it.
MAX_WAITING: Final = 10_000
#: Records that are written together.
BATCH: Final = 1000
#: Seconds that a call waits for its record.
PATIENCE: Final = 1.0
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS decisions
(time TEXT, name TEXT, principal TEXT, transport TEXT, decision TEXT, policy TEXT, reason TEXT)
"""
_INSERT: Final = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)"


class AuditRecord(NamedTuple):
    """One decision.

    Attributes:
        time: The time of the decision, ISO 8601 in UTC with milliseconds.
        name: The name of the tool or prompt, or the URI, cut to 256 characters.
        principal: The `Principal.key` of the caller; None without authentication.
        transport: `stdio`, `http` or `memory`.
        decision: `allow` or `deny`.
        policy: The policy that denied; None for `allow`.
        reason: Its reason; None for `allow`.
    """

    time: str
    name: str | None
    principal: str | None
    transport: str
    decision: str | None
    policy: str | None
    reason: str | None


class _Waiting:
    """A record that waits to be written, and the call that waits for it."""

    __slots__ = ("error", "loop", "over", "record")

    def __init__(self, record: AuditRecord) -> None:
        self.record = record
        self.loop = trio.lowlevel.current_trio_token()
        self.over = trio.Event()
        self.error: Exception | None = None


class _Audit(Listener, abc.ABC):
    """Keeps the decisions of policies; see `AuditLog`."""

    def __init__(
        self, path: str | os.PathLike[str], *, fsync: bool = False, patience: float = PATIENCE
    ) -> None:
        self.path: Final = os.fspath(path)
        self._fsync = fsync
        self._patience = patience
        self._queue: deque[_Waiting] = deque()
        self._writing = False
        self._lock = threading.Lock()
        self._file_lock = threading.Lock()
        self._is_open = False
        self._identity: tuple[int, int] | None = None  # of the open file

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    def close(self) -> None:
        """Close the file; the next decision opens it again."""
        with self._file_lock:
            self._close()

    async def confirm(self, event: Event) -> None:
        """Write the record of a decision; see `Listener`.

        Raises:
            OSError: It was not written, or not in time.
        """
        waiting = _Waiting(_record_of(event))
        with self._lock:
            if len(self._queue) >= MAX_WAITING:
                raise OSError(f"{MAX_WAITING} records wait to be written to {self.path}")
            self._queue.append(waiting)
            start = not self._writing
            self._writing = True
        if start:
            # A thread of trio's cache: it starts fast, and a hung disk cannot keep the process.
            trio.lowlevel.start_thread_soon(self._write_all, lambda _: None)
        with trio.move_on_after(self._patience) as scope:
            try:
                await waiting.over.wait()
            except trio.Cancelled:
                # The call will not run, so the record need not take the place of another.
                self._withdraw(waiting)
                raise
        if scope.cancelled_caught:
            raise TimeoutError(f"{self.path} took no record within {self._patience:g} s")
        if waiting.error is not None:
            raise OSError(f"a record was not written to {self.path}") from waiting.error

    def _withdraw(self, waiting: _Waiting) -> None:
        with self._lock, suppress(ValueError):  # it is being written
            self._queue.remove(waiting)

    def _write_all(self) -> None:
        """Write the records that wait, until there are none; runs in a thread."""
        while True:
            with self._lock:
                batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
                if not batch:
                    self._writing = False
                    return
            error: Exception | None = None
            try:
                with self._file_lock:
                    self._write_batch([each.record for each in batch])
            except Exception as failure:  # of any kind: the calls must hear of it
                error = failure
            for each in batch:
                each.error = error
            for loop in {each.loop for each in batch}:
                mine = [each.over for each in batch if each.loop is loop]
                try:
                    loop.run_sync_soon(partial(_wake, mine))
                except trio.RunFinishedError:
                    continue  # its calls are gone, too

    def _write_batch(self, records: Sequence[AuditRecord]) -> None:
        found = _identity_of(self.path)
        # A program that rotates logs has moved the file away, or removed it.
        if self._is_open and self._identity != found:
            self._close()
        if not self._is_open:
            self._open()
            self._is_open = True
            self._identity = _identity_of(self.path)
        try:
            self._write(records)
        except BaseException:
            self._close()  # in an unknown state; the next batch opens it anew
            raise

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._shut()

    @abc.abstractmethod
    def _open(self) -> None:
        """Open the file; it is not open."""

    @abc.abstractmethod
    def _write(self, records: Sequence[AuditRecord]) -> None:
        """Write all records, or raise."""

    @abc.abstractmethod
    def _shut(self) -> None:
        """Close the file; it is open."""


class AuditLog(_Audit):
    """Writes each decision of the policies as a line of JSON: `telemetry = [AuditLog(path)]`.

    A call goes on, and a denial is answered, once its record is written. So the record of every
    call that was answered is there after the process was killed; with `fsync`, after a power
    failure, too. A call whose record cannot be written within `patience` is denied with the reason
    `audit failed`. Several processes may write to one file. A file that was moved or removed is
    made again, so programs that rotate logs need not tell the server.

    A line has the members of `AuditRecord`: `time`, `name`, `principal`, `transport`,
    `decision`, `policy`, `reason`. A line that a full disk has cut off is not continued.

    Args:
        path: The file; made if it is missing, readable by its owner only.
        fsync: Wait until the disk has the record; takes milliseconds.
        patience: Seconds that a call waits for its record.
    """

    def _open(self) -> None:
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        size = os.fstat(self._file).st_size
        if size:
            os.lseek(self._file, size - 1, os.SEEK_SET)
            if os.read(self._file, 1) != b"\n":
                os.write(self._file, b"\n")

    def _write(self, records: Sequence[AuditRecord]) -> None:
        lines = "".join(json.dumps(record._asdict()) + "\n" for record in records)
        # One call of the system for all: other processes may write to the file.
        data = memoryview(lines.encode())
        while data:
            data = data[os.write(self._file, data) :]
        if self._fsync:
            os.fsync(self._file)

    def _shut(self) -> None:
        os.close(self._file)


class AuditTable(_Audit):
    """Writes each decision of the policies into an SQLite database; see `AuditLog`.

    The table `decisions` has the columns of `AuditRecord`, and an index of `time`. Other programs
    may read it at the same time.

    Args:
        path: The file of the database; made if it is missing.
        fsync: Wait until the disk has the record; takes milliseconds.
        patience: Seconds that a call waits for its record.
    """

    _database: "sqlite3.Connection"

    def _open(self) -> None:
        import sqlite3

        # Made by the present thread, and used by later ones, one at a time.
        self._database = sqlite3.connect(
            self.path, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        try:
            # With a write-ahead log a process that is killed loses no committed row, and readers
            # do not wait.
            self._database.execute("PRAGMA journal_mode = WAL")
            level = "FULL" if self._fsync else "NORMAL"
            self._database.execute(f"PRAGMA synchronous = {level}")
            self._database.execute(_TABLE)
            self._database.execute("CREATE INDEX IF NOT EXISTS by_time ON decisions (time)")
        except BaseException:
            self._database.close()
            raise

    def _write(self, records: Sequence[AuditRecord]) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany(_INSERT, map(_text, records))
        self._database.execute("COMMIT")

    def _shut(self) -> None:
        self._database.close()


def _record_of(event: Event) -> AuditRecord:
    return AuditRecord(
        utc_text(),
        event.name,
        event.principal,
        event.transport,
        event.decision,
        event.policy,
        event.reason,
    )


def _text(record: AuditRecord) -> list[str | None]:
    # Half of a surrogate pair, which a client may send, has no UTF-8.
    return [None if v is None else v.encode("utf-8", "replace").decode() for v in record]


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path} is no file")
    return found.st_dev, found.st_ino


def _wake(events: Sequence[trio.Event]) -> None:
    for event in events:
        event.set()
