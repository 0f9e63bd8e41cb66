"""How a server is served: as the main job of a process, or as a part of an application."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._errors import DefinitionError
from .._source import calling_frame, problem_at
from ..types import Principal

if TYPE_CHECKING:
    from ._server import Server


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _serves(method: _Method) -> _Method:
    """Refuse a call on the class, and `run(transport=…)`, which servers elsewhere have."""

    @functools.wraps(method)
    def checked(*args: Any, **options: Any) -> Any:
        verb = method.__name__
        if not args or not isinstance(args[0], Serving):
            text = f"needs an instance of the server; write Name().{verb}(…)"
        elif "transport" in options or (verb == "run" and args[1:]):
            text = "takes no transport; call run() to serve stdio, run_http(host, port) for HTTP"
        else:
            return method(*args, **options)
        raise DefinitionError([problem_at(f"{verb}(…)", text, calling_frame())])

    return cast("_Method", checked)


class Serving:
    """The verbs of a server; what does the work loads when it is called."""

    @_serves
    def run(self, *, principal: Principal | None = None) -> None:
        """Serve on stdin and stdout until the client ends it, or SIGINT or SIGTERM comes.

        Args:
            principal: Who is at the other end, `ctx.auth`; see `serve_stdio`.
        """
        from .._run import run_stdio

        run_stdio(cast("Server", self), principal=principal)

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
        """Serve over HTTP until SIGINT or SIGTERM comes; says on stderr where.

        Needs the extra `http`. What has not ended in time then, because it blocks or shields itself
        from cancellation, is logged, and the process ends with status 1.

        Args:
            host: The address to listen at.
            port: The port; 0 for a free one.
            path: The one path of the protocol.
            allowed_hosts: Values of `Host` that are served; see `HttpOptions`.
            allowed_origins: Values of `Origin` that are served; see `HttpOptions`.
            auth: A `noizu_mcp.auth.BearerAuth`: who may call; None: anybody may.
            health: Answer `/healthz` and `/readyz`.
            metrics: Answer `/metrics`; see `HttpOptions`.
            limits: `HttpLimits`: what a client can make the server hold or wait for.
            seal_sessions: Let every process with the same `state_keys` serve each session.
            host_options: Those of `HostOptions`: `certfile` and `keyfile` for TLS, `uds` for a
                Unix socket, `lead` for load balancers, limits of connections.

        Raises:
            OSError: It cannot listen; the text says why, in one line.
        """
        from .._run import host_options as host_options_of
        from .._run import http_options, run_http

        options = http_options(
            path=path,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            auth=auth,
            health=health,
            limits=limits,
            metrics=metrics,
            seal_sessions=seal_sessions,
        )
        run_http(cast("Server", self), host, port, options, host_options_of(**host_options))

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
            auth: A `noizu_mcp.auth.BearerAuth`: who may call; None: anybody may.
            health: Answer `/healthz` and `/readyz`.
            metrics: Answer `/metrics`; see `HttpOptions`.
            limits: `HttpLimits`: what a client can make the server hold or wait for.
            seal_sessions: Let every process with the same `state_keys` serve each session.
            handle_signals: While its lifespan runs in the main thread, SIGINT and SIGTERM end its
                streams in order, before the host's own handler; for hosts that would wait for them.

        Returns:
            A `noizu_mcp.transports.http.HttpApp`.
        """
        from .._run import http_options, make_asgi

        options = http_options(
            path=path,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            auth=auth,
            health=health,
            limits=limits,
            metrics=metrics,
            seal_sessions=seal_sessions,
        )
        return make_asgi(cast("Server", self), options, handle_signals=handle_signals)
