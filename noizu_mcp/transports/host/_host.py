"""Serves an ASGI application over HTTP/1.1 on trio: listeners, limits, and the graceful end."""

import contextlib
import errno
import logging
import resource
import socket
from collections.abc import Awaitable, Callable, Collection, Hashable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from ..._limits import GRACE
from ..._util import network_of
from ...engine import ThrottledLog, single_failure, split_cancellation, unwrap_single
from ._client_link import HostShare
from ._forwarded import TrustedProxies
from ._listeners import ListeningSocket, endpoint, open_listeners
from ._options import Application, HostOptions, logger
from ._pool import ConnectionPool
from ._tls import make_context
from ._wire import ClientSocket, TlsClientSocket, TlsContext

if TYPE_CHECKING:
    from ...workers import Balance, SharedSockets

#: Seconds before a process without room for a connection tries again.
NO_ROOM_PAUSE: Final = 0.1
#: Errors that mean no room: no file descriptor, in the process or the system, or no memory.
_NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
#: Descriptors for other uses than connections: files of the application, listeners, health checks.
FILES: Final = 128
#: Connections for health checks, in addition to `max_connections` and on a health port.
KEPT_PLACES: Final = 8
#: Connections accepted in one turn of the loop: a few milliseconds of work.
ACCEPTED_AT_ONCE: Final = 64
#: Seconds for a head on such a connection. Probes need far less; other requests are refused.
PROBE_TIMEOUT: Final = 2.0


def _load_library() -> ModuleType:
    """Load the module of the connections, which needs httptools.

    Raises:
        ImportError: It is not installed.
    """
    try:
        from . import _connection
    except ImportError as error:
        text = "serving over HTTP needs httptools: pip install 'noizu-mcp[http]'"
        raise ImportError(text) from error
    return _connection


