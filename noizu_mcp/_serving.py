"""`Server`: the class that users subclass, with the verbs that serve it; above all layers.

The class below it, in `server/`, holds the features of a server. Serving needs the transports,
which are a layer above it; the two are put together here, so no layer imports a higher one. The
HTTP side loads when it is first used: a server on stdio needs none of it.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, cast, get_args

import trio

from . import server
from ._errors import DefinitionError
from ._nearest import nearest
from ._source import calling_frame, problem_at
from ._util import in_main_thread
from .transports import http, serve_descriptors, take_stdio
from .transports.http._keywords import HostKeywords, HttpKeywords

if TYPE_CHECKING:
    from .transports.http.server._worker import Worker
    from .types import Principal

_ServingMethod = TypeVar("_ServingMethod", bound=Callable[..., Any])


def _serves(method: _ServingMethod) -> _ServingMethod:
    """Refuse a call on the class, an unknown option, and `transport=`, one of other frameworks."""
    verb = method.__name__

    @functools.wraps(method)
    def checked(*args: Any, **options: Any) -> Any:
        # `Name.run()` would fail with a missing `self`, which tells a beginner nothing.
        if not args or not isinstance(args[0], Server):
            text = f"needs an instance of the server; write Name().{verb}(…)"
        elif "transport" in options or (verb == "run" and args[1:]):
            text = "takes no transport; call run() to serve stdio, run_http(host, port) for HTTP"
        elif unknown := [name for name in options if name not in _names_of(method)]:
            meant = nearest(unknown[0], _names_of(method))
            text = f"has no option {unknown[0]!r}" + (f"; did you mean {meant!r}?" if meant else "")
        else:
            return method(*args, **options)
        raise DefinitionError([problem_at(f"{verb}(…)", text, calling_frame())])

    return cast("_ServingMethod", checked)


def _names_of(method: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of all keywords that a method takes."""
    for each in inspect.signature(method).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            (options,) = get_args(each.annotation)
            yield from options.__annotations__
        else:
            yield each.name


class Server(server.Server, abstract=True):
    """An MCP server: subclass it, list its tools, resources and prompts, and serve it.

    Options, as class keywords or attributes: `name` and `version` (both needed), `title`,
    `description`, `instructions`, `website_url`, `icons`, `tool_timeout` (seconds, 30 by default,
    None for no limit), `coerce` (read text in arguments that stands for other types; not in raw
    schemas by default), `page_size`, `limits` (`Limits`), `cache` (`Cache`, or a mapping of kinds
    to it), `state_keys` and `state_ttl` (sealing the state of `ctx.elicit` on 2026-07-28),
    `task_ttl` and `task_poll_interval` (of tasks, in seconds), `watchdog` (seconds that a handler
    may block the loop before the log names it, 1 by default, None for any time), `max_result_bytes`
    (of the result of a tool), `requires` (scopes for every request), `loop` (`trio`, or `asyncio`
    for its own methods, its lifespan, and components that name none), `abstract`.
    Features: `tools`, `resources` and `prompts`, lists of classes, instances, and `tool(…)`,
    `resource(…)`, `resource_template(…)` and `prompt(…)` registrations, empty ones for later
    additions; on an instance each is the running set, with `add`, `remove` and `replace`. `skills`
    is a list of `SkillFolder`s, read when the class statement runs. `telemetry`: listeners, each
    called with an `Event` where a request begins and ends; on an instance, an object with `add` and
    `remove`. `policies`: a list of `Policy`s, asked before every handler; on an instance, an object
    with `replace`.

    Attributes:
        options: The options, checked.
        registry: The registrations: what is listed, and what answers a name or a URI.
        tools: The running set of tools.
        resources: The running set of resources and templates.
        prompts: The running set of prompts.
        telemetry: The listeners to its requests.
        policies: The policies.
        skills: The skills, as they were read.

    Raises:
        DefinitionError: When the class statement runs: everything that is wrong with it.
    """

    @_serves
    def run(self, *, principal: "Principal | None" = None) -> None:
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
        server: Literal["noizu", "hypercorn"] = "noizu",
        **options: Unpack[HostKeywords],
    ) -> None:
        """Serve over HTTP until SIGINT or SIGTERM comes; the address is written to stderr.

        Needs the extra `http`. Handlers that have not ended in time then, because they block or
        shield themselves from cancellation, are logged, and the process ends with status 1.

        Args:
            host: The address to listen at.
            port: The port; 0 for a free one.
            server: `noizu`, the own HTTP/1.1 server, or `hypercorn`, which speaks HTTP/2 as well.
            options: The attributes of `HttpOptions`, except that `health` is True unless given, and
                the attributes of `HostOptions`: `certfile` and `keyfile` for TLS, `uds` for a Unix
                socket, `lead` for load balancers, limits of connections.

        Raises:
            SystemExit: It cannot listen, or its backend cannot be used; the process ends with
                status 1 and one line that says why.
            DefinitionError: There is no such option.
            ValueError: An option cannot have this value.
        """
        from .transports.http.server._serve_http import read_options

        try:
            run_http(self, host, port, *read_options(options), server=server)
        except start_errors() as error:
            # A port in use is no fault of the program, and its traceback would say nothing more.
            text = error.strerror if isinstance(error, OSError) else error
            raise SystemExit(f"noizu-mcp: {text}") from error

    @_serves
    def asgi(
        self, *, handle_signals: bool = False, **options: Unpack[HttpKeywords]
    ) -> "http.HttpApp":
        """Make the ASGI application of the server, for any host, alone or mounted in another.

        It runs while its lifespan does: an application that mounts it passes
        `lifespan=app.lifespan` on.

        Args:
            handle_signals: While its lifespan runs in the main thread, SIGINT and SIGTERM end its
                streams in order, before the host's own handler; for hosts that would wait for them.
            options: The attributes of `HttpOptions`.

        Raises:
            DefinitionError: There is no such option.
            ValueError: An option cannot have this value.
        """
        return http.HttpApp(self, http.HttpOptions(**options), handle_signals=handle_signals)


def run_stdio(
    served: server.Server | Callable[[], server.Server], *, principal: "Principal | None" = None
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


def run_http(
    served: server.Server,
    host: str,
    port: int,
    options: "http.HttpOptions",
    host_options: "http.HostOptions",
    *,
    server: str = "noizu",
    parent: int | None = None,
    worker: "Worker | None" = None,
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM comes; the address is written to stderr.

    Handlers that have not ended in time then are logged, and the process ends with status 1.

    Args:
        served: The server.
        host: The address to listen at.
        port: The port; 0 for a free one.
        options: The options of the application.
        host_options: The options of its host.
        server: The name of the server that it is served on.
        parent: The id of a process; serving ends when that process has ended.
        worker: The supervisor, if this process is one of several workers.

    Raises:
        OSError: It cannot listen; the text gives the reason, in one line.
        BackendUnavailable: Its backend cannot be used; the same.
    """
    from .transports.http.server._process import run_process

    run_process(
        served,
        host,
        port,
        options,
        host_options,
        server_name=server,
        parent=parent,
        worker=worker,
    )


def start_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a server that cannot start to serve over HTTP."""
    # Late: it is called for an exception only, and most servers have no backend.
    from .backends import BackendUnavailable

    return http.ListenError, BackendUnavailable
