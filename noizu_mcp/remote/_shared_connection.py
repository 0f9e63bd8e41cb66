"""One connection of a `Remote` to its server: requests of callers, and messages of the server.

Theory of operation. A request of a caller becomes one request to the server. While it is in flight
it is in `_calls`. Each other message of the server belongs to one of these calls:

- Progress, and the questions of 2026-07-28, belong to one request by the rules of the protocol.
- Questions up to 2025-11-25, and log messages, come on the connection. They belong to the caller
  of the requests in flight, if there is one caller: a session, a verified principal, or else one
  request. With several callers, or none, the owner is unknown: a question is refused, since it
  may show the data of one person to another, and a log message is dropped.

A question ends with the request that it belongs to. A request ends with its own answer, also while
a question is open: the server may not need the answer.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import trio

from .._errors import (
    PEER_FAILURES,
    ConnectionClosed,
    LocalProtocolError,
    McpError,
    RequestTimeout,
    TargetError,
    ToolError,
)
from .._value import JSON, JSONObject
from ..client import Client, ClientHandler, KeptConnection, Opened, Progress, told
from ..jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MISSING_CLIENT_CAPABILITY,
    Notification,
)
from ..server import ServerContext
from ..types import ELICIT, LOG_LEVELS, META_PROGRESS_TOKEN, ROOTS, SAMPLE, InputRequest

#: Keys of `_meta` with this beginning belong to one connection (2026-07-28 `basic/index`, `_meta`).
_RESERVED: Final = "io.modelcontextprotocol/"
_LOG: Final = "notifications/message"


class Unavailable(Exception):
    """The server cannot be reached, or its answer is lost; the text names the server."""


def caller_of(ctx: ServerContext) -> Hashable:
    """Return the identity of the caller of a request: a session, a principal, or the request."""
    if ctx.dispatcher is not None:
        return id(ctx.dispatcher)
    return id(ctx) if ctx.auth is None else ctx.auth.key


class _PendingCall:
    """A request of a caller that is in flight.

    Attributes:
        ctx: The request.
        caller: Its caller; see `caller_of`.
        questions: The scopes of its questions.
        missing: The error for a question that the client of the caller does not support, or None.
    """

    def __init__(self, ctx: ServerContext) -> None:
        self.ctx = ctx
        self.caller = caller_of(ctx)
        self.questions: set[trio.CancelScope] = set()
        self.missing: McpError | None = None


class SharedConnection:
    """One connection to a server, and the callers whose requests are in flight on it.

    Args:
        name: The name of the server, for errors.
        target: The target, or the exception from reading it.
        options: The options of `connect`.
        observe: Called with each notification that belongs to no caller.
        on_question: Called with each question that may belong to a caller.
        more: Further arguments of `KeptConnection`.

    Attributes:
        connection: The connection.
        last: The last caller; None before the first.
        used: The time of its last request.
    """

    def __init__(
        self,
        name: str,
        target: Opened | TargetError | ValueError,
        options: Mapping[str, object],
        *,
        observe: Callable[[Notification], object] = lambda _: None,
        on_question: Callable[[], object],
        **more: Any,
    ) -> None:
        self.last: Hashable = None
        self.used = trio.current_time()
        self._calls: list[_PendingCall] = []
        self._level: int | None = None
        self._leveled: Client | None = None
        self._observe_other = observe
        self._on_question = on_question
        self.connection = KeptConnection(
            name, target, _Questions(self), options, observe=self._observe, **more
        )

    def is_free_for(self, caller: Hashable) -> bool:
        """Tell whether no other caller has a request in flight."""
        return all(call.caller == caller for call in self._calls)

    def is_idle_since(self, time: float) -> bool:
        """Tell whether no request was in flight since a time on the clock of trio."""
        return not self._calls and self.used <= time

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

    async def request(
        self, method: str, params: JSONObject, ctx: ServerContext, extensions: Sequence[str] = ()
    ) -> JSONObject:
        """Send a request of a caller, and return its result.

        Args:
            method: The method.
            params: The params, without `_meta`.
            ctx: The request of the caller.
            extensions: Ids of extensions that the request declares.

        Raises:
            McpError: The server answered with an error.
            Unavailable: The server is not connected, did not answer, or the connection ended.
        """
        params = _with_meta(params, ctx.meta)
        progress = None
        if ctx.envelope.progress_token is not None:

            def progress(found: Progress) -> None:
                ctx.report_progress(found.progress, found.total, found.message)

        with self._in_flight(ctx) as call:
            client = await self.ready()
            send = partial(client.request, method, params, progress=progress, extensions=extensions)
            with self.naming():
                await self._set_level(client, ctx)
                try:
                    result = await send()
                except McpError as error:
                    if call.missing is not None:
                        raise call.missing from error
                    if error.code != HEADER_MISMATCH:
                        raise
                    # The server has not run the tool. Listing notes the headers that each wants.
                    await client.list_tools()
                    result = await send()
            if call.missing is not None and result.get("isError"):
                # A client of 2026-07-28 must get this error (`basic/index`, "Capabilities").
                raise call.missing
            return result

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name the server in failures other than its own error answers."""
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
    def _in_flight(self, ctx: ServerContext) -> Iterator[_PendingCall]:
        call = _PendingCall(ctx)
        self._calls.append(call)
        self.last = call.caller
        try:
            yield call
        finally:
            self._calls.remove(call)
            self.used = trio.current_time()
            for question in call.questions:
                question.cancel()

    def _owner(self) -> _PendingCall | None:
        """Return the request that a message of the server belongs to; None if it is unknown."""
        callers = {call.caller for call in self._calls}
        # Of several requests of one caller the oldest: it waits for something, and short ones end.
        return self._calls[0] if len(callers) == 1 else None

    # Questions

    async def ask(self, method: str, params: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Ask the caller that a question belongs to, and return its answer.

        Raises:
            McpError: The caller is unknown, or has refused.
        """
        if self._calls:
            self._on_question()
        call = self._owner()
        if call is None:
            several = "several callers have" if self._calls else "no caller has"
            text = f"{several} a request in flight here, so it is unknown whom to ask"
            raise McpError(INVALID_REQUEST, text)
        params = _with_meta(params, params.get("_meta", {}))
        if call.ctx.envelope.revision.stateless:
            # 2026-07-28 has none; a handler that runs again would have another one.
            params.pop("elicitationId", None)
        with trio.CancelScope() as scope:
            call.questions.add(scope)
            try:
                answer: Mapping[str, JSON] = await call.ctx.relay(InputRequest(method, params))
            except McpError as error:
                # Servers request roots when a session begins, during the call of any caller: only
                # the server gets the refusal, and the call continues.
                if error.code == MISSING_CLIENT_CAPABILITY and method != ROOTS:
                    call.missing = error
                raise
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
        if notice.method != _LOG:
            self._observe_other(notice)
            return
        params, call = notice.params or {}, self._owner()
        if call is not None and params.get("level") in LOG_LEVELS:
            call.ctx.log(params["level"], params.get("data"), params.get("logger"))

    async def _set_level(self, client: Client, ctx: ServerContext) -> None:
        """Ask the server for log messages of the level of the caller, unless it sends them."""
        level = ctx.log_level
        if level is None or not client.capabilities.has("logging"):
            return
        if client is not self._leveled:  # a new connection has no level
            self._leveled, self._level = client, None
        rank = LOG_LEVELS.index(level)
        if self._level is None or rank < self._level:
            await client.set_log_level(level)
            self._level = rank


def _with_meta(params: Mapping[str, JSON], meta: object) -> JSONObject:
    """Return params without the keys of `_meta` that belong to one connection."""
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

    def __init__(self, pooled: SharedConnection) -> None:
        self._pooled = pooled

    async def handle_elicitation(self, params: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Ask the person."""
        return await self._pooled.ask(ELICIT, params)

    async def handle_sampling(self, params: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Ask the model."""
        return await self._pooled.ask(SAMPLE, params)

    async def list_roots(self) -> Mapping[str, JSON]:
        """List the roots of the caller."""
        return await self._pooled.ask(ROOTS, {})
