"""Serving over HTTP: the application of a server and the host of it, from start to end."""

import contextlib
from functools import partial
from typing import Final

import attrs
import trio

from ...engine import logger, single_failure
from ...server import Server
from .._stdio import ending_on_signals
from ..host import Host, HostOptions, serve_asgi
from ._app import HttpApp
from ._options import LOCAL_HOSTS, HttpOptions

#: What to listen at means every address of this machine.
_ANY: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - looked for, not bound
#: Seconds more than running requests get, in which the application says so to its clients.
_MARGIN: Final = 1.0


async def serve_http(
    server: Server,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    options: HttpOptions | None = None,
    host_options: HostOptions | None = None,
    handle_signals: bool = False,
    task_status: trio.TaskStatus[Host] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve over Streamable HTTP until its `Host` is stopped, or the task is cancelled.

    Args:
        server: The server.
        host: The address to listen at.
        port: The port; 0 for a free one.
        options: How it is served; unless given, with `/healthz` and `/readyz`.
        host_options: Limits of connections, TLS, a Unix socket.
        handle_signals: End in order on SIGINT and SIGTERM. The next one ends the process at once.
            Only from the main thread.
        task_status: Started with the `Host`, once it listens.

    Raises:
        ImportError: hypercorn is not installed, or prometheus_client, which metrics need.
        TypeError: The `auth` of the options is no `BearerAuth`.
        OSError: It cannot listen, or a file of TLS cannot be read; the text says why, in one line.
        BaseException: What the lifespan of the server raises.
    """
    options = _reachable(options or HttpOptions(health=True), host)
    app = HttpApp(server, options)
    serve = partial(
        serve_asgi,
        app,
        host=host,
        port=port,
        config=host_options,
        lifespan=app.lifespan(),
        stopping=app.settle,
        grace=options.limits.grace + _MARGIN,
    )
    serving: Host | None = None

    def end() -> None:
        # Before it listens there is nothing to end in order.
        if serving is None:
            nursery.cancel_scope.cancel()
        else:
            serving.stop()

    signals = ending_on_signals(end) if handle_signals else contextlib.nullcontext()
    with single_failure(), signals:
        async with trio.open_nursery() as nursery:
            serving = await nursery.start(serve)
            task_status.started(serving)


def _reachable(options: HttpOptions, host: str) -> HttpOptions:
    """Serve those who ask for the address itself; say so where nobody far away could ask."""
    if options.allowed_hosts is not None or host in LOCAL_HOSTS:
        return options
    if host not in _ANY:
        name = f"[{host}]" if ":" in host else host
        return attrs.evolve(options, allowed_hosts=(*LOCAL_HOSTS, name))
    logger.warning(
        "listening at every address, but serving only those who ask for %s: set allowed_hosts"
        " (--allow-host) to the names that clients use",
        ", ".join(LOCAL_HOSTS),
    )
    return options
