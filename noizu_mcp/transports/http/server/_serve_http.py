"""Serving over HTTP: the application of a server and its host, from start to end."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Unpack

import attrs
import trio

from ...._nearest import nearest
from ....engine import check_on_trio, logger, single_failure
from ....server import Server
from ..._process_end import ending_on_signals
from ...host import Host, HostOptions, serve_asgi, serve_hypercorn
from .._keywords import HostKeywords, HttpKeywords
from ._app import PROBES, HttpApp
from ._http_options import LOCAL_HOSTS, HttpOptions
from ._origin_check import is_host

if TYPE_CHECKING:
    from ....workers import SharedSockets

#: Addresses to listen at that mean every address of this machine.
_ANY: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - looked for, not bound
#: Seconds added to the grace of running requests, in which the application answers the requests
#: that are refused at its end.
MARGIN: Final = 0.5

#: The HTTP servers for an application, by name.
SERVERS: Final[dict[str, Callable[..., Awaitable[None]]]] = {
    "noizu": partial(serve_asgi, probes=PROBES),
    "hypercorn": serve_hypercorn,
}

#: Calls a function in the loop when serving should end.
SignalScope = Callable[[Callable[[], object]], AbstractContextManager[None]]


def no_signals(_end: Callable[[], object]) -> AbstractContextManager[None]:
    """Handle no signals; see `ending_on_signals`."""
    return nullcontext()


class Serving(Protocol):
    """A host that serves, of either kind."""

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs on which it listens."""
        ...

    def retire(self) -> None:
        """Accept no more connections."""
        ...

    def stop(self) -> None:
        """Stop gracefully."""
        ...


async def serve_http(
    served: Server,
    /,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    server: Literal["noizu", "hypercorn"] = "noizu",
    handle_signals: bool = False,
    task_status: trio.TaskStatus[Host] = trio.TASK_STATUS_IGNORED,
    **options: Unpack[HostKeywords],
) -> None:
    """Serve over Streamable HTTP until its `Host` is stopped, or the task is cancelled.

    It ends in bounded time, except for handlers that shield themselves from cancellation or block
    the loop: only `run_http`, which owns the process, ends those.

    Args:
        served: The server.
        host: The address to listen on.
        port: The port; 0 for a free one.
        server: `noizu`, the built-in HTTP/1.1 server, or `hypercorn`, which also supports HTTP/2.
        handle_signals: Stop gracefully on SIGINT and SIGTERM. The next one ends the process at
            once. Only in the main thread.
        task_status: Started with the `Host` once it listens; on hypercorn with an object that has
            the same `urls`, `port` and `stop`.
        options: As in `run_http`.

    Raises:
        RuntimeError: The caller is not a trio task.
        ImportError: httptools is not installed, or prometheus_client, which metrics need.
        TypeError: An option is unknown, or `auth` is not a `BearerAuth`.
        ValueError: The value of an option is not valid.
        OSError: It cannot listen, or cannot read a TLS file; the text says why in one line.
        BaseException: Raised by the lifespan of the server.
    """
    check_on_trio(
        "serve_http",
        "under asyncio serve `Name().asgi()`, without a loop write `Name().run_http()`",
    )
    http_options, host_options = read_options(options)
    await serve_app(
        make_app(served, http_options, host),
        host,
        port,
        host_options,
        signals=ending_on_signals if handle_signals else no_signals,
        task_status=task_status,
        server=server,
    )


def read_options(given: HostKeywords) -> tuple[HttpOptions, HostOptions]:
    """Make the options of the application and of its host from keywords.

    Args:
        given: The keywords; `health` is True by default.

    Raises:
        TypeError: An option is unknown.
        ValueError: The value of an option is not valid.
    """
    rest: dict[str, Any] = {"health": True, **given}
    for name in rest:
        if name not in HostKeywords.__annotations__:
            meant = nearest(name, HostKeywords.__annotations__)
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise TypeError(f"serving over HTTP has no option {name!r}{hint}")
    options = {name: rest.pop(name) for name in HttpKeywords.__annotations__ if name in rest}
    return HttpOptions(**options), HostOptions(**rest)


def make_app(server: Server, options: HttpOptions, host: str, *, warns: bool = True) -> HttpApp:
    """Make the application that `serve_app` serves on an address; see `reachable`."""
    return HttpApp(server, reachable(options, host, warns=warns))


async def serve_app(
    app: HttpApp,
    host: str,
    port: int,
    host_options: HostOptions,
    *,
    signals: SignalScope,
    task_status: trio.TaskStatus[Any],
    server: str = "noizu",
    shared: "SharedSockets | None" = None,
) -> None:
    """Serve an application like `serve_http`, on one of the `SERVERS`.

    With `shared` it accepts from these sockets, which listen already.

    Raises:
        ValueError: The server is unknown.
        ValueError: There is a health port, and the application does not answer health checks.
    """
    if server not in SERVERS:
        raise ValueError(f"server must be one of {', '.join(SERVERS)}, not {server!r}")
    if host_options.health_port is not None and not app.options.health:
        raise ValueError("health_port needs health=True: the application answers no health checks")
    serve = partial(
        SERVERS[server],
        app,
        host=host,
        port=port,
        config=host_options,
        lifespan=app.lifespan(),
        leaving=app.leave,
        stopping=app.settle,
        grace=app.options.limits.grace + MARGIN,
        shared=shared,
    )
    serving: Serving | None = None

    def end() -> None:
        # Before it listens there is nothing to end gracefully.
        if serving is None:
            nursery.cancel_scope.cancel()
        else:
            serving.stop()

    with single_failure(), signals(end):
        async with trio.open_nursery() as nursery:
            # From here on `end` stops the host gracefully.
            serving = await nursery.start(serve)
            task_status.started(serving)


def reachable(options: HttpOptions, host: str, *, warns: bool = True) -> HttpOptions:
    """Add the address to the allowed hosts; warn if remote clients would be refused."""
    if options.allowed_hosts is not None or host in LOCAL_HOSTS:
        return options
    bare = host.partition("%")[0]  # the zone of an address is local
    name = f"[{bare}]" if ":" in bare else bare
    if host not in _ANY and is_host(name):
        return attrs.evolve(options, allowed_hosts=(*LOCAL_HOSTS, name))
    if warns:
        logger.warning(
            "listening at %s, but serving only those who ask for %s: set allowed_hosts"
            " (--allow-host) to the names that clients use",
            "every address" if host in _ANY else ascii(host),
            ", ".join(LOCAL_HOSTS),
        )
    return options
