"""`Server`: the class that users subclass, with the verbs that serve it; above all layers.

The class below it, in `server/`, holds the features of a server. Serving needs the transports,
which are a layer above it; the two are put together here, so no layer imports a higher one. The
HTTP side loads when it is first used: a server on stdio needs none of it.
"""

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import trio

from . import server
from ._errors import DefinitionError
from ._source import calling_frame, problem_at
from ._util import in_main_thread
from .transports import serve_descriptors, take_stdio
from .types import Principal

if TYPE_CHECKING:
    from .transports.http import HostOptions, HttpApp, HttpLimits, HttpOptions

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _serves(method: _Method) -> _Method:
    """Refuse a call on the class, and `run(transport=…)`, an option of other frameworks."""

    @functools.wraps(method)
    def checked(*args: Any, **options: Any) -> Any:
        verb = method.__name__
        # `Name.run()` would fail with a missing `self`, which tells a beginner nothing.
        if not args or not isinstance(args[0], Server):
            text = f"needs an instance of the server; write Name().{verb}(…)"
        elif "transport" in options or (verb == "run" and args[1:]):
            text = "takes no transport; call run() to serve stdio, run_http(host, port) for HTTP"
        else:
            return method(*args, **options)
        raise DefinitionError([problem_at(f"{verb}(…)", text, calling_frame())])

    return cast("_Method", checked)


class Server(server.Server, abstract=True):
    # To users the two classes are one.
    __doc__ = server.Server.__doc__

    @_serves
    def run(self, *, principal: Principal | None = None) -> None:
        """Serve on stdin and stdout until the client ends it, or SIGINT or SIGTERM comes.

        Args:
            principal: The caller, for `ctx.auth`; see `serve_stdio`.
        """
        run_stdio(self, principal=principal)

    @_serves
    def run_http(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        path: str = "/mcp",
        allowed_hosts: Sequence[str] | None = None,
        allowed_origins: Sequence[str] = (),
        auth: Any = None,
        health: bool = True,
        metrics: Any = False,
        limits: Any = None,
        seal_sessions: bool = False,
        **host_options: Any,
    ) -> None:
        """Serve over HTTP until SIGINT or SIGTERM comes; the address is written to stderr.

        Needs the extra `http`. Handlers that have not ended in time then, because they block or
        shield themselves from cancellation, are logged, and the process ends with status 1.

        Args:
            host: The address to listen at.
            port: The port; 0 for a free one.
            path: The one path of the protocol.
            allowed_hosts: Values of `Host` that are served; see `HttpOptions`.
            allowed_origins: Values of `Origin` that are served; see `HttpOptions`.
            auth: A `noizu_mcp.auth.BearerAuth`, which verifies callers; None admits every caller.
            health: Answer `/healthz` and `/readyz`.
            metrics: Answer `/metrics`; see `HttpOptions`.
            limits: `HttpLimits`, which bounds the memory and the time that clients can take.
            seal_sessions: Let every process with the same `state_keys` serve each session.
            host_options: Options of `HostOptions`: `certfile` and `keyfile` for TLS, `uds` for a
                Unix socket, `lead` for load balancers, limits of connections.

        Raises:
            OSError: It cannot listen; the text gives the reason, in one line.
        """
        options = make_http_options(
            path=path,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            auth=auth,
            health=health,
            limits=limits,
            metrics=metrics,
            seal_sessions=seal_sessions,
        )
        run_http(self, host, port, options, make_host_options(**host_options))

    @_serves
    def asgi(
        self,
        *,
        path: str = "/mcp",
        allowed_hosts: Sequence[str] | None = None,
        allowed_origins: Sequence[str] = (),
        auth: Any = None,
        health: bool = False,
        metrics: Any = False,
        limits: Any = None,
        seal_sessions: bool = False,
        handle_signals: bool = False,
    ) -> Any:
        """Make the ASGI application of the server, for any host, alone or mounted in another.

        It runs while its lifespan does: an application that mounts it passes
        `lifespan=app.lifespan` on.

        Args:
            path: The one path of the protocol.
            allowed_hosts: Values of `Host` that are served; see `HttpOptions`.
            allowed_origins: Values of `Origin` that are served; see `HttpOptions`.
            auth: A `noizu_mcp.auth.BearerAuth`, which verifies callers; None admits every caller.
            health: Answer `/healthz` and `/readyz`.
            metrics: Answer `/metrics`; see `HttpOptions`.
            limits: `HttpLimits`, which bounds the memory and the time that clients can take.
            seal_sessions: Let every process with the same `state_keys` serve each session.
            handle_signals: While its lifespan runs in the main thread, SIGINT and SIGTERM end its
                streams in order, before the host's own handler; for hosts that would wait for them.

        Returns:
            A `noizu_mcp.transports.http.HttpApp`.
        """
        options = make_http_options(
            path=path,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            auth=auth,
            health=health,
            limits=limits,
            metrics=metrics,
            seal_sessions=seal_sessions,
        )
        return make_asgi(self, options, handle_signals=handle_signals)


def run_stdio(
    served: server.Server | Callable[[], server.Server], *, principal: Principal | None = None
) -> None:
    """Serve on stdin and stdout until the client ends it, or SIGINT or SIGTERM comes.

    From then on descriptor 0 reads nothing and descriptor 1 writes to stderr, also after the end: a
    thread that still runs must not print to the client.

    Args:
        served: The server, or a function that makes it once no code can print to the client.
        principal: See `serve_stdio`.
    """
    # Before the server is made: an import or a constructor that prints would break the framing
    # (2025-11-25 `basic/transports`: stdout carries messages only).
    read_fd, write_fd = take_stdio()
    made = served if isinstance(served, server.Server) else served()
    # Python delivers signals to the main thread alone.
    serve = partial(serve_descriptors, handle_signals=in_main_thread(), principal=principal)
    trio.run(serve, made, read_fd, write_fd)


def make_http_options(*, limits: "HttpLimits | None", **options: Any) -> "HttpOptions":
    """Make the options of a server over HTTP; see `HttpOptions`."""
    # Late: a server on stdio never loads the HTTP side.
    from .transports.http import HttpLimits, HttpOptions

    return HttpOptions(limits=HttpLimits() if limits is None else limits, **options)


def make_http_limits(**limits: Any) -> "HttpLimits":
    """Make the limits of a server over HTTP; see `HttpLimits`."""
    from .transports.http import HttpLimits

    return HttpLimits(**limits)


def make_host_options(**options: Any) -> "HostOptions":
    """Make the options of an HTTP host; see `HostOptions`."""
    from .transports.http import HostOptions

    return HostOptions(**options)


def make_asgi(served: server.Server, options: "HttpOptions", *, handle_signals: bool) -> "HttpApp":
    """Make the ASGI application of a server."""
    from .transports.http import HttpApp

    return HttpApp(served, options, handle_signals=handle_signals)


def run_http(
    served: server.Server,
    host: str,
    port: int,
    options: "HttpOptions",
    host_options: "HostOptions",
    *,
    parent: int | None = None,
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM comes; the address is written to stderr.

    Handlers that have not ended in time then are logged, and the process ends with status 1.

    Args:
        served: The server.
        host: The address to listen at.
        port: The port; 0 for a free one.
        options: The options of the application.
        host_options: The options of its host.
        parent: The id of a process; serving ends when that process has ended.

    Raises:
        OSError: It cannot listen; the text gives the reason, in one line.
    """
    from .transports.http.server._process import run_process

    run_process(served, host, port, options, host_options, parent=parent)
