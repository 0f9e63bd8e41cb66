"""The server behind a `Remote`: its connections, lists and watched resources.

Theory of operation. One connection is open while this server is served. It carries all requests,
until the server asks a question up to 2025-11-25 while a request is in flight. From then on there
is a pool of connections: each caller has its own connection while it has requests in flight, so
that a question reaches the right caller; see `SharedConnection`. A free connection is used again,
preferably by its last caller, and is closed after `IDLE` seconds. When all connections of a full
pool are in use, requests share the first one. Servers that never ask, and servers of 2026-07-28,
have one connection.

The lists of the server are read when it connects, and again after a notification of changes, each
in a separate task: a list that the server refuses, or does not end, does not delay others. There is
a pause between two readings, so that many notifications cause few requests, and few notifications
to clients. A list request of a client does not wait for the server, except in the first `patience`
seconds; many clients cause one request.

Watched resources are counted: the client subscribes to a URI once, for its first watcher, and after
each new connection. On 2026-07-28 one listen request has all URIs; a new one is open before the old
one ends, so that no change is lost in between.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import trio

from .._errors import PEER_FAILURES, McpError, ProtocolError, TargetError
from .._log import logger
from .._value import JSONObject
from ..client import Client, ListRefresher, Opened, told
from ..engine import MessageStream
from ..jsonrpc import METHOD_NOT_FOUND, Notification
from ..protocol import CHANGES, RESOURCE_UPDATED, REVISIONS
from ..server import ServerContext
from ..types import (
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from ._shared_connection import SharedConnection, caller_of

AnyDefinition = ToolDefinition | PromptDefinition | ResourceDefinition | ResourceTemplateDefinition

#: Seconds after which an unused connection of the pool is closed.
IDLE: Final = 60.0
#: The lists that a notice makes stale, and the kind of change that tells of each list.
_LISTS: Final = {method: kind for kind, (method, _) in CHANGES.items()}
_KINDS: Final = {**{kind: kind for kind in CHANGES}, "resource_templates": "resources"}


class Upstream:
    """The server behind a `Remote`.

    Args:
        name: The name of the server, for errors.
        target: The target, or the exception from reading it.
        options: The options of `connect`.
        most: The maximum number of connections; see above.
        patience: Seconds from now during which a list request waits for a list.
        changed: Called with the kind of each list that was read again or dropped.
        updated: Called with the URI of each resource that changed.

    Attributes:
        first: The connection that is always open.
        connection: The `KeptConnection` of `first`.
        lists: The last definitions of the server by kind: `tools`, `prompts`, `resources`,
            `resource_templates`; without kinds that were not read yet.
    """

    def __init__(
        self,
        name: str,
        target: Opened | TargetError | ValueError,
        options: Mapping[str, object],
        *,
        most: int,
        patience: float,
        changed: Callable[[str], object],
        updated: Callable[[str], object],
    ) -> None:
        self.lists: dict[str, Sequence[AnyDefinition]] = {}
        self._began = trio.current_time()
        self._changed = changed
        self._updated = updated
        self._until = self._began + patience
        self._refreshers: dict[str, ListRefresher] = {}  # of the present connection
        self._refused: dict[str, str] = {}  # the reason, by list
        self._turn = trio.Event()  # set after each reading
        self._watched: dict[str, int] = {}
        self._rewatch = trio.Event()
        self._acknowledged: set[str] = set()
        # A stream cannot be opened twice.
        self._most = 1 if isinstance(target, MessageStream) else most
        self._asks = False
        self._nursery: trio.Nursery
        self._make = partial(
            SharedConnection, name, target, options, on_question=self._note_question
        )
        self.first = self._make(observe=self._observe, use=self._use, on_status=self._note_status)
        self.connection = self.first.connection
        self._pool = [self.first]

    async def run(self) -> None:
        """Keep the connection until the calling task is cancelled, or no attempt can succeed."""
        async with trio.open_nursery() as self._nursery:
            await self.connection.run()

    async def request(
        self, method: str, params: JSONObject, ctx: ServerContext, extensions: Sequence[str] = ()
    ) -> JSONObject:
        """Send a request of a caller, and return its result; see `SharedConnection.request`."""
        pooled = self._choose(ctx) if self._asks else self.first
        return await pooled.request(method, params, ctx, extensions)

    async def first_client(self, seconds: float) -> Client | None:
        """Return the client, after the first attempt to connect.

        Args:
            seconds: Seconds to wait at most, from the time when this was made.

        Returns:
            None while the server is not connected.
        """
        with trio.move_on_at(self._began + seconds):
            await self.connection.wait_settled()
        return self.connection.client

    def _note_question(self) -> None:
        self._asks = True

    def _choose(self, ctx: ServerContext) -> SharedConnection:
        """Choose the connection of a request: one without requests of other callers."""
        caller = caller_of(ctx)
        free = [pooled for pooled in self._pool if pooled.is_free_for(caller)]
        if free:
            return next((pooled for pooled in free if pooled.last == caller), free[0])
        if len(self._pool) >= self._most:
            return self.first
        pooled = self._make()
        self._pool.append(pooled)
        self._nursery.start_soon(self._keep, pooled)
        return pooled

    async def _keep(self, pooled: SharedConnection) -> None:
        """Keep a connection of the pool until it was unused for `IDLE` seconds."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pooled.connection.run)
            while True:
                await trio.sleep(IDLE)
                if pooled.is_idle_since(trio.current_time() - IDLE):
                    break
            self._pool.remove(pooled)
            nursery.cancel_scope.cancel()

    # Messages of the server

    def _observe(self, notice: Notification) -> None:
        params = notice.params or {}
        kind = _LISTS.get(notice.method)
        if kind is not None:
            for name, refresher in self._refreshers.items():
                if _KINDS[name] == kind:
                    refresher.note()
        elif notice.method == RESOURCE_UPDATED:
            self._updated(str(params.get("uri")))

    def _note_status(self, status: str) -> None:
        if status == "connected":
            self._refused.clear()
        elif status != "connecting" and self.lists:
            # An attempt has failed, so the server may be away for a long time.
            self.lists.clear()
            for kind in CHANGES:
                self._changed(kind)
        self._wake()

    def _wake(self) -> None:
        self._turn.set()
        self._turn = trio.Event()

    # Lists

    async def list(self, name: str) -> Sequence[AnyDefinition]:
        """Return the definitions that the server listed last.

        Args:
            name: `tools`, `prompts`, `resources` or `resource_templates`.

        Raises:
            ConnectionClosed: The server is not connected.
            ProtocolError: It does not list them.
        """
        with trio.move_on_at(self._until):
            while name not in self.lists and name not in self._refused:
                if self.connection.status in ("waiting", "failed"):
                    break
                await self._turn.wait()
        if name in self.lists:
            return self.lists[name]
        if self.connection.client is None:
            raise self.connection.unavailable()
        why = self._refused.get(name, "it has not answered yet")
        raise ProtocolError(f"{self.connection.name} does not list its {name}: {why}")

    async def _refresh(self, client: Client, name: str) -> None:
        """Read a list, for as long as the server is connected."""
        try:
            found = await self._read(client, name)
        except PEER_FAILURES as error:
            # Over HTTP one request may fail in any way, and others go well. If the connection has
            # ended, this task is cancelled.
            self._refused[name] = told(error)
            self._wake()
            raise
        self.lists[name] = found
        self._wake()
        self._changed(_KINDS[name])

    @staticmethod
    async def _read(client: Client, name: str) -> Sequence[AnyDefinition]:
        if not client.capabilities.has(_KINDS[name]):
            return ()
        found: Sequence[AnyDefinition] = ()
        try:
            found = await getattr(client, f"list_{name}")()
        except McpError as error:
            # Some servers have resources, and no list of templates.
            if error.code != METHOD_NOT_FOUND:
                raise
        return found

    # Watched resources

    async def watch(self, uri: str) -> None:
        """Watch a resource; each time that this succeeds belongs to one `unwatch`.

        Args:
            uri: The URI, as the server knows it.

        Raises:
            McpError: The server refused.
            Unavailable: The server is not connected.
        """
        client = await self.first.ready()
        count = self._watched[uri] = self._watched.get(uri, 0) + 1
        try:
            with self.first.naming():
                if not _is_stateless(client) and count == 1:
                    await client.subscribe(uri)
            if _is_stateless(client) and count == 1:
                self._rewatch.set()
                await self._wait_acknowledged(uri)
        except BaseException:
            self._forget(uri)
            raise

    async def _wait_acknowledged(self, uri: str) -> None:
        with trio.move_on_after(self.connection.timeout):
            while uri not in self._acknowledged:
                await self._turn.wait()

    def _forget(self, uri: str) -> bool:
        """Remove one watcher; return True if it was the last."""
        self._watched[uri] -= 1
        if self._watched[uri]:
            return False
        del self._watched[uri]
        return True

    async def unwatch(self, uri: str) -> None:
        """End a `watch`."""
        client = self.connection.client
        if not self._forget(uri) or client is None:
            return
        if _is_stateless(client):
            self._rewatch.set()
        else:
            with self.first.naming():
                await client.unsubscribe(uri)

    async def _use(self, client: Client) -> None:
        """Read the lists, and keep the watched resources watched, on a new connection."""
        async with trio.open_nursery() as nursery:
            self._refreshers = {
                name: ListRefresher(
                    f"listing {name} of {self.connection.name}",
                    partial(self._refresh, client, name),
                )
                for name in _KINDS
            }
            for refresher in self._refreshers.values():
                nursery.start_soon(partial(refresher.run, at_once=True))
            again = tuple(self._watched)
            if _is_stateless(client):
                self._acknowledged = set()
                self._rewatch = trio.Event()
                if again:
                    self._rewatch.set()
                nursery.start_soon(self._keep_listening, client)
            for uri in again:
                if not _is_stateless(client):
                    try:
                        await client.subscribe(uri)
                    except McpError as error:
                        logger.warning("%s is no longer watched: %s", uri, error)
                # Changes while it was not connected were not reported.
                self._updated(uri)

    async def _keep_listening(self, client: Client) -> None:
        """Keep one listen request open for all watched resources."""
        async with trio.open_nursery() as nursery:
            before: trio.CancelScope | None = None
            while True:
                await self._rewatch.wait()
                self._rewatch = trio.Event()
                uris = tuple(self._watched)
                scope = await nursery.start(self._listen, client, uris) if uris else None
                if before is not None:
                    before.cancel()
                before = scope
                self._acknowledged = set(uris)
                self._wake()

    async def _listen(
        self,
        client: Client,
        uris: tuple[str, ...],
        *,
        task_status: trio.TaskStatus[trio.CancelScope],
    ) -> None:
        started = False
        with trio.CancelScope() as scope:
            try:
                async with client.listen(uris=uris):
                    started = True
                    task_status.started(scope)
                    await trio.sleep_forever()
            except PEER_FAILURES as error:
                logger.warning("resources of %s are not watched: %s", self.connection.name, error)
        if not started:
            task_status.started(scope)


def _is_stateless(client: Client) -> bool:
    """Tell whether the server speaks 2026-07-28, which has no sessions."""
    return REVISIONS[client.protocol_version].stateless
