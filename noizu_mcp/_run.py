"""Serving as the main job of a process."""

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from .engine import single_failure
from .server import Server
from .transports import serve_descriptors, take_stdio
from .types import Principal

if TYPE_CHECKING:
    from .transports.http import Host, HttpApp, HttpLimits, HttpOptions


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
    serve = partial(serve_descriptors, handle_signals=_in_main_thread(), principal=principal)
    trio.run(serve, made, read_fd, write_fd)


def http_options(*, limits: "HttpLimits | None", **options: Any) -> "HttpOptions":
    """Put together how a server is served over HTTP; see `HttpOptions`."""
    from .transports.http import HttpLimits, HttpOptions

    return HttpOptions(limits=HttpLimits() if limits is None else limits, **options)


def make_asgi(server: Server, options: "HttpOptions") -> "HttpApp":
    """Make the ASGI application of a server."""
    from .transports.http import HttpApp

    return HttpApp(server, options)


def run_http(
    server: Server, host: str, port: int, options: "HttpOptions", **host_options: Any
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM comes; says on stderr where.

    Args:
        server: The server.
        host: The address to listen at.
        port: The port; 0 for a free one.
        options: How it is served.
        host_options: Those of `HostOptions`.

    Raises:
        OSError: It cannot listen; the text says why, in one line.
    """
    from .transports.http import HostOptions, serve_http

    serve = partial(
        serve_http,
        server,
        host,
        port,
        options=options,
        host_options=HostOptions(**host_options),
        handle_signals=_in_main_thread(),
    )

    async def main() -> None:
        with single_failure():
            async with trio.open_nursery() as nursery:
                _announce(server, options, await nursery.start(serve))

    trio.run(main)


def _announce(server: Server, options: "HttpOptions", serving: "Host") -> None:
    where = ", ".join(f"{url}{options.path}" for url in serving.urls)
    sys.stderr.write(f"noizu-mcp: {server.options.name} serves at {where}\n")


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
