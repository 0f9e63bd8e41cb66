"""`ServerContext`: the context that handlers get, and what it needs from its request.

There is one class of context. The contexts of nested calls, mounted servers, handlers on asyncio
and sessions differ in their arguments only. State of the request in flight is in the request, state
of the server is in the running server, and a context holds the state of one call.
"""

import copy
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from .. import types
from .._errors import LocalProtocolError, NoSessionError
from .._util import UNSET, Returned, Unset, is_number
from .._value import JSONObject
from ..components import Context, Notify
from ..engine import Delivery
from ..protocol import Envelope
from ..types import (
    LOG_LEVELS,
    Implementation,
    InputRequest,
    LogLevel,
    ToolResult,
)
from ._contracts import (
    EMPTY,
    AsyncioSide,
    CallHandles,
    HandledRequest,
    HandledSession,
    MountedView,
    Running,
)
from .threads._fair_limiter import ClientShare

if TYPE_CHECKING:
    from .._errors import Denied
    from ..components import Capability
    from ..events import EventEmitter
    from ..types import ClientCapabilities, Principal, ReadResult, RequireScopes
    from .policies._capability import IssuedCapability
    from .policies._policy import CallKind


#: The awaitable of a notification that was not sent. Awaiting it is a checkpoint.
NOT_SENT: Final = Delivery(trio.lowlevel.checkpoint)
_RANKS: Final[dict[str, int]] = {level: rank for rank, level in enumerate(LOG_LEVELS)}


