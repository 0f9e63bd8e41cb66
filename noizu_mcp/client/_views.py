"""Live lists: the tools, prompts, resources or templates of servers, kept up to date.

Theory of operation. A live list works while its block runs. It is *current* or *stale*: a
notification of a server makes it stale. One task, of a `ListRefresher`, waits until the list is
stale, waits `SETTLE` seconds for other notifications, marks the list as current, and reads it. In
this order: a notification that arrives while the list is read makes it stale again, so the last
reading begins after the last notification. However many notifications arrive, there is at most one
reading every `SETTLE` seconds. A reading that fails is repeated after the next notification, or
after growing pauses; until then the list does not change.

The notifications of one server come from `watch_server`. Up to 2025-11-25 a server sends changes by
itself. On 2026-07-28 a task keeps a listen request open (see `_listening`). The end of the
connection ends the block with `ConnectionClosed`. The list of several servers is in
`_several_live`: there the end of a connection is another change.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Final, Generic, Self, cast

import trio

from .._errors import PEER_FAILURES, ConnectionClosed, McpError
from .._log import SHOWN, ThrottledLog
from .._util import growing_pause
from ..engine import logger, single_failure
from ..jsonrpc import METHOD_NOT_FOUND, Notification
from ..protocol import CHANGES
from ._list_reader import Definition, ListKind
from ._listening import listen
from ._session import ClientSession

#: Calls a function at each change of a list, while the block runs.
Watch = Callable[[Callable[[], object]], AbstractAsyncContextManager[None]]

#: Seconds between a notification and the reading of the list, to cover further notifications.
SETTLE: Final = 0.1


class ListRefresher:
    """Reads a list again whenever it is stale; see the theory of operation.

    Args:
        title: The list, for the log.
        read: Reads it.
    """

    def __init__(self, title: str, read: Callable[[], Awaitable[None]]) -> None:
        self._title = title
        self._read = read
        self._stale = trio.Event()
        # One reading at a time: an earlier answer must not replace a later one.
        self._turn = trio.Lock()
        self._log = ThrottledLog(shown=SHOWN)

    def note(self) -> None:
        """Mark the list as stale."""
        self._stale.set()

    async def refresh(self) -> None:
        """Read the list now. Failures are raised."""
        async with self._turn:
            # Before the request: a notification from now on causes another reading. An unset event
            # is kept, since a task waits for it.
            if self._stale.is_set():
                self._stale = trio.Event()
            await self._read()

    async def run(self, *, at_once: bool = False) -> None:
        """Read the list whenever it is stale, until the calling task is cancelled.

        Args:
            at_once: True to read it now, too.
        """
        failures, patience, settle = 0, math.inf, SETTLE
        if at_once:
            patience = settle = 0.0
        while True:
            with trio.move_on_after(patience):
                await self._stale.wait()
            await trio.sleep(settle)
            settle = SETTLE
            try:
                await self.refresh()
                failures = 0
            except PEER_FAILURES as error:
                failures += 1
                if failures == 1:
                    text = "%s failed, and is tried again: %s"
                    self._log.warning(None, text, self._title, error)
            patience = growing_pause(failures) or math.inf


class _Entries(Generic[Definition]):
    """The entries of a live list, shared by all views of the list.

    Attributes:
        items: The entries, in the order of the server.
        by_key: The same by name or URI; None while no block is running.
    """

    def __init__(self) -> None:
        self.items: tuple[Definition, ...] = ()
        self.by_key: dict[str, Definition] | None = None


class ListView(Generic[Definition]):
    """The definitions of a live list, read-only.

    Args:
        entries: The entries.
    """

    def __init__(self, entries: _Entries[Definition]) -> None:
        self._entries = entries

    @property
    def items(self) -> tuple[Definition, ...]:
        """The current definitions, in the order of the server."""
        self._table()
        return self._entries.items

    def __iter__(self) -> Iterator[Definition]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, key: str) -> Definition:
        return self._table()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._table()

    def get(self, key: str) -> Definition | None:
        """Return the definition with a name, or with a URI for resources, or None."""
        return self._table().get(key)

    def _table(self) -> dict[str, Definition]:
        if self._entries.by_key is None:
            raise RuntimeError(
                "a live list is read while its block runs: write `async with client.tools as "
                "tools`, and `with` for a SyncClient"
            )
        return self._entries.by_key


class LiveList(ListView[Definition]):
    """A list that follows the changes of its server: `async with client.tools as tools`.

    It is read when the block begins, and again after each change. Iteration yields the current
    definitions; `tools["add"]` and `"add" in tools` look up one by its name, or a resource by its
    URI. The list changes only while a task waits: a loop without `await` sees one state. A server
    that does not report changes (`listChanged`) is listed once; `refresh` lists it again.

    Args:
        kind: The list.
        read: Returns the current entries.
        watch: Reports changes while the block runs.
        ask: Called before `read` when the block begins, and by `refresh`.

    Raises:
        RuntimeError: The list is used outside of the block, or the block is entered twice.
        ConnectionClosed: The connection ended while the block ran; not for several servers.
        McpError: The server refused to list; when the block is entered.
    """

    def __init__(
        self,
        kind: ListKind[Definition],
        read: Callable[[], Awaitable[Sequence[Definition]]],
        watch: Watch,
        ask: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        super().__init__(_Entries())
        self._kind = kind
        self._read = read
        self._watch = watch
        self._ask = ask
        self._reader = ListRefresher(kind.method, self._take)
        self._block: AbstractAsyncContextManager[None] | None = None
        self._changed = trio.Event()

    async def __aenter__(self) -> Self:
        if self._block is not None:
            raise RuntimeError("this live list is open already; client.tools gives another one")
        self._block = block = self._follow()
        try:
            await block.__aenter__()
        except BaseException:
            self._block = None
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        block, self._block = cast(AbstractAsyncContextManager[None], self._block), None
        return await block.__aexit__(kind, error, traceback)

    async def refresh(self) -> None:
        """List now, without waiting for a notification.

        Raises:
            McpError: The server refused.
            RequestTimeout: It did not answer in time.
            ConnectionClosed: The connection ended.
        """
        self._table()
        await self._ask()
        await self._reader.refresh()

    async def wait_changed(self) -> None:
        """Wait until the list has changed since the last call, or since the block began.

        Raises:
            RuntimeError: The block ended.
        """
        self._table()
        changed = self._changed
        await changed.wait()
        # Another task may have waited for the same change.
        if self._changed is changed:
            self._changed = trio.Event()
        self._table()

    async def _take(self) -> None:
        """Read the entries."""
        items = tuple(await self._read())
        before, self._entries.items = self._entries.items, items
        # The block may have ended in the meantime.
        if self._block is not None:
            self._entries.by_key = {getattr(each, self._kind.key): each for each in items}
        if items != before:
            self._changed.set()

    @asynccontextmanager
    async def _follow(self) -> AsyncIterator[None]:
        """Keep the list up to date while the block runs."""
        try:
            with single_failure(ConnectionClosed):
                # Subscribe before the list is read, so that no change is missed.
                async with self._watch(self._reader.note), trio.open_nursery() as nursery:
                    await self._ask()
                    await self._reader.refresh()
                    self._changed = trio.Event()
                    nursery.start_soon(self._reader.run)
                    yield
                    nursery.cancel_scope.cancel()
        finally:
            self._entries.by_key = None
            self._changed.set()  # for tasks outside of the block


@asynccontextmanager
async def watch_server(
    session: ClientSession, kind: ListKind[Definition], tell: Callable[[], object], *, is_told: bool
) -> AsyncIterator[None]:
    """Watch a list of one server while the block runs.

    Args:
        session: The connection.
        kind: The list.
        tell: Called at each change.
        is_told: True if the server reports changes of the list.

    Raises:
        ConnectionClosed: The connection ended while the block ran.
    """

    def note(notice: Notification) -> None:
        if notice.method == CHANGES[kind.change][0]:
            tell()

    session.observers.append(note)
    try:
        async with trio.open_nursery() as nursery:
            if is_told and session.peer.revision.stateless:
                await _listen(session, kind, nursery)
            nursery.start_soon(_watch_connection, session)
            yield
            nursery.cancel_scope.cancel()
    finally:
        session.observers.remove(note)


async def _watch_connection(session: ClientSession) -> None:
    await session.wait_ended()
    raise ConnectionClosed("the connection ended while a live list was open")


async def _listen(
    session: ClientSession, kind: ListKind[Definition], nursery: trio.Nursery
) -> None:
    try:
        await nursery.start(listen, session, (kind.change,))
    except McpError as error:
        # Some servers offer `listChanged`, and support it in sessions only.
        if error.code != METHOD_NOT_FOUND:
            raise
        logger.warning("%s is read once: %s", kind.method, error)
