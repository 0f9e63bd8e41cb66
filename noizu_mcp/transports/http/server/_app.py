"""The ASGI application of a server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ...._errors import McpError
from ....engine import enter_user_code, logger, single_failure
from ....jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Request
from ....server import Server, ServerRequest
from ....telemetry import Metrics
from ..._process_end import handling_signals, soon
from ._asgi import (
    JSON,
    TEXT,
    AsgiReceive,
    AsgiScope,
    AsgiSend,
    Disconnected,
    HttpRefusal,
    HttpRequest,
    mount_of,
)
from ._endpoint import Endpoint
from ._http_options import LOCAL_HOSTS, PATH, HttpOptions, backend_of
from ._http_post import HttpPost
from ._origin_check import OriginCheck, preflight
from ._running_app import RunningApp, TaskGroup

if TYPE_CHECKING:
    from ....engine.aio import TrioSide
    from ....server import Joined, Node, RunningServer
    from ._authorization import Authorization
    from ._shared_sessions import SharedSessions

#: Frameworks such as Starlette run only the lifespan of the outermost application.
_NO_LIFESPAN: Final = (
    "The server is not running: its host has not run its lifespan. Pass lifespan=app.lifespan to"
    " the application that mounts it, or enter `async with app.lifespan():` around it"
)

#: Paths of the health checks.
PROBES: Final = ("/healthz", "/readyz")


class HttpApp:
    """A server as an ASGI application, on trio.

    It serves while its lifespan runs. A host that supports the ASGI lifespan protocol runs it; an
    application that mounts this one passes `lifespan=app.lifespan`, or enters it.

    Args:
        server: The server.
        options: How it is served.
        handle_signals: While its lifespan runs, SIGINT and SIGTERM also start `settle`, for hosts
            that wait for open streams, which never end by themselves.

    Raises:
        TypeError: Its `auth` is not a `BearerAuth`.
        ValueError: The server requires a scope that clients must not be told to request.
        ValueError: Its `metrics` belong to another server.
        ImportError: Metrics are enabled, and prometheus_client is not installed.
    """

    #: The built-in host keeps the scope of a request for the next one if it calls this object
    #: itself: no middleware between them can have entered a scope.
    keeps_scope: Final = True
    #: Serves the path of the protocol; None while the lifespan does not run.
    endpoint: Endpoint | None = None

    def __init__(
        self, server: Server, options: HttpOptions, *, handle_signals: bool = False
    ) -> None:
        self.server = server
        self.options = options
        self._path = options.path.rstrip("/") or "/"
        # By default only local names are served: a DNS rebinding attack uses another name
        # (2025-11-25 `basic/transports`, "Security Warning").
        self._guard = OriginCheck(options.allowed_hosts or LOCAL_HOSTS, options.allowed_origins)
        self._authorization = _authorization(server, options)
        self._metrics = _metrics_of(server, options)
        self._trio_side: TrioSide | None = None  # if the host runs on asyncio
        self._handle_signals = handle_signals
        self._ready = False
        self._settling = trio.Lock()
        self._settle_soon: Callable[[], None]  # from any thread, and from signal handlers
        self._working: dict[ServerRequest, None] = {}

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Run the server while the block runs, then end it gracefully.

        Args:
            _app: The application that mounts this one; some frameworks pass it.

        Yields:
            None, once requests are answered.

        Raises:
            RuntimeError: It is running already.
            BaseException: Raised by the lifespan of the server.
        """
        if self.endpoint is not None:
            raise RuntimeError("the lifespan of this application is running already")
        # A host that is not on trio is on asyncio: then trio runs as a guest in its loop.
        if trio.lowlevel.in_trio_task():
            async with self._run():
                with self._handling_signals():
                    yield
            return
        from ....engine.aio import enter_trio, trio_side

        try:
            async with trio_side() as side, enter_trio(side, self._run()):
                self._trio_side = side
                with self._handling_signals():
                    yield
        finally:
            self._trio_side = None

    def _handling_signals(self) -> AbstractContextManager[None]:
        if not self._handle_signals:
            return nullcontext()
        return handling_signals(self._settle_soon)

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[None]:
        # Only serving is watched: a test in memory may stop at breakpoints.
        from ....telemetry import watching

        with single_failure(), watching(self.server.options.watchdog):
            async with (
                # First: without its backend a node does not begin.
                self._node() as node,
                # Outside of the nursery: when they are closed, no task uses the author's resources.
                enter_user_code(self.server.lifespan()) as state,
                trio.open_nursery() as nursery,
            ):
                tasks = TaskGroup(nursery)
                self._settle_soon = soon(partial(tasks.spawn, self.settle))
                app = RunningApp(self.server, self.options, state, tasks, node)
                app.running.on_denied = self._challenge
                self._working = app.running.working
                self.endpoint = Endpoint(app, _share_sessions(app))
                tasks.spawn(self.endpoint.sessions.sweep)
                tasks.spawn(app.streams.sweep)
                try:
                    await app.running.begin_serving(None if node is None else _join())
                    self._ready = True
                    yield
                finally:
                    with trio.CancelScope(shield=True):
                        # Shielded: if the host cancels, requests still end gracefully, in bounded
                        # time.
                        await self.settle()
                    app.running.end_serving()
                    self.endpoint = None
                    tasks.close()

    @asynccontextmanager
    async def _node(self) -> "AsyncIterator[Node | None]":
        """Be a node of the server while the block runs, where it has a backend."""
        backend = backend_of(self.options, self.server)
        # Without a backend nothing of it is loaded.
        if backend is None:
            yield None
            return
        from ....server import open_node

        async with open_node(self.server, backend) as node:
            yield node

    def leave(self) -> None:
        """Make `/readyz` answer 503, since the server will end soon. Everything else continues."""
        self._ready = False

    async def settle(self) -> None:
        """Accept no new work, end the open streams, and wait for running requests.

        They get `HttpLimits.grace` seconds, once; waiting bytes are written in at most two more.
        """
        self._ready = False
        # A signal and the end of the lifespan may both happen. The second call waits for the first,
        # without another grace.
        async with self._settling:
            endpoint = self.endpoint
            if endpoint is not None:
                await endpoint.settle(0 if endpoint.stopping else self.options.limits.grace)

    def _challenge(self, ctx: ServerRequest, error: McpError) -> None:
        """Add the challenge with the missing scopes to an answer (RFC 6750 section 3)."""
        channel, auth = ctx.channel, self.options.auth
        if isinstance(channel, HttpPost) and auth is not None:
            headers = auth.challenge(error.data["requiredScopes"]).headers
            # The body is the JSON-RPC error, so the content type of the challenge is left out.
            channel.challenge = [each for each in headers if each[0] != JSON[0]]

    @property
    def working(self) -> list[Request]:
        """The requests whose handlers run, including refused ones. For any thread."""
        # The copy is atomic for the interpreter, so the watchdog's thread can make it.
        return [each.request for each in list(self._working)]

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Answer one request, or run the lifespan; see the ASGI specification."""
        if scope["type"] == "http":
            kind = HttpPost if scope["method"] == "POST" else HttpRequest
            side, body_time = self._trio_side, self.options.limits.body_time
            if side is not None:
                from ....engine.aio import from_asyncio

                ends = from_asyncio(receive), from_asyncio(send)
                await side.run_trio(partial(self._answer, kind(scope, *ends, body_time)))
                return
            http = kind(scope, receive, send, body_time)
            if http.unread and not trio.lowlevel.in_trio_task():
                # A host on asyncio that has not run the lifespan gets only a refusal.
                http.unread = False
            await self._answer(http)
        elif scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        else:
            await receive()
            # Before the handshake of a WebSocket is accepted; hosts answer 403.
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, http: HttpRequest) -> None:
        try:
            # Before any check: load balancers ask by address, without a token.
            if self.options.health and http.path in PROBES:
                if http.path == "/healthz":
                    await http.respond(200, b"ok\n", [TEXT])
                elif self._ready:
                    await http.respond(200, self.details(), [TEXT])
                else:
                    await http.respond(503, b"stopping\n", [TEXT])
            else:
                await self._route(http)
        except HttpRefusal as refused:
            await http.respond(refused.status, refused.body(http.id), refused.headers)
        except Disconnected:
            logger.debug("a client at %s left before its request was complete", http.client)
        finally:
            if http.unread:
                await http.drop_body()  # of a request whose answer is not complete

    def details(self) -> bytes:
        """Return the body of `/readyz`: the server is ready, and these lines list problems.

        It is served without a token, so it contains no secrets.
        """
        providers = self.server.registry.providers
        health = () if providers is None else providers.health()
        lines = [f"provider {name}: {', '.join(faults)}\n" for name, faults, *_ in health if faults]
        if not all(use.is_up for use in self.server.telemetry.backends):
            lines.append("backend: cannot be reached\n")
        if abandoned := self.server.abandoned.count:
            lines.append(f"abandoned threads: {abandoned}\n")
        return "".join(["ok\n", *lines]).encode()

    def _route(self, http: HttpRequest) -> Awaitable[None]:
        """Choose the handler of a request. Returns an awaitable."""
        # Local variables: the lifespan may end while a token is checked.
        endpoint, authorization = self.endpoint, self._authorization
        document = None if authorization is None else authorization.document(http)
        metrics = self._metrics if http.path == "/metrics" else None
        if http.path != self._path and document is None and metrics is None:
            raise self._nothing_at(http)
        # Before authorization: a page of another site must not learn whether a token is valid.
        http.extra = self._guard.check(http)
        if http.method == "OPTIONS" and http.extra:
            # A browser sends no token with a preflight, so it needs none.
            headers = () if authorization is None else authorization.headers
            return http.respond(200, headers=preflight(http, headers))
        if authorization is not None and document is not None:
            return authorization.serve_document(http, document)
        # before the token is checked: without the lifespan, verifiers may have no loop either
        if endpoint is None:
            logger.error(_NO_LIFESPAN)
            raise HttpRefusal(500, _NO_LIFESPAN, code=INTERNAL_ERROR)
        handle = endpoint.handle if metrics is None else partial(_report_metrics, metrics)
        return handle(http) if authorization is None else _admit(http, authorization, handle)

    def _nothing_at(self, http: HttpRequest) -> HttpRefusal:
        """Make the 404 for another path; it names the endpoint if that is the default path."""
        text, endpoint = f"Nothing is at {http.path[:200]}", mount_of(http.scope) + self._path
        # Any other path may be a secret.
        if self._path != PATH:
            return HttpRefusal(404, text, code=INVALID_REQUEST)
        text = f"{text}; the endpoint is {endpoint}"
        return HttpRefusal(404, text, code=INVALID_REQUEST, data={"endpoint": endpoint})

    async def _run_lifespan(self, receive: AsgiReceive, send: AsgiSend) -> None:
        await receive()
        phase = "startup"
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                await receive()
                phase = "shutdown"
        except Exception:  # of the author's lifespan; reported to the host
            logger.exception("the lifespan of %r failed", self.server)
            text = "The server could not be run; the log says why"
            await send({"type": f"lifespan.{phase}.failed", "message": text})
            return
        await send({"type": "lifespan.shutdown.complete"})


def _authorization(server: Server, options: HttpOptions) -> "Authorization | None":
    if options.auth is None:
        return None
    from ._authorization import Authorization

    return Authorization(options.auth, options.path, server.options.requires)


def _share_sessions(app: RunningApp) -> "SharedSessions | None":
    if app.running.node is None:
        return None
    from ._shared_sessions import SharedSessions

    return SharedSessions(app, app.running.node)


def _metrics_of(server: Server, options: HttpOptions) -> Metrics | None:
    if isinstance(options.metrics, bool):
        return Metrics(server) if options.metrics else None
    other = options.metrics.server
    if other is not server:
        raise ValueError(f"metrics must be those of {server!r}, not of {other!r}, another server")
    return options.metrics


def _join() -> "Callable[[RunningServer], Joined]":
    # Loaded where there are other nodes.
    from ....server import join

    return join


async def _admit(
    http: HttpRequest,
    authorization: "Authorization",
    handle: Callable[[HttpRequest], Awaitable[None]],
) -> None:
    if await authorization.admit(http):
        await handle(http)


async def _report_metrics(metrics: Metrics, http: HttpRequest) -> None:
    if http.method != "GET":
        allow = [(b"allow", b"GET")]
        raise HttpRefusal(405, "/metrics takes GET only", code=INVALID_REQUEST, headers=allow)
    # Rendering thousands of series takes a while.
    body = await trio.to_thread.run_sync(metrics.render)
    kind = (b"content-type", metrics.content_type.encode())
    await http.respond(200, body, [kind, (b"cache-control", b"no-store")])
