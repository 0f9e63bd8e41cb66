"""The connection of a `Remote` to its server, shared by all of its callers.

Theory of operation. A request of a caller becomes one request to the server. While it is in flight
the caller stands in `_calls`. Everything that the server sends on its own account must find one of
these callers:

- Progress, and the questions of 2026-07-28, belong to one request by the rules of the protocol.
- Questions up to 2025-11-25, and log messages, come on the connection. They belong to the caller
  of the requests in flight, if that is one: a session, a verified principal, or else one request.
  With several of them, or none, nobody can tell whose they are: a question is refused, since it
  may show the data of one person to another, and a log message is dropped.

A question ends with the request that it belongs to.

The lists of the server are read when it connects, and again when it says that they changed. So a
list request of a client never waits for a slow server, and many clients cause one request.

Watched resources are counted: the server is asked to tell of a URI once, for the first caller that
watches it, and after each new connection. On 2026-07-28 one listen request has all URIs; a new one
is open before the old one ends, so that no change is lost in between.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import trio

from .._errors import (
    PEER_FAILURES,
    ConnectionClosed,
    LocalProtocolError,
    McpError,
    ProtocolError,
    RequestTimeout,
    TargetError,
    ToolError,
)
from .._log import logger
from .._value import JSONObject
from ..client import Client, ClientHandler, KeptConnection, Opened, Progress, told
from ..jsonrpc import HEADER_MISMATCH, INTERNAL_ERROR, INVALID_REQUEST, Notification
from ..protocol import CHANGES, RESOURCE_UPDATED
from ..server import ServerContext
from ..types import ELICIT, LOG_LEVELS, META_PROGRESS_TOKEN, ROOTS, SAMPLE, InputRequest

#: Keys of `_meta` with this beginning belong to one connection (2026-07-28 `basic/index`, `_meta`).
_RESERVED: Final = "io.modelcontextprotocol/"
_LOG: Final = "notifications/message"
#: The pauses before a list is read again that could not be read, in seconds.
FIRST_PAUSE: Final = 1.0
MAX_PAUSE: Final = 60.0
_LISTS: Final = {method: kind for kind, (method, _) in CHANGES.items()}


class Unavailable(Exception):
    """The server cannot be reached, or its answer is lost; the text names the server."""


class _Call:
    """A request of a caller that is in flight.

    Attributes:
        ctx: The request.
        questions: The scopes of its questions.
    """

    def __init__(self, ctx: ServerContext) -> None:
        self.ctx = ctx
        self.questions: set[trio.CancelScope] = set()

    @property
    def caller(self) -> Hashable:
        """The session of the request, its principal, or the request itself."""
        ctx = self.ctx
        if ctx.dispatcher is not None:
            return id(ctx.dispatcher)
        return id(ctx) if ctx.auth is None else ctx.auth.key


class Upstream:
    """The connection to the server behind a `Remote`.

    Args:
        name: The name of the server, for errors.
        target: The server; or the failure to read its target.
        options: The options of `connect`.
        changed: Called with the kind of each list that was read anew, or is not served any more.
        updated: Called with the URI of each resource that changed.

    Attributes:
        lists: The definitions that the server listed last, by kind: `tools`, `prompts`,
            `resources`, `resource_templates`. Kinds that were not read yet are missing.
    """

    def __init__(
        self,
        name: str,
        target: Opened | TargetError | ValueError,
        options: Mapping[str, Any],
        changed: Callable[[str], object],
        updated: Callable[[str], object],
    ) -> None:
        self.lists: dict[str, Sequence[Any]] = {}
        self._changed = changed
        self._updated = updated
        # Lists to be read, and what to wait for until there is one, or one was read.
        self._outdated: set[str] = set()
        self._turn = trio.Event()
        self._calls: list[_Call] = []
        self._level: int | None = None
        self._watched: dict[str, int] = {}
        self._rewatch = trio.Event()
        self._acknowledged: set[str] = set()
        self.connection = KeptConnection(
            name,
            target,
            _Questions(self),
            options,
            observe=self._observe,
            use=self._use,
            on_status=self._note_status,
        )

    async def run(self) -> None:
        """Keep the connection until the calling task is cancelled, or no attempt can succeed."""
        await self.connection.run()

    async def ready(self) -> Client:
        """Return the client.

        Raises:
            Unavailable: The server is not connected.
        """
        connection = self.connection
        client = connection.client
        try:
            return client or await connection.ready(connection.timeout)
        except (ConnectionClosed, RequestTimeout) as error:
            raise Unavailable(str(error)) from error

    async def request(self, method: str, params: JSONObject, ctx: ServerContext) -> JSONObject:
        """Send a request of a caller, and return its result.

        Args:
            method: The method.
            params: The params, without `_meta`.
            ctx: The request of the caller.

        Raises:
            McpError: The server answered with an error.
            Unavailable: The server is not connected, did not answer, or the connection ended.
        """
        client = await self.ready()
        await self._set_level(client, ctx)
        params = _with_meta(params, ctx.meta)
        progress = None
        if META_PROGRESS_TOKEN in ctx.meta:

            def progress(found: Progress) -> None:
                ctx.report_progress(found.progress, found.total, found.message)

        with self._in_flight(ctx), self._naming():
            try:
                return await client.request(method, params, progress=progress)
            except McpError as error:
                if error.code != HEADER_MISMATCH:
                    raise
            # The server has not run the tool. Listing notes the headers that each tool wants now.
            await client.list_tools()
            return await client.request(method, params, progress=progress)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Name the server in failures that are none of its answers."""
        name = self.connection.name
        try:
            yield
        except McpError:
            raise
        except RequestTimeout as error:
            raise Unavailable(f"{name} did not answer in time") from error
        except PEER_FAILURES as error:
            raise Unavailable(f"{name}: {told(error)}") from error

    @contextmanager
    def _in_flight(self, ctx: ServerContext) -> Iterator[None]:
        call = _Call(ctx)
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            for question in call.questions:
                question.cancel()

    def _owner(self) -> _Call | None:
        """Return the request that a message of the server belongs to; None if nobody can tell."""
        callers = {call.caller for call in self._calls}
        return self._calls[-1] if len(callers) == 1 else None

    # Questions

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the caller that a question belongs to, and return its answer.

        Raises:
            McpError: Nobody can tell who that is, or the caller refused.
        """
        call = self._owner()
        if call is None:
            several = "several callers have" if self._calls else "no caller has"
            text = f"{several} a request in flight here, so nobody can tell whom to ask"
            raise McpError(INVALID_REQUEST, text)
        params = _with_meta(params, params.get("_meta", {}))
        if call.ctx.envelope.revision.stateless:
            # 2026-07-28 has none; a handler that runs again would have another one.
            params.pop("elicitationId", None)
        with trio.CancelScope() as scope:
            call.questions.add(scope)
            try:
                answer: Mapping[str, Any] = await call.ctx.relay(InputRequest(method, params))
            except (ToolError, LocalProtocolError) as error:
                raise McpError(INVALID_REQUEST, str(error)) from None
            except (RequestTimeout, ConnectionClosed) as error:
                raise McpError(INTERNAL_ERROR, f"the caller did not answer: {error}") from None
            finally:
                call.questions.discard(scope)
            return answer
        raise McpError(INTERNAL_ERROR, "the request that the question belongs to has ended")

    # Messages of the server

    def _observe(self, notice: Notification) -> None:
        params = notice.params or {}
        kind = _LISTS.get(notice.method)
        if kind is not None:
            self._outdated.add(kind)
            self._wake()
        elif notice.method == RESOURCE_UPDATED:
            if isinstance(params.get("uri"), str):
                self._updated(params["uri"])
        elif notice.method == _LOG:
            call = self._owner()
            if call is not None and params.get("level") in LOG_LEVELS:
                call.ctx.log(params["level"], params.get("data"), params.get("logger"))

    async def _set_level(self, client: Client, ctx: ServerContext) -> None:
        """Ask the server for log messages of the level of the caller, unless it sends them."""
        level = ctx.log_level
        if level is None or not client.capabilities.has("logging"):
            return
        rank = LOG_LEVELS.index(level)
        if self._level is None or rank < self._level:
            with self._naming():
                await client.set_log_level(level)
            self._level = rank

    def _note_status(self, status: str) -> None:
        if status == "connected":
            self._level = None
            self._outdated.update(CHANGES)
        elif status != "connecting" and self.lists:
            # An attempt has failed: nobody knows how long it will be away.
            self.lists.clear()
            for kind in CHANGES:
                self._changed(kind)
        self._wake()

    def _wake(self) -> None:
        self._turn.set()
        self._turn = trio.Event()

    # Lists

    async def list(self, kind: str) -> Sequence[Any]:
        """Return the definitions of a kind that the server listed last.

        Args:
            kind: `tools`, `prompts`, `resources` or `resource_templates`.

        Raises:
            ConnectionClosed: The server is not connected.
        """
        while kind not in self.lists:
            if self.connection.status in ("waiting", "failed"):
                raise self.connection.unavailable()
            await self._turn.wait()
        return self.lists[kind]

    async def _refresh(self, client: Client) -> None:
        """Read each list that has changed, for as long as the server is connected."""
        pause = FIRST_PAUSE
        while True:
            while not self._outdated:
                pause = FIRST_PAUSE
                await self._turn.wait()
            kind = self._outdated.pop()
            try:
                for part in ("resources", "resource_templates") if kind == "resources" else (kind,):
                    has = client.capabilities.has(kind)
                    self.lists[part] = await getattr(client, f"list_{part}")() if has else ()
            except (McpError, ProtocolError, RequestTimeout) as error:
                name = self.connection.name
                logger.warning("%s does not list its %s: %s", name, kind, told(error))
                self._outdated.add(kind)
                await trio.sleep(pause)
                pause = min(2 * pause, MAX_PAUSE)
                continue
            self._wake()
            self._changed(kind)

    # Watched resources

    async def watch(self, uri: str) -> None:
        """Watch a resource; each time that this succeeds belongs to one `unwatch`.

        Args:
            uri: The URI, as the server knows it.

        Raises:
            McpError: The server refused.
            Unavailable: The server is not connected.
        """
        client = await self.ready()
        count = self._watched[uri] = self._watched.get(uri, 0) + 1
        try:
            with self._naming():
                if not client.is_stateless and count == 1:
                    await client.subscribe(uri)
            if client.is_stateless and count == 1:
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
        """Count one watcher less; return True if it was the last."""
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
        if client.is_stateless:
            self._rewatch.set()
        else:
            with self._naming():
                await client.unsubscribe(uri)

    async def _use(self, client: Client) -> None:
        """Read the lists, and keep the watched resources watched, on a new connection."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._refresh, client)
            again = tuple(self._watched)
            if client.is_stateless:
                self._acknowledged = set()
                self._rewatch = trio.Event()
                if again:
                    self._rewatch.set()
                nursery.start_soon(self._keep_listening, client)
            for uri in again:
                if not client.is_stateless:
                    try:
                        await client.subscribe(uri)
                    except McpError as error:
                        logger.warning("%s is not watched any more: %s", uri, error)
                # Changes while it was not connected were told to nobody.
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
        self, client: Client, uris: tuple[str, ...], *, task_status: trio.TaskStatus[Any]
    ) -> None:
        with trio.CancelScope() as scope:
            try:
                async with client.listen(uris=uris):
                    task_status.started(scope)
                    await trio.sleep_forever()
            except PEER_FAILURES as error:
                logger.warning("resources of %s are not watched: %s", self.connection.name, error)
                if not scope.cancel_called:
                    task_status.started(scope)


def _with_meta(params: Mapping[str, Any], meta: Any) -> JSONObject:
    """Return params with those keys of `_meta` that do not belong to one connection."""
    found = {key: value for key, value in params.items() if key != "_meta"}
    kept = {
        key: value
        for key, value in (meta.items() if isinstance(meta, Mapping) else ())
        if key != META_PROGRESS_TOKEN and not key.startswith(_RESERVED)
    }
    return {**found, "_meta": kept} if kept else found


class _Questions(ClientHandler):
    """Passes the questions of a server on to its callers."""

    sampling_tools = True

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the person."""
        return await self._upstream.ask(ELICIT, params)

    async def handle_sampling(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the model."""
        return await self._upstream.ask(SAMPLE, params)

    async def list_roots(self) -> Mapping[str, Any]:
        """List the roots of the caller."""
        return await self._upstream.ask(ROOTS, {})