def check_number(value: object, name: str) -> None:
    """Check that a value is a finite number, and not a bool.

    Raises:
        ValueError: The value is something else. The text names the argument.
    """
    if not is_number(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")


class _Sent:
    """A notification sent by asyncio code. Awaiting it waits on the trio side for room."""

    __slots__ = ("_delivery", "_side")

    def __init__(self, side: AsyncioSide, delivery: Awaitable[None]) -> None:
        self._side = side
        self._delivery = delivery

    def __await__(self) -> Generator[Any, Any, None]:
        return self._side.run_trio(self._wait).__await__()

    async def _wait(self) -> None:
        await self._delivery


class ServerContext(Context[Any]):
    """The context of one call: of a request, a task, a nested call, or code of a session.

    Args:
        request: The request, task or session of the context.
        running: The server whose handler gets the context: the request's server, or a mounted one.
        like: A context of the same request, to copy the other values from; None for the first one.

    Attributes:
        request: See Args.
        running: See Args.
        session: The values of the session at the time the context was made.
        chain: The tools whose calls this one is nested in, outermost first.
        tool: The name of the called tool; None if this is not a tool call.
        held: The capability of a nested call; None for the request's own call.
        handles: The handles of the call, or of the one around it; None for none.
        admitted: The call that policies have admitted to an override, until it passes the call on.
        provided: The lists that the caller sees, if providers add to them; else None.
        mounted: The names of the mounted server; None for a server that is not mounted.
        side: The asyncio side of a handler on asyncio; None on trio.
    """

    __slots__ = (
        "_emitter",
        "admitted",
        "chain",
        "handles",
        "held",
        "mounted",
        "provided",
        "request",
        "running",
        "session",
        "side",
        "tool",
    )

    def __init__(
        self,
        request: HandledRequest,
        running: Running,
        like: "ServerContext | None" = None,
    ) -> None:
        self.request = request
        self.running = running
        self.admitted: tuple[CallKind, str, Mapping[str, Any]] | None = None
        self.side: AsyncioSide | None = None
        self.mounted: MountedView | None = None
        self.provided: Mapping[str, Any] | None = None
        if like is None:
            session = request.dispatcher
            # 2026-07-28 forbids state between requests, also on one pipe.
            self.session: Mapping[str, Any] = EMPTY
            if session is not None and not request.envelope.revision.stateless:
                self.session = session.values
            self.chain: tuple[str, ...] = ()
            self.tool: str | None = None
            self.held: IssuedCapability | None = None
            self.handles: CallHandles | None = None
            self._emitter: EventEmitter | None = None
        else:
            self.session = like.session
            self.chain, self.tool, self.held = like.chain, like.tool, like.held
            self.handles = like.handles
            self._emitter = like.emitter

    def nested(
        self, name: str, held: "IssuedCapability", emitter: "EventEmitter | None"
    ) -> "ServerContext":
        """Make the context of a call that the handler makes.

        Args:
            name: The name of the tool.
            held: The capability of the call.
            emitter: Its emitter; None without listeners.
        """
        inner = ServerContext(self.request, self.running, self)
        inner.provided = self.provided
        inner.chain, inner.tool, inner.held = self.around, name, held
        if emitter is not None:
            inner._emitter = emitter
        return inner

    def of_mounted(self, running: Running, mounted: MountedView) -> "ServerContext":
        """Make the context of a mounted server.

        Args:
            running: The mounted server while it is served.
            mounted: Its names.
        """
        inner = ServerContext(self.request, running, self)
        inner.mounted = mounted
        return inner

    def on_asyncio(self, side: AsyncioSide) -> "ServerContext":
        """Make the same context for a handler on asyncio."""
        inner = ServerContext(self.request, self.running, self)
        inner.provided, inner.mounted, inner.side = self.provided, self.mounted, side
        if self.handles is not None:
            self.handles.use_side(side)
        return inner

    def with_handles(self, handles: "CallHandles") -> "ServerContext":
        """Make the same context for a handler that takes handles."""
        inner = copy.copy(self)
        inner.handles = handles
        return inner

    def let_through(self, kind: "CallKind", name: str, arguments: Mapping[str, Any]) -> None:
        """Record that the policies have admitted a call: an override may pass it on, once."""
        # A copy: the override may change the mapping.
        self.admitted = kind, name, copy.deepcopy(dict(arguments))

    def pass_on(self, kind: "CallKind", name: str, arguments: Mapping[str, Any]) -> bool:
        """Tell whether an override passes on the admitted call unchanged; True only once."""
        admitted, self.admitted = self.admitted, None
        return admitted == (kind, name, arguments)

    def continue_from(self, other: "ServerContext") -> None:
        """Take over the admitted call of the context whose call a task continues."""
        self.admitted = other.admitted

    async def _on_trio(
        self, function: Callable[..., Awaitable[Returned]], *args: object, **options: object
    ) -> Returned:
        if self.side is None:
            return await function(*args, **options)
        return await self.side.run_trio(partial(function, *args, **options))

    def _sent(self, delivery: Awaitable[None]) -> Awaitable[None]:
        return delivery if self.side is None else _Sent(self.side, delivery)

    # The request

    @property
    def envelope(self) -> Envelope:
        """The metadata of the request."""
        return self.request.envelope

    @property
    def dispatcher(self) -> HandledSession | None:
        """The session; None for a request of 2026-07-28 over HTTP."""
        return self.request.dispatcher

    @property
    def request_id(self) -> str | int:
        """The id of the request."""
        return self.request.id

    @property
    def cancelled(self) -> bool:
        """True once the peer expects no answer."""
        return self.request.cancelled

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """The answers to the questions of a handler that asks by hand."""
        return self.request.input_responses

    @property
    def request_state(self) -> str | None:
        """The state of a handler that asks by hand."""
        return self.request.request_state

    @property
    def completion_arguments(self) -> Mapping[str, str]:
        """In a completion: the arguments that are filled in already."""
        return self.request.completion_arguments

    @property
    def emitter(self) -> "EventEmitter | None":
        """The emitter of the call; None without listeners."""
        return self._emitter or self.request.emitter

    @property
    def protocol_version(self) -> str:
        """The name of the revision."""
        return self.envelope.revision.name

    @property
    def client_info(self) -> Implementation | None:
        """The implementation that the client declares; never proof of identity (`basic/index`)."""
        info = self.envelope.client_info
        return None if info is None else Implementation.from_wire(info, "clientInfo")

    @property
    def client_capabilities(self) -> "ClientCapabilities":
        """The capabilities that the client declares."""
        # Named in full, the class loads when it is first asked for.
        wire = self.envelope.client_capabilities
        return types.ClientCapabilities.from_wire(wire, "capabilities")

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta` of the request."""
        return MappingProxyType(dict(self.envelope.meta))

    @property
    def transport(self) -> str:
        """`stdio`, `http` or `memory`."""
        return self.running.transport

    @property
    def server(self) -> Any:
        """The server."""
        return self.running.server

    @property
    def state(self) -> Any:
        """The value that the lifespan yielded."""
        return self.running.state

    @property
    def auth(self) -> "Principal | None":
        """The verified caller."""
        return self.envelope.origin.principal

    @property
    def threads(self) -> ClientShare:
        """The threads of sync handlers, as this client may use them."""
        return self.request.threads

    def require(self, scopes: "RequireScopes | str | Sequence[str]") -> None:
        """Check that the caller holds the scopes; see `Context`."""
        if not isinstance(scopes, types.RequireScopes):
            scopes = types.RequireScopes(*((scopes,) if isinstance(scopes, str) else scopes))
        self.request.check_scopes(scopes)

    def note_coercion(self) -> None:
        """Record for listeners that some text arguments were converted to other types."""
        if self.emitter is not None:
            self.emitter.coerced = True

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Send progress, if the client asked for it and it has increased; see `Context`."""
        check_number(progress, "progress")
        if total is not None:
            check_number(total, "total")
        return self._sent(self.request.send_progress(progress, total, message))

    @property
    def log_level(self) -> LogLevel | None:
        """The minimum level of log messages that the client wants; None if it wants no messages."""
        level = self.envelope.log_level
        if self.dispatcher is not None and not self.envelope.revision.stateless:
            # Before 2026-07-28 `logging/setLevel` takes effect at once, also for running requests.
            level = self.dispatcher.log_level
        return cast("LogLevel | None", level)

    def log(self, level: LogLevel, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message, if the client wants its level; see `Context`."""
        rank = _RANKS.get(level)
        if rank is None:
            raise ValueError(f"no log level {level!r}; use one of {', '.join(LOG_LEVELS)}")
        least = self.log_level
        if least is None or rank < _RANKS[least]:
            return self._sent(NOT_SENT)
        params: JSONObject = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        return self._sent(self.request.send("notifications/message", params))

    def release_stream(self, retry_after: float = 1.0) -> Awaitable[None]:
        """Let the client reconnect for the rest; see `Context`."""
        check_number(retry_after, "retry_after")
        if retry_after < 0:
            raise ValueError(f"retry_after must not be negative, as {retry_after!r} is")
        self.request.end_stream(retry_after)
        return self._sent(NOT_SENT)

    @property
    def notify(self) -> Notify:
        """Sends changes to all clients of the server, or to the client of this session only."""
        return Notify(self.running.server, self.notify_session)

    def notify_session(self, kind: str) -> None:
        """Send the session a list change; does nothing on 2026-07-28. See `Notify`."""
        if self.dispatcher is None or self.envelope.revision.stateless:
            return
        self.running.forget_lists(self.dispatcher)
        if self.mounted is None:
            self.dispatcher.report_change(kind)
        else:
            self.mounted.notify_session(kind)

    async def put_session(self, key: str, value: object) -> None:
        """Store a value for later requests of the session; see `Context`."""
        await self._on_trio(self._put_session, key, value)

    async def _put_session(self, key: str, value: object) -> None:
        if self.dispatcher is None or self.envelope.revision.stateless:
            raise NoSessionError(
                "2026-07-28 has no sessions: return a handle and take it back as an argument"
            )
        # The snapshots of running requests do not change.
        await self.dispatcher.store_value(key, value)

    async def save(self, handle: object) -> None:
        """Store a handle at once; see `Context`."""
        await self._on_trio(self.request.running.handles.save, self, handle)

    # Questions and tasks

    async def _ask(
        self, request: InputRequest, read: Callable[[Any], Any], timeout: float | Unset | None
    ) -> Any:
        return await self._on_trio(self.request.ask, request, read, timeout)

    async def relay(self, request: InputRequest) -> Any:
        """Ask the client a question that another server asked.

        Any task may call it while the handler runs.

        Args:
            request: The question, as the other server sent it.

        Returns:
            The answer, not validated.

        Raises:
            McpError: The client refused, or does not support the question.
            ToolError: The client of a tool does not support the question.
            RequestTimeout: The client did not answer in time.
            LocalProtocolError: The request cannot ask: it is a completion.
        """
        return await self._ask(request, lambda answer: answer, UNSET)

    async def step(self, function: Callable[..., Any], *args: object) -> Any:
        """Run a side effect once; see `Context`."""
        if self.side is not None:
            function = self.side.from_trio(function)
        return await self._on_trio(self.request.step, function, *args)

    async def start_task(self) -> None:
        """Begin the task of a tool that begins it itself; see `Context`."""
        if self.held is not None:
            # The request belongs to the outer handler.
            await self._on_trio(trio.lowlevel.checkpoint)
            return
        task_start = self.request.task_start
        if task_start is None or not task_start.begins_itself:
            raise LocalProtocolError("only a tool with starts_task=True begins a task by itself")
        await self._on_trio(task_start.begin)

    @property
    def attempt(self) -> int:
        """The number of this run of a task, from 1; see `Context`."""
        return self.request.attempt

    def takes_task(self) -> bool:
        """Tell whether `start_task` begins a task, or has begun it: the client accepts one."""
        task_start = self.request.task_start
        return self.held is None and task_start is not None and task_start.takes_task()

    # Calls

    @property
    def around(self) -> tuple[str, ...]:
        """The chain of tools for a nested call of this handler."""
        return self.chain if self.tool is None else (*self.chain, self.tool)

    def refusal_of(self, name: str, arguments: Mapping[str, Any]) -> "Denied | None":
        """Return why the capability forbids a call of this handler; None if it allows the call."""
        if self.mounted is not None:
            return self.mounted.refusal_of(name, arguments)
        return None if self.held is None else self.held.refusal(name, arguments)

    @property
    def capability(self) -> "Capability":
        """The capability of the call; see `Context`."""
        if self.mounted is not None:
            return self.mounted.capability
        self.request.need("it has no capability")
        return self.held or self.running.server.capability_issuer.issue(self.auth)

    async def open_capability(self, text: str) -> "Capability":
        """Open the text of a capability; see `Context`."""
        if self.side is not None:
            return await self.side.run_trio(partial(self.side.ctx.open_capability, text))
        if self.mounted is not None:
            return await self.mounted.open_capability(text)
        return await self.running.open_text(self, text)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        capability: "Capability | str | None" = None,
    ) -> ToolResult:
        """Call another tool of the server; see `Context`."""
        if self.side is not None:
            call = self.side.ctx.call_tool
            return await self.side.run_trio(partial(call, name, arguments, capability=capability))
        if self.mounted is not None:
            return await self.mounted.call_tool(name, arguments, capability)
        self.request.need("it calls no tools")
        return await self.running.call_nested(self, name, arguments, capability)

    async def read_resource(self, uri: str) -> "ReadResult":
        """Read a resource of the server on behalf of this request; see `Context`."""
        if self.side is not None:
            return await self.side.run_trio(partial(self.side.ctx.read_resource, uri))
        return await self.running.read_within(self, uri)
