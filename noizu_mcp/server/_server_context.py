"""Contexts: the common part of requests and sessions, and the context of a session."""

import abc
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from .. import types
from .._errors import (
    LocalProtocolError,
    NoSessionError,
)
from .._util import UNSET, Unset
from .._value import JSONObject
from ..components import Context
from ..engine import ClientShare, Delivery
from ..protocol import Envelope
from ..types import (
    LOG_LEVELS,
    Implementation,
    InputRequest,
    InputRequired,
    LogLevel,
    ToolResult,
)
from .calls._invoke import read_any, within
from .calls._scope_checks import demand
from .policies._policy_set import is_guarded

if TYPE_CHECKING:
    from .._errors import Denied
    from ..components import Capability
    from ..events import Recording
    from ..types import ClientCapabilities, Principal, ReadResult, RequireScopes
    from ._request_context import RequestContext
    from ._running import RunningServer
    from ._session import Session
    from .calls._policy_checks import Admitted
    from .policies._capability import IssuedCapability

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
# The awaitable of a notice that was not sent: awaiting it is a checkpoint, as it always is.
_NOTHING: Final = Delivery(trio.lowlevel.checkpoint)
_READ: Final = "read_resource"
_RANKS: Final[dict[str, int]] = {level: rank for rank, level in enumerate(LOG_LEVELS)}