class Host:
    """A host that serves; made by `serve_asgi` and `serve_http`.

    Args:
        app: The application.
        options: The options of the host.
        tls: The certificate and the settings of TLS; None for plain HTTP.
        listeners: The listening sockets; closed at the end.
        probes: Paths of the health checks.
        health: The listening sockets for health checks only; closed at the end.
        balance: The connections of all processes, if several accept from the listening sockets.

    Attributes:
        urls: The addresses: `http://127.0.0.1:8000`, `https://[::1]:8000`, `unix:/path`.
        port: The port; None for a Unix socket.
        health_urls: The addresses for health checks only.
    """

    def __init__(
        self,
        app: Application,
        options: HostOptions,
        tls: TlsContext | None,
        *,
        listeners: list[ListeningSocket],
        probes: Collection[str],
        health: list[ListeningSocket],
        balance: "Balance | None",
    ) -> None:
        self.urls: Final = tuple(each.url for each in listeners)
        self.port: Final = listeners[0].port
        self.health_urls: Final = tuple(each.url for each in health)
        self._proxies: Final = TrustedProxies(options.forwarded_allow_ips)
        self._app: Final = self._proxies.wrap(app)
        self._probes: Final = probes
        self._health: Final = health
        self._options: Final = options
        self._tls: Final = tls
        self._listeners: Final = listeners
        self._library: Final = _load_library()
        self._stopping: Final = trio.Event()
        self._accepting: Final = trio.CancelScope()
        self._shares: list[HostShare] = []
        self._balance: Final = balance
        limit = _allowed_connections(options.max_connections)
        self._pool: Final[ConnectionPool] = ConnectionPool(limit, options.keep_alive_timeout)
        self._log: Final = ThrottledLog(trio.current_time, logger)

    @property
    def connections(self) -> int:
        """The number of connections."""
        return len(self._pool)

    def retire(self) -> None:
        """Leave new connections to other processes, and close each one after its next answer.

        For a process that another one replaces: idle connections are still open, so a request that
        is on its way is answered. `stop` closes them.
        """
        self._accepting.cancel()
        if self._balance is not None:
            self._balance.leave()
        for each in self._shares:
            each.stopping = True

    def stop(self) -> None:
        """Stop gracefully; `serve_asgi` then returns.

        `leaving` is called, and for `config.lead` seconds everything continues. Then no more
        connections are accepted, idle ones are closed, `stopping` has `grace` seconds, and running
        answers have `config.drain_timeout`. After that every connection is closed, and the lifespan
        has `config.lifespan_timeout` to end. Code that is shielded from cancellation, or blocks, is
        waited for.
        """
        self._stopping.set()

    async def run(
        self,
        started: Callable[[], None],
        leaving: Callable[[], object],
        stopping: Callable[[], Awaitable[None]],
        grace: float,
    ) -> None:
        """Serve until `stop`, then end. Called once, by `serve_asgi`.

        Args:
            started: Called once connections are accepted.
            leaving: Called after `stop`, before anything else ends.
            stopping: Lets the application end its streams and its running requests.
            grace: Seconds for `stopping`.

        Raises:
            OSError: A listener fails.
            BaseException: Raised by `stopping`.
        """
        # One request per connection, so no deadline needs the sweeper of a pool.
        few = attrs.evolve(self._options, max_requests=1, header_timeout=PROBE_TIMEOUT)
        async with trio.open_nursery() as background:
            background.start_soon(self._pool.sweep)
            probes_only = _only(self._app, self._probes, 404)
            plain = HostOptions(max_requests=1, header_timeout=PROBE_TIMEOUT)
            probed = ConnectionPool(KEPT_PLACES, PROBE_TIMEOUT)
            health = HostShare(probes_only, plain, probed, background)
            for each in self._health:
                # Until the end: a probe must learn that the application is not ready.
                background.start_soon(self._accept, each, health)
            async with trio.open_nursery() as connections:
                keeps = getattr(self._app, "keeps_scope", False)
                shared = HostShare(self._app, self._options, self._pool, connections, keeps)
                probes_only = _only(self._app, self._probes, 503)
                places = ConnectionPool(KEPT_PLACES, PROBE_TIMEOUT)
                kept = HostShare(probes_only, few, places, connections)
                self._shares = [shared, kept]
                async with trio.open_nursery() as accepting:
                    accepting.start_soon(self._accept_all, shared, kept)
                    started()
                    await self._stopping.wait()
                    leaving()
                    await trio.sleep(self._options.lead)
                    self.retire()
                for each in self._listeners:
                    each.close()
                shared.dropping = kept.dropping = True
                for connection in [*self._pool.idle, *kept.pool.idle]:
                    connection.drop()
                with trio.move_on_after(grace):
                    await stopping()
                drain = self._options.drain_timeout
                connections.cancel_scope.deadline = trio.current_time() + drain
            background.cancel_scope.cancel()

    async def _accept_all(self, *places: HostShare) -> None:
        with self._accepting:
            async with trio.open_nursery() as nursery:
                for each in self._listeners:
                    nursery.start_soon(partial(self._accept, each, *places, beside=self._balance))

    async def _accept(
        self, listener: ListeningSocket, *places: HostShare, beside: "Balance | None" = None
    ) -> None:
        """Accept connections, each in the first of the places that has room for it."""
        # If each turn of a busy loop accepted one, many would wait in the system's queue.
        most = ACCEPTED_AT_ONCE
        while True:
            await listener.wait()
            if beside is not None:
                most = await beside.wait_turn(len(self._pool))
            number = await self._accept_some(most, listener, places)
            if beside is not None:
                beside.note(number)

    async def _accept_some(
        self, most: int, listener: ListeningSocket, places: tuple[HostShare, ...]
    ) -> int:
        """Accept the connections that wait, at most a number of them; return how many."""
        number = 0
        try:
            while number < most and (accepted := listener.accept()) is not None:
                number += 1
                await self._place(*accepted, places)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self._log.warning("room", "no room for another connection: %s", error.strerror)
            # A closed connection frees its descriptor at once.
            if not self._pool.drop_one():
                await trio.sleep(NO_ROOM_PAUSE)
        return number

    async def _place(
        self, accepted: socket.socket, peer: object, places: tuple[HostShare, ...]
    ) -> None:
        """Find a place for a connection, or close it."""
        client = endpoint(peer)
        address: Hashable = object()  # each client of a proxy counts separately
        if not self._proxies.trust(client):
            address = network_of(client[0]) if client else "unix"
        try:
            found = await _find_place(address, places)
        except trio.Cancelled:
            accepted.close()
            raise
        if found is not places[0]:
            text = "connections are turned away: max_connections=%d are busy"
            self._log.warning("crowd", text, self._options.max_connections)
        if found is None:
            accepted.close()
        else:
            self._open(accepted, client, address, found)

    def _open(
        self, accepted: socket.socket, client: object, address: Hashable, shared: HostShare
    ) -> None:
        wire = ClientSocket(accepted, shared.options)
        if self._tls is not None and shared.options.certfile is not None:
            wire = TlsClientSocket(accepted, shared.options, self._tls)
        server = endpoint(accepted.getsockname())
        connection = self._library.HostConnection(shared, wire, client, server)
        shared.pool.add(connection, address)
        shared.nursery.start_soon(run_connection, connection.run, self._log)


