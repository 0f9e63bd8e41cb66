"""Serving as the main job of a process."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from ._util import in_main_thread
from .server import Server
from .transports import serve_descriptors, take_stdio
from .types import Principal

if TYPE_CHECKING:
    from .transports.http import HostOptions, HttpApp, HttpLimits, HttpOptions


def run_stdio(server: Server | Callable[[], Server], *, principal: Principal | None = None) -> None:
    """Serve on stdin and stdout until the client ends it, or SIGINT or SIGTERM comes.

    Descriptor 0 reads nothing and descriptor 1 writes to stderr from then on, also afterwards: a
    thread that still runs must not print to the client.

    Args:
        server: The server, or what makes it once nothing can print to the client any more.
        principal: See `serve_stdio`.
    """
    read_fd, write_fd = take_stdio()
    made = server if isinstance(server, Server) else server()
    serve = partial(serve_descriptors, handle_signals=in_main_thread(), principal=principal)
    trio.run(serve, made, read_fd, write_fd)


def http_options(*, limits: "HttpLimits | None", **options: Any) -> "HttpOptions":
    """Put together how a server is served over HTTP; see `HttpOptions`."""
    from .transports.http import HttpLimits, HttpOptions

    return HttpOptions(limits=HttpLimits() if limits is None else limits, **options)


def http_limits(**limits: Any) -> "HttpLimits":
    """Put together the limits of a server over HTTP; see `HttpLimits`."""
    from .transports.http import HttpLimits

    return HttpLimits(**limits)


def host_options(**options: Any) -> "HostOptions":
    """Put together what a host allows its clients; see `HostOptions`."""
    from .transports.http import HostOptions

    return HostOptions(**options)


def make_asgi(server: Server, options: "HttpOptions", *, handle_signals: bool) -> "HttpApp":
    """Make the ASGI application of a server."""
    from .transports.http import HttpApp

    return HttpApp(server, options, handle_signals=handle_signals)


def run_http(
    server: Server,
    host: str,
    port: int,
    options: "HttpOptions",
    host_options: "HostOptions",
    *,
    parent: int | None = None,
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM comes; says on stderr where.

    What has not ended in time then, whatever keeps it, is logged, and the process ends with
    status 1.

    Args:
        server: The server.
        host: The address to listen at.
        port: The port; 0 for a free one.
        options: How it is served.
        host_options: What its host allows.
        parent: The process with whose end it ends, too.

    Raises:
        OSError: It cannot listen; the text says why, in one line.
    """
    from .transports.http.server._process import run_process

    run_process(server, host, port, options, host_options, parent=parent)
