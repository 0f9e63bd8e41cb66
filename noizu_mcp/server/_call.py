"""The request that a handler works on, as its context sees it."""

import math
from collections.abc import Awaitable, Generator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from .._errors import LocalProtocolError, NoSessionError
from ..engine import Exchange
from ..protocol import Envelope
from ..types import LOG_LEVELS, LogLevel

if TYPE_CHECKING:
    from ._connection import Connection

_RANKS: Final[dict[str, int]] = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class _Nothing:
    """What there is to await when nothing was sent."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, None]:
        return _checkpoint().__await__()


async def _checkpoint() -> None:
    await trio.lowlevel.checkpoint()


_NOTHING: Final = _Nothing()


def _check_progress(value: Any, name: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")


@attrs.define(eq=False)
class Call:
    """One request in the hands of a handler; implements `components.Outbound`.

    Attributes:
        connection: The connection it came on.
        envelope: Its context on the wire.
        session: The session as it was when the request began.
        exchange: The request; None while a session is set up, which belongs to none.
    """

    connection: "Connection"
    envelope: Envelope
    session: Mapping[str, Any]
    exchange: Exchange | None = None
    _progress: float | None = None

    @property
    def request_id(self) -> str | int:
        """The id of the request."""
        if self.exchange is None:
            raise LocalProtocolError("init belongs to no request: there is no request id")
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
    def auth(self) -> Any:
        """The verified claims of the caller: none on a transport without authorization."""
        return None

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer: cancelled by the client, out of time, or given."""
        exchange = self.exchange
        return exchange is not None and (exchange.cancelled or exchange.answered)

    def progress(
        self, progress: float, total: float | None, message: str | None
    ) -> Awaitable[None]:
        """Send progress, if it was asked for and has increased."""
        _check_progress(progress, "progress")
        if total is not None:
            _check_progress(total, "total")
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

    def _notify(self, method: str, params: dict[str, Any]) -> Awaitable[None]:
        exchange, connection = self.exchange, self.connection
        # Handlers may run in other threads; `init`, which belongs to no request, may use some.
        if exchange is None:
            return connection.gate.run(lambda: connection.link.inform(method, params))
        return connection.gate.run(lambda: exchange.notify(method, params))

    async def put_session(self, key: str, value: Any) -> None:
        """Store a value for later requests of the session."""
        if self.envelope.revision.stateless:
            raise NoSessionError(
                "2026-07-28 has no sessions: return a handle and take it back as an argument"
            )
        await trio.lowlevel.checkpoint()
        self.connection.put_session(key, value)