async def run_connection(run: Callable[[], Awaitable[None]], log: ThrottledLog) -> None:
    """Run a connection. If it fails, one line is logged, and other connections are not affected.

    Args:
        run: Serves the connection until its end.
        log: The log of the host, with a limited rate.
    """
    try:
        await run()
    except BaseException as error:
        crash, going_on = split_cancellation(error)
        if crash is None:
            raise
        verbose = logger.isEnabledFor(logging.DEBUG)
        failure, text = unwrap_single(crash), "a connection failed: %r"
        log.warning(type(failure).__name__, text, failure, exc_info=verbose and crash)
        if going_on is not None:
            raise going_on from None


async def _find_place(address: Hashable, places: tuple[HostShare, ...]) -> HostShare | None:
    """Return the first place with room for a connection from an address; None if all are full."""
    for each in places:
        while not each.pool.make_room(address):
            if not each.pool.unbegun:
                break
            # The connections of this turn use the room, and may free it in the next turn.
            await trio.lowlevel.checkpoint()
        else:
            return each
    return None


def _allowed_connections(wanted: int) -> int:
    """Raise the limit of open files for the connections; return how many are allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    if hard == resource.RLIM_INFINITY or hard > soft:
        more = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):  # some systems have a lower limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            soft = more
    allowed = min(wanted, max(soft - FILES, soft // 2))
    if allowed < wanted:
        text = "max_connections=%d needs %d open files, but the limit is %d (ulimit -n): %d at most"
        logger.warning(text, wanted, needed, soft, allowed)
    return allowed


def _only(app: Application, paths: Collection[str], status: int) -> Application:
    """Wrap an application: all requests except those for some paths are refused."""

    async def only(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] in paths:
            await app(scope, receive, send)
            return
        headers = [(b"retry-after", b"1")] if status == 503 else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    return only


def say_nothing() -> None:
    """Do nothing: the default for `leaving`."""


async def do_nothing() -> None:
    """Do nothing: the default for `stopping`."""


async def serve_asgi(
    app: Application,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    config: HostOptions | None = None,
    lifespan: AbstractAsyncContextManager[Any] | None = None,
    leaving: Callable[[], object] = say_nothing,
    stopping: Callable[[], Awaitable[None]] = do_nothing,
    grace: float = GRACE,
    probes: Collection[str] = (),
    shared: "SharedSockets | None" = None,
    task_status: trio.TaskStatus[Host] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application over HTTP/1.1 until its `Host` is stopped.

    `Host.stop` ends it gracefully. If `serve_asgi` is cancelled, only the lifespan ends gracefully.
    Signals are left to the caller.

    Args:
        app: The application; called for requests only, with scopes of type `http`. If it fails
            before its answer has begun, the failure is logged and the answer is a 500. Its `send`
            does nothing once the client is gone; a client that closes its side of the connection is
            considered gone. The head of an answer is sent with the first `http.response.body`, even
            an empty one.
        host: The address to listen on, IPv4 or IPv6, or a name for all its addresses.
        port: The port; 0 for a free one.
        config: Limits, TLS, Unix socket.
        lifespan: Entered before anything listens, exited after serving has ended.
        leaving: Called so that the application can report that it is not ready.
        stopping: Lets the application end its streams and its running requests.
        grace: Seconds for `stopping`.
        probes: Paths of its health checks. They are answered even while `config.max_connections`
            are in use, and on `config.health_port`, which serves nothing else (404).
        shared: Sockets that listen already, in the place of `host`, `port` and `config.uds`; other
            processes accept connections from them, too.
        task_status: Started with the `Host` once connections are accepted.

    Raises:
        ImportError: httptools is not installed.
        ListenError: It cannot listen, or cannot read a TLS file; an `OSError` with a one-line text.
        BaseException: Raised by the lifespan or `stopping`.
    """
    options = config or HostOptions()
    _load_library()  # a missing library is reported before anything is opened
    tls = make_context(options)
    within = trio.CancelScope()
    with single_failure(), within:
        async with lifespan or nullcontext():
            listeners = await open_listeners(host, port, options, shared)
            health: list[ListeningSocket] = []
            try:
                if options.health_port is not None:
                    where, plain = options.health_host or host, HostOptions(backlog=options.backlog)
                    health = await open_listeners(where, options.health_port, plain)
                serving = Host(
                    app,
                    options,
                    tls,
                    listeners=listeners,
                    probes=probes,
                    health=health,
                    balance=None if shared is None else shared.balance,
                )
                await serving.run(partial(task_status.started, serving), leaving, stopping, grace)
            finally:
                for each in (*listeners, *health):
                    each.close()
                within.deadline = trio.current_time() + options.lifespan_timeout
    if within.cancelled_caught:
        logger.warning("leaving the lifespan took too long and was cancelled")
