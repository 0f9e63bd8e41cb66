"""The request that a handler works on, as its context sees it."""

import math
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from .._errors import LocalProtocolError, McpError, NoSessionError, ToolError
from .._util import Unset
from ..components import Context, adapt_request, needed_by, read_by_hand
from ..engine import Exchange
from ..jsonrpc import INVALID_REQUEST, MISSING_CLIENT_CAPABILITY
from ..protocol import Envelope
from ..types import (
    LOG_LEVELS,
    InputRequest,
    InputRequired,
    LogLevel,
    Principal,
    ReadResult,
    RequireScopes,
)
from ._calls import read_any, within
from ._rounds import LiveAsker, ReplayAsker, make_asker, run_step

if TYPE_CHECKING:
    from ._connection import Connection

_RANKS: Final[dict[str, int]] = {level: rank for rank, level in enumerate(LOG_LEVELS)}


#: What may be answered with questions (2026-07-28 `basic/patterns/mrtr`), and so in every era.
ASKING: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


class _Nothing:
    """What there is to await when nothing was sent."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, None]:
        return _checkpoint().__await__()


async def _checkpoint() -> None:
    await trio.lowlevel.checkpoint()


_NOTHING: Final = _Nothing()


def _check_number(value: Any, name: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")


@attrs.define(eq=False, repr=False)
class Call:
    """One request in the hands of a handler; implements `components.Outbound`.

    Attributes:
        connection: The connection it came on.
        envelope: Its context on the wire.
        session: The session as it was when the request began.
        exchange: The request; None where a session begins and ends, which belongs to none.
        completion_arguments: In a completion: the arguments that are filled in already.
        input_responses: The answers to what the handler asked by hand.
        request_state: The state of a handler that asks by hand.
        asker: Asks the client, once something was asked.
        begin_task: Begins the task of a tool that does so by itself.
    """

    connection: "Connection"
    envelope: Envelope
    session: Mapping[str, Any]
    exchange: Exchange | None = None
    completion_arguments: Mapping[str, str] = MappingProxyType({})
    input_responses: Mapping[str, Any] = MappingProxyType({})
    request_state: str | None = None
    asker: LiveAsker | ReplayAsker | None = None
    begin_task: "BeginTask | None" = None
    _progress: float | None = None

    @property
    def request_id(self) -> str | int:
        """The id of the request."""
        if self.exchange is None:
            raise LocalProtocolError(
                "init, and the end of a session, belong to no request: there is no request id"
            )
        return self.exchange.id

    @property
    def protocol_version(self) -> str:
        """The revision that it is served under."""
        return self.envelope.revision.name

    @property
    def client_info(self) -> Mapping[str, Any] | None:
        """Who the client says it is."""
        return self.envelope.client_info

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the client can do."""
        return self.envelope.client_capabilities

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta` of the request."""
        return MappingProxyType(dict(self.envelope.meta))

    @property
    def transport(self) -> str:
        """How it came."""
        return self.connection.transport

    @property
    def server(self) -> Any:
        """Who serves it."""
        return self.connection.server

    @property
    def state(self) -> Any:
        """What the lifespan yielded."""
        return self.connection.state

    @property
    def auth(self) -> Principal | None:
        """Who is calling; None where nobody verifies it."""
        return self.envelope.origin.principal

    def require(self, requires: RequireScopes) -> None:
        """Go on only if the caller holds scopes.

        Raises:
            InsufficientScope: The caller does not.
        """
        requires.check(self.auth)

    @property
    def threads(self) -> trio.CapacityLimiter:
        """What bounds its sync handlers."""
        limiter: trio.CapacityLimiter = self.server.threads
        return limiter

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer: cancelled by the client, out of time, or given."""
        exchange = self.exchange
        return exchange is not None and (exchange.cancelled or exchange.answered)

    def progress(
        self, progress: float, total: float | None, message: str | None
    ) -> Awaitable[None]:
        """Send progress, if it was asked for and has increased."""
        _check_number(progress, "progress")
        if total is not None:
            _check_number(total, "total")
        token = self.envelope.progress_token
        last = self._progress
        if token is None or (last is not None and progress <= last):
            return _NOTHING
        self._progress = progress
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        return self._notify("notifications/progress", params)

    def log(self, level: LogLevel, data: Any, logger: str | None) -> Awaitable[None]:
        """Send a log message, if the client wants its level."""
        rank = _RANKS.get(level)
        if rank is None:
            raise ValueError(f"no log level {level!r}; use one of {', '.join(LOG_LEVELS)}")
        least = self.connection.log_level(self.envelope)
        if least is None or rank < _RANKS[least]:
            return _NOTHING
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        return self._notify("notifications/message", params)

    def release_stream(self, retry_after: float) -> Awaitable[None]:
        """Let the client come back for the rest."""
        _check_number(retry_after, "retry_after")
        if retry_after < 0:
            raise ValueError(f"retry_after must not be negative, as {retry_after!r} is")
        exchange = self.exchange
        if exchange is not None:
            self.connection.gate.run(lambda: exchange.release(retry_after))
        return _NOTHING

    def _notify(self, method: str, params: dict[str, Any]) -> Awaitable[None]:
        exchange, connection = self.exchange, self.connection
        # Handlers may run in other threads; `init`, which belongs to no request, may use some.
        if exchange is None:
            return connection.gate.run(lambda: connection.desk.inform(method, params))
        return connection.gate.run(lambda: exchange.notify(method, params))

    async def put_session(self, key: str, value: Any) -> None:
        """Store a value for later requests of the session."""
        if self.envelope.revision.stateless:
            raise NoSessionError(
                "2026-07-28 has no sessions: return a handle and take it back as an argument"
            )
        await trio.lowlevel.checkpoint()
        self.connection.put_session(key, value)

    @property
    def _rounds(self) -> LiveAsker | ReplayAsker:
        if self.exchange is None:
            raise LocalProtocolError(
                "init, and the end of a session, belong to no request: there is nobody to ask"
            )
        if self.exchange.request.method not in ASKING:
            raise LocalProtocolError("only tools, prompts and resources can ask, or run steps")
        if self.asker is None:
            self.asker = make_asker(self.connection, self.exchange)
        return self.asker

    def open_state(self) -> None:
        """Take up what an earlier round left, before the handler runs.

        Raises:
            McpError: The state is not good for this request (-32602).
        """
        rounds = self._rounds
        self.input_responses, self.request_state = rounds.responses, rounds.state

    def _prepare(self, request: InputRequest) -> InputRequest:
        """Write a question in the words of the revision; the client must be able to take it.

        Raises:
            McpError: It cannot; see `_require`.
            ToolError: The same.
        """
        self._require(needed_by(request))
        adapted = adapt_request(request, self.protocol_version)
        if adapted is None:
            text = "it has no form field for a choice of several values"
            raise self._refusal(f"Not supported by revision {self.protocol_version}: {text}")
        return adapted

    def _require(self, needs: Mapping[str, Any]) -> None:
        """Check that the client can do something, before anything is sent.

        Raises:
            McpError: It cannot: -32021 on 2026-07-28 (`basic/index`, error codes).
            ToolError: It cannot, and the request is a tool call of an earlier revision.
        """
        if all(self._offers(*need) for need in needs.items()):
            return
        if self.envelope.revision.stateless:
            data = {"requiredCapabilities": dict(needs)}
            text = "Missing required client capability"
            raise McpError(MISSING_CLIENT_CAPABILITY, text, data)
        raise self._refusal(f"Capability not supported by the client: {_in_words(needs)}")

    def _refusal(self, text: str) -> McpError | ToolError:
        if self.exchange is not None and self.exchange.request.method == "tools/call":
            return ToolError(text)
        return McpError(INVALID_REQUEST, text)

    def _offers(self, name: str, parts: Mapping[str, Any]) -> bool:
        """Presence counts; a bare elicitation capability means forms (client/elicitation)."""
        offered = self.client_capabilities.get(name)
        if not isinstance(offered, Mapping):
            return False
        if name == "elicitation" and not parts:
            # Whatever the client says.
            return self.envelope.revision.elicitation and (not offered or "form" in offered)
        # Whatever the client says.
        return (not parts or self.envelope.revision.modes) and all(p in offered for p in parts)

    async def ask(
        self, request: InputRequest, read: Callable[[Any], Any], timeout: float | Unset | None
    ) -> Any:
        """Ask the client, in the way of its era."""
        return await self._rounds.ask(self._prepare(request), read, timeout)

    async def step(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a side effect once."""
        return await run_step(self._rounds, function, args)

    async def start_task(self) -> None:
        """Begin the task of a tool that does so by itself."""
        if self.begin_task is None:
            raise LocalProtocolError("only a tool with starts_task=True begins a task by itself")
        await trio.lowlevel.checkpoint()
        await self.begin_task(self)

    async def read_resource(self, uri: str, context: Context) -> ReadResult:
        """Read a resource of the server in the name of this request."""
        found = self.server.registry.find_resource(uri)
        spec = found and found[0]
        read = partial(read_any, self.server, uri, found, context)
        result = await within(self.server, spec, read)
        if isinstance(result, InputRequired):
            raise TypeError(
                f"{uri} asks with InputRequired, which only a client can answer; let it await"
                " ctx.elicit, ctx.sample or ctx.list_roots"
            )
        return result

    async def retry(self, required: InputRequired) -> bool:
        """Ask what a handler asked by hand.

        Returns:
            True when the answers are there and the handler is to be run again; False when they
            come with another request, and this one has its answer.
        """
        asked = required.requests
        if not self.envelope.revision.modes:  # its forms have words of their own
            asked = {key: read_by_hand(each) for key, each in asked.items()}
        asked = {key: self._prepare(each) for key, each in asked.items()}
        answers = await self._rounds.retry(attrs.evolve(required, requests=asked))
        if answers is None:
            return False
        self.input_responses, self.request_state = answers
        return True


#: Begins the task of a call; does not come back where there is one to begin.
BeginTask = Callable[[Call], Awaitable[None]]


def _in_words(needs: Mapping[str, Any]) -> str:
    return ", ".join(".".join((name, *parts)) for name, parts in needs.items())
