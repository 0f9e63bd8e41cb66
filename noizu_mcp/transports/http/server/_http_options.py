"""Options of serving over HTTP: paths, callers, limits."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...._limits import MIB, Limits
from ....server import BACKEND_VARIABLE, Server, read_backend
from ....telemetry import Metrics
from ._origin_check import ANY, is_host, is_origin

if TYPE_CHECKING:
    from ....auth import BearerAuth
    from ....backends import Backend

#: The default path of the protocol.
PATH: Final = "/mcp"
#: Hosts by which a browser reaches this machine locally; any port.
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")


def _is_above_zero(_: object, field: Any, value: Any) -> None:
    # In Python True is an integer, but it is not a limit. NaN fails the comparison.
    kinds = int if field.type is int else int | float
    if isinstance(value, bool) or not isinstance(value, kinds) or not value > 0:
        noun = "an integer" if field.type is int else "a number"
        raise ValueError(f"HttpLimits.{field.name} must be {noun} above 0, not {value!r}")


def _limit(default: float) -> Any:
    return attrs.field(default=default, validator=_is_above_zero)


@attrs.frozen(kw_only=True)
class HttpLimits:
    """Limits of memory and time per client over HTTP; `Limits` bounds each message.

    Attributes:
        body_time: Seconds within which the body of a request must arrive.
        sessions: Sessions with a handshake, of all clients. When all are in use, a client that has
            more of them than others loses its longest idle session. Otherwise the session
            that has been idle longest ends, if it has been idle for a minute, or the new one is
            refused (503). With a backend it bounds the sessions of all nodes together; all other
            limits are of each process.
        session_idle: Seconds without a request or an open stream after which a session ends.
        streams: Concurrent requests of one client. A client is a principal, or without
            authentication an address: all clients behind a proxy count as one.
        requests: Concurrent requests of all clients, including requests of 2025 revisions
            whose clients have disconnected.
        memory: Bytes used for all clients: requests and their values, answers and messages until
            they are written, sessions with their events, and tasks. One client may use a quarter.
        stream_life: Seconds after which the stream of an authenticated reader ends gracefully, if
            its token does not expire before. The client opens another one, and sends its token
            again.
        history: Bytes of events that one session stores for clients that resume.
        silence: Seconds without a message of the handler after which its answer becomes a stream,
            so that no proxy times out.
        keepalive: Seconds of silence on a stream after which a comment is written.
        stall: Seconds that a client may leave a part of a stream unread; then the stream is closed
            (within twice that time).
        room: Waiting bytes on one stream above which progress and log messages are dropped.
        retry: Seconds that a client should wait before it resumes a broken stream.
        grace: Seconds for running requests at the end.

    Raises:
        ValueError: A limit is not a number, or not above 0.
    """

    body_time: float = _limit(30.0)
    sessions: int = _limit(10_000)
    session_idle: float = _limit(1800.0)
    streams: int = _limit(1000)
    requests: int = _limit(10_000)
    memory: int = _limit(256 * MIB)
    stream_life: float = _limit(3600.0)
    history: int = _limit(1 * MIB)
    silence: float = _limit(1.0)
    keepalive: float = _limit(15.0)
    stall: float = _limit(30.0)
    room: int = _limit(1 * MIB)
    retry: float = _limit(1.0)
    grace: float = _limit(3.0)


def _list_of(good: Callable[[str], bool], what: str) -> Callable[[object, Any, Any], None]:
    def check(_: object, field: Any, value: Any) -> None:
        # A string is a sequence of strings, too: "localhost" would allow the hosts l, o, c and so
        # on.
        listed = isinstance(value, Sequence) and not isinstance(value, str)
        if not listed or not all(isinstance(each, str) for each in value):
            raise ValueError(f"{field.name} must be a list of strings, not {value!r}")
        for each in value:
            if each != ANY and not good(each):  # it would never match
                raise ValueError(f"{field.name} must be {what}, or *, not {each!r}")

    return check


_are_hosts: Final = _list_of(is_host, "names or addresses like mcp.example.com or [::1]:8000")
_are_origins: Final = _list_of(is_origin, "origins like https://app.example.com")


def _is_a_path(_: object, field: Any, value: Any) -> None:
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError(f"{field.name} must be a path that begins with /, not {value!r}")


def _is_a_bool(_: object, field: Any, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{field.name} must be True or False, not {value!r}")


def _are_metrics(_: object, field: Any, value: Any) -> None:
    if not isinstance(value, bool | Metrics):
        wanted = "True, False, or telemetry.Metrics of the server"
        raise ValueError(f"{field.name} must be {wanted}, not {value!r}")


def _are_limits(_: object, field: Any, value: Any) -> None:
    if isinstance(value, Limits):
        hint = "those of messages are the option limits of the server class"
        raise ValueError(f"{field.name} must be HttpLimits, not Limits: {hint}")
    if not isinstance(value, HttpLimits):
        raise ValueError(f"{field.name} must be HttpLimits, not {value!r}")


def _read_backend(value: Any) -> "str | Backend | None":
    try:
        return read_backend(value)
    except ValueError as error:
        raise ValueError(f"backend: {error}") from None


@attrs.frozen(kw_only=True)
class HttpOptions:
    """Options of serving a server over HTTP.

    Attributes:
        path: The path of the protocol.
        allowed_hosts: Allowed values of `Host`: names with or without a port; without a port, any
            port. `*` allows every host. None for `LOCAL_HOSTS`.
        allowed_origins: Allowed values of `Origin` in addition to the allowed hosts:
            `https://app.example.com`. `*` allows every origin.
        auth: Authenticates callers; None for no authentication.
        health: True to answer `/healthz` and `/readyz`.
        metrics: Answer `/metrics` in Prometheus' format (extra `prometheus`), with the checks of
            hosts and `auth`. True, or the server's `telemetry.Metrics`.
        limits: Limits of memory and time per client.
        seal_sessions: True to make session ids from the result of the handshake, sealed with the
            `state_keys` of the server. Every process with the keys can then serve each session,
            also after a restart.
        backend: What the processes that serve this server share: a `Backend`, or a URL like
            `redis://127.0.0.1:6379/0`. An empty text for one process alone. None for the option
            of the server class, or else the environment variable `NOIZU_MCP_BACKEND`.

    Raises:
        ValueError: The path does not begin with a slash; a value has another type; or a list
            contains an entry that cannot be a `Host` or `Origin`.
    """

    path: str = attrs.field(default=PATH, validator=_is_a_path)
    allowed_hosts: Sequence[str] | None = attrs.field(
        default=None, validator=attrs.validators.optional(_are_hosts)
    )
    allowed_origins: Sequence[str] = attrs.field(default=(), validator=_are_origins)
    auth: "BearerAuth | None" = None
    health: bool = attrs.field(default=False, validator=_is_a_bool)
    metrics: bool | Metrics = attrs.field(default=False, validator=_are_metrics)
    limits: HttpLimits = attrs.field(default=HttpLimits(), validator=_are_limits)
    seal_sessions: bool = attrs.field(default=False, validator=_is_a_bool)
    backend: "str | Backend | None" = attrs.field(default=None, converter=_read_backend)


def backend_of(options: HttpOptions, server: Server) -> "Backend | None":
    """Return the backend of a server that is served with these options; None for one process.

    Raises:
        BackendUnavailable: The URL of the environment is not valid.
    """
    for each in (options.backend, server.options.backend):
        if each is not None:
            return None if isinstance(each, str) else each  # the only text is the empty one
    try:
        found = read_backend(os.environ.get(BACKEND_VARIABLE, ""))
    except ValueError as error:
        from ....backends import BackendUnavailable

        raise BackendUnavailable(f"{BACKEND_VARIABLE}: {error}") from None
    return None if isinstance(found, str) else found
