"""What is served over HTTP, to whom, and within which bounds."""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from ..._limits import MIB

#: Hosts that a browser on this machine uses for it; any port.
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")


def _positive(_: object, field: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ValueError(f"HttpLimits.{field.name} must be a number above 0, not {value!r}")


def _limit(default: float) -> Any:
    return attrs.field(default=default, validator=_positive)


@attrs.frozen(kw_only=True)
class HttpLimits:
    """What a client can make the HTTP side hold or wait for. Messages have `Limits`, too.

    Attributes:
        body_time: Seconds in which the body of a request must have come.
        sessions: Sessions with a handshake, over all clients. Past it, the one that has been idle
            longest makes room, if that is at least a minute; else the new one is refused (503).
        session_idle: Seconds without a request or an open stream after which a session ends.
        streams: Answers of one session that are open at once, and of all 2026-07-28 requests.
        history: Bytes of events that one session keeps for clients that come back for them.
        keepalive: Seconds of silence on a stream after which a comment is written.
        stall: Seconds that a client may leave a part of a stream unread; then it loses the stream.
        room: Bytes waiting on one stream above which progress and log messages are dropped.
        retry: Seconds that a client is told to wait before it comes back to a broken stream.
        grace: Seconds that running requests get at the end.

    Raises:
        ValueError: A limit is no number, or not above 0.
    """

    body_time: float = _limit(30.0)
    sessions: int = _limit(10_000)
    session_idle: float = _limit(1800.0)
    streams: int = _limit(1000)
    history: int = _limit(1 * MIB)
    keepalive: float = _limit(15.0)
    stall: float = _limit(30.0)
    room: int = _limit(1 * MIB)
    retry: float = _limit(1.0)
    grace: float = _limit(5.0)


@attrs.frozen(kw_only=True)
class HttpOptions:
    """How a server is served over HTTP.

    Attributes:
        path: The one path of the protocol.
        allowed_hosts: Values of `Host` that are served: names with or without a port; without one,
            any port. `*` serves every host. None: `LOCAL_HOSTS`.
        allowed_origins: Values of `Origin` that are served beside the allowed hosts themselves:
            `https://app.example.com`. `*` serves every origin.
        auth: Checks who is calling; None: anybody may.
        health: Answer `/healthz` and `/readyz`.
        limits: What a client can make us hold or wait for.
    """

    path: str = "/mcp"
    allowed_hosts: Sequence[str] | None = None
    allowed_origins: Sequence[str] = ()
    auth: Any = None
    health: bool = False
    limits: HttpLimits = HttpLimits()
