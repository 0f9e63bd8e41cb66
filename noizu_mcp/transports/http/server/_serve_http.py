"""Serving over HTTP: the application of a server and the host of it, from start to end."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, Literal, Protocol, Unpack

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

#: Addresses to listen at that mean every address of this machine.
_ANY: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - looked for, not bound
#: Seconds beyond the grace of running requests, in which the application answers those that are
#: refused at its end.
MARGIN: Final = 0.5

#: The servers that an application can be served on, by name.
SERVERS: Final[dict[str, Callable[..., Awaitable[None]]]] = {
    "noizu": partial(serve_asgi, probes=PROBES),
    "hypercorn": serve_hypercorn,
}

#: Calls a function in the loop when it is time to end.
SignalScope = Callable[[Callable[[], object]], AbstractContextManager[None]]


def no_signals(_end: Callable[[], object]) -> AbstractContextManager[None]:
    """Leave signals to others; see `ending_on_signals`."""
    return nullcontext()


class Serving(Protocol):
    """A host that serves, of either make."""

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs that it listens at."""
        ...

    def stop(self) -> None:
        """End in order."""
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

    Its end is bounded, but for handlers that shield themselves from cancellation, or block the
    loop: only `run_http`, which owns the process, ends that.

    Args:
        served: The server.
        host: The address to listen at.
        port: The port; 0 for a free one.
        server: `noizu`, the own HTTP/1.1 server, or `hypercorn`, which speaks HTTP/2 as well.
        handle_signals: End in order on SIGINT and SIGTERM. The next one ends the process at once.
            Only from the main thread.
        task_status: Started with the `Host`, once it listens; on hypercorn with an object that has
            its `urls`, `port` and `stop`.
        options: The same as those of `run_http`.

    Raises:
        RuntimeError: No trio task runs here.
        ImportError: httptools is not installed, or prometheus_client, which metrics need.
        TypeError: There is no such option, or `auth` is no `BearerAuth`.
        ValueError: An option cannot have this value.
        OSError: It cannot listen, or a file of TLS cannot be read; the text says why, in one line.
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
        given: The keywords; `health` is True unless it is given.

    Raises:
        TypeError: There is no such option.
        ValueError: An option cannot have this value.
    """
    rest: dict[str, Any] = {"health": True, **given}
    for name in rest:
        if name not in HostKeywords.__annotations__:
            meant = nearest(name, HostKeywords.__annotations__)
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise TypeError(f"serving over HTTP has no option {name!r}{hint}")
    options = {name: rest.pop(name) for name in HttpKeywords.__annotations__ if name in rest}
    return HttpOptions(**options), HostOptions(**rest)


def make_app(server: Server, options: HttpOptions, host: str) -> HttpApp:
    """Make the application that `serve_app` serves at an address."""
    return HttpApp(server, reachable(options, host))


async def serve_app(
    app: HttpApp,
    host: str,
    port: int,
    host_options: HostOptions,
    *,
    signals: SignalScope,
    task_status: trio.TaskStatus[Any],
    server: str = "noizu",
) -> None:
    """Serve an application as `serve_http` does a server, on one of the `SERVERS`.

    Raises:
        ValueError: There is no such server.
        ValueError: There is a port for health checks, which the application does not answer.
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
    )
    serving: Serving | None = None

    def end() -> None:
        # Before it listens there is nothing to end in order.
        if serving is None:
            nursery.cancel_scope.cancel()
        else:
            serving.stop()

    with single_failure(), signals(end):
        async with trio.open_nursery() as nursery:
            # From here on `end` stops the host in order.
            serving = await nursery.start(serve)
            task_status.started(serving)


def reachable(options: HttpOptions, host: str) -> HttpOptions:
    """Add the address to the allowed hosts; warn if remote clients would be refused."""
    if options.allowed_hosts is not None or host in LOCAL_HOSTS:
        return options
    bare = host.partition("%")[0]  # the zone of an address means nothing to others
    name = f"[{bare}]" if ":" in bare else bare
    if host not in _ANY and is_host(name):
        return attrs.evolve(options, allowed_hosts=(*LOCAL_HOSTS, name))
    logger.warning(
        "listening at %s, but serving only those who ask for %s: set allowed_hosts (--allow-host)"
        " to the names that clients use",
        "every address" if host in _ANY else ascii(host),
        ", ".join(LOCAL_HOSTS),
    )
    return options