def check_number(value: Any, name: str) -> None:
    """Refuse anything but a finite number; a bool is none.

    Raises:
        ValueError: It is something else; the text names the argument.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")


class ServerContext(Context):
    """The part of a context that requests and sessions have in common.

    Attributes:
        running: The server while it is served.
        envelope: The metadata of the request.
        parked: True while its handler waits for a retry: the request has its answer.
        dispatcher: The session; None for a request of 2026-07-28 over HTTP, which has none.
        chain: The tools whose calls this one is nested in, the outermost first.
        admitted: The call that policies have let through to an override of the server.
        passed_on: True once the override has passed it on.
        held: The capability that the call was made under; None for that of a request.
        takes_task: Tells whether `start_task` begins a task, or has begun it: the client takes one.
            Only requests have it.
        provided: The lists that the caller sees, where providers add to them; None: they do not.
        recording: The recording of the request or task, for listeners; None: there is none.
    """

    __slots__ = ()

    running: "RunningServer"
    envelope: Envelope
    dispatcher: "Session | None"
    parked: bool = False
    chain: tuple[str, ...] = ()
    admitted: "Admitted | None" = None
    passed_on: bool = False
    held: "IssuedCapability | None" = None
    takes_task: Callable[[], bool]
    provided: Mapping[str, Any] | None = None
    recording: "Recording | None" = None

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
        return self.running.server.threads.of(self.envelope.origin.client)

    def require(self, scopes: "RequireScopes | str | Sequence[str]") -> None:
        """Go on only if the caller holds the scopes; see `Context`."""
        if not isinstance(scopes, types.RequireScopes):
            scopes = types.RequireScopes(*((scopes,) if isinstance(scopes, str) else scopes))
        self.check_scopes(scopes)

    def check_scopes(self, scopes: "RequireScopes") -> None:
        """Check that the caller holds the scopes.

        Raises:
            InsufficientScope: The caller does not.
        """
        scopes.check(self.auth)

    def note_coercion(self) -> None:
        """Note for listeners that the arguments of a call had text for other types."""

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Check the numbers; without a request there is no progress to send."""
        check_number(progress, "progress")
        if total is not None:
            check_number(total, "total")
        return _NOTHING

    @property
    def log_level(self) -> LogLevel | None:
        """The least level of log messages that the client wants; None: it wants none."""
        level = self.envelope.log_level
        if self.dispatcher is not None and not self.envelope.revision.stateless:
            # Before 2026-07-28 `logging/setLevel` holds at once, also for requests that run.
            level = self.dispatcher.peer.handshake.log_level
        return cast("LogLevel | None", level)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message, if the client wants its level; see `Context`."""
        rank = _RANKS.get(level)
        if rank is None:
            raise ValueError(f"no log level {level!r}; use one of {', '.join(LOG_LEVELS)}")
        least = self.log_level
        if least is None or rank < _RANKS[least]:
            return _NOTHING
        params: JSONObject = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        return self._send("notifications/message", params)

    @abc.abstractmethod
    def _send(self, method: str, params: Mapping[str, Any]) -> Awaitable[None]:
        """Send a notice, from any thread."""

    def release_stream(self, retry_after: float = 1.0) -> Awaitable[None]:
        """Check the number; without a request there is no stream to release."""
        check_number(retry_after, "retry_after")
        if retry_after < 0:
            raise ValueError(f"retry_after must not be negative, as {retry_after!r} is")
        return _NOTHING

    @abc.abstractmethod
    async def retry(self, required: InputRequired) -> bool:
        """Ask the questions of an `InputRequired` that a handler returned.

        Args:
            required: The return value of the handler.

        Returns:
            True when the answers are here and the handler is to be run again; False when they
            come with another request, and this one has its answer.
        """

    def _notify_session(self, kind: str) -> None:
        """Tell this session that a list changed; on 2026-07-28 nobody; see `Notify`."""
        if self.dispatcher is not None and not self.envelope.revision.stateless:
            if self.running.server.registry.providers is not None:
                self.running.provider_lists.forget(self.dispatcher)
            self.running.portal.run_soon(partial(self.dispatcher.feed.report, kind))

    async def put_session(self, key: str, value: Any) -> None:
        """Store a value for later requests of the session; see `Context`."""
        if self.dispatcher is None or self.envelope.revision.stateless:
            raise NoSessionError(
                "2026-07-28 has no sessions: return a handle and take it back as an argument"
            )
        await trio.lowlevel.checkpoint()
        # The snapshots of running requests stay as they are.
        self.dispatcher.put_value(key, value)

    @property
    def around(self) -> tuple[str, ...]:
        """The tools whose calls a call of this handler is nested in."""
        return self.chain

    def refusal_of(self, name: str, arguments: Mapping[str, Any]) -> "Denied | None":
        """Tell why the capability does not allow a call of this handler; None if it does."""
        return None if self.held is None else self.held.refusal(name, arguments)

    @property
    def capability(self) -> "IssuedCapability":
        """The capability of the call; see `Context`."""
        return self.held or self.running.server.capability_issuer.issue(self.auth)

    async def open_capability(self, text: str) -> "IssuedCapability":
        """Open the text of a capability; see `Context`."""
        from .calls._nested import open_text

        return await open_text(self, text)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        capability: "Capability | str | None" = None,
    ) -> ToolResult:
        """Call another tool of the server; see `Context`."""
        from .calls._nested import call_nested

        return await call_nested(self, name, arguments, capability)

    async def relay(self, request: InputRequest) -> Any:
        """Ask the client a question that another server has asked.

        Any task may call it while the handler runs.

        Args:
            request: The question, as the other server sent it.

        Returns:
            The answer, unchecked.

        Raises:
            McpError: The client refused, or cannot take the question.
            ToolError: The client of a tool cannot take it.
            RequestTimeout: The client did not answer in time.
            LocalProtocolError: The request can ask nothing: it is a completion.
        """
        return await self._ask(request, lambda answer: answer, UNSET)

    async def read_resource(self, uri: str) -> "ReadResult":
        """Read a resource of the server in the name of this request; see `Context`."""
        server = self.running.server
        await server.registry.prepare(self, "resources", uri)
        uri = server.registry.canonical(uri, self)
        found = server.registry.find_resource(uri, self)
        spec = None if found is None else found[0]
        known = spec is not None or server.registry.overrides(_READ)
        if known and (server.policies.chains or is_guarded(spec)):
            from .calls._policy_checks import admit_within

            if spec is not None:
                demand(spec, self)
            await admit_within("resource", uri, EMPTY, spec, cast("RequestContext", self))
        read = partial(read_any, server, uri, found, self)
        result = await within(server, spec, read)
        if isinstance(result, InputRequired):
            raise TypeError(
                f"{uri} asks with InputRequired, which only a client can answer; let it await"
                " ctx.elicit, ctx.sample or ctx.list_roots"
            )
        return result


class SessionContext(ServerContext):
    """The context of `init`, and of `unsubscribe` at the end of a session.

    Args:
        running: The server while it is served.
        envelope: The metadata of the session.
        dispatcher: The session.
    """

    __slots__ = (
        "admitted",
        "dispatcher",
        "envelope",
        "passed_on",
        "provided",
        "running",
        "session",
    )

    completion_arguments: Mapping[str, str] = EMPTY
    input_responses: Mapping[str, Any] = EMPTY
    request_state: str | None = None
    cancelled: bool = False

    def __init__(self, running: "RunningServer", envelope: Envelope, dispatcher: "Session") -> None:
        self.running = running
        self.envelope = envelope
        self.dispatcher: Session = dispatcher
        self.session: Mapping[str, Any] = dispatcher.values
        self.provided: Mapping[str, Any] | None = None
        if running.server.registry.providers is not None:
            self.provided = running.provider_lists.known_to(dispatcher)
        self.admitted = None
        self.passed_on = False

    @property
    def request_id(self) -> str | int:
        """No id: raises."""
        raise _no_request("there is no request id")

    def _send(self, method: str, params: Mapping[str, Any]) -> Awaitable[None]:
        send = partial(self.dispatcher.send_notice, method, params)
        return self.running.portal.run(send)

    async def _ask(
        self, request: InputRequest, read: Callable[[Any], Any], timeout: float | Unset | None
    ) -> Any:
        raise _no_request("there is nobody to ask")

    async def step(self, function: Callable[..., Any], *args: Any) -> Any:
        """Raise: only requests have steps."""
        raise _no_request("there is nobody to ask")

    async def retry(self, required: InputRequired) -> bool:
        """Raise: only requests can ask."""
        raise _no_request("there is nobody to ask")

    @property
    def capability(self) -> "IssuedCapability":
        """Raise: only requests have capabilities."""
        raise _no_request("it has no capability")

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        capability: "Capability | str | None" = None,
    ) -> ToolResult:
        """Raise: only requests call tools."""
        raise _no_request("it calls no tools")

    async def start_task(self) -> None:
        """Raise: only tools have tasks."""
        raise no_task()


def _no_request(text: str) -> LocalProtocolError:
    return LocalProtocolError(f"init, and the end of a session, belong to no request: {text}")


def no_task() -> LocalProtocolError:
    """Make the error for a `start_task` outside of a tool with `starts_task`."""
    return LocalProtocolError("only a tool with starts_task=True begins a task by itself")
