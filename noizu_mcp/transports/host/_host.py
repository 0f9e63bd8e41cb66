"""Serving an ASGI application on hypercorn's protocols, in trio, bounded."""

import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any, Final

import trio
from hypercorn.trio.worker_context import WorkerContext

from ...engine import lone, single_failure, split
from ...server import GRACE
from ._config import HostConfig, logger
from ._connection import Connection
from ._link import Application
from ._options import HostOptions
from ._sockets import accept_nowait, close_listener, endpoint, open_listeners, url_of
from ._wire import MAX_RECEIVE, TlsWire, Wire

#: Seconds until a process that has no room for a connection tries again.
NO_ROOM_PAUSE: Final = 0.1
#: What it says then: no descriptor, here or in the system, or no memory.
_NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"retry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


class Host:
    """A host that serves.

    Attributes:
        urls: Where it listens: `http://127.0.0.1:8000`, `https://[::1]:8000`, `unix:/path`.
        port: The port; None for a Unix socket.
    """

    def __init__(
        self,
        app: Application,
        config: HostConfig,
        tls: ssl.SSLContext | None,
        listeners: list[socket.socket],
    ) -> None:
        options = config.options
        self.urls: Final = tuple(url_of(each, options.scheme) for each in listeners)
        self.port: int | None = None if options.uds else listeners[0].getsockname()[1]
        self._app: Final = app
        self._options: Final = options
        self._listeners: Final = listeners
        self._config: Final = config
        self._tls: Final = tls
        # The events of it are hypercorn's: it tells the protocols that the host ends.
        self._context: Final = WorkerContext(None)
        self._stopping: Final = trio.Event()
        self._connections: Final[dict[Connection, None]] = {}
        # In the order in which they became idle.
        self._idle: Final[dict[Connection, None]] = {}
        self._crowded = False

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    def stop(self) -> None:
        """End in order; `serve_asgi` returns when that is done."""
        self._stopping.set()

    async def run(
        self,
        started: Callable[[], None],
        leaving: Callable[[], object],
        stopping: Callable[[], Awaitable[None]],
        grace: float,
    ) -> None:
        """Serve until `stop`, and end; see `serve_asgi`."""
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                for each in self._listeners:
                    accepting.start_soon(self._accept, each, connections)
                started()
                await self._stopping.wait()
                leaving()
                await trio.sleep(self._options.lead)
                accepting.cancel_scope.cancel()
            for each in self._listeners:
                close_listener(each)
            await self._end(stopping, grace)
            connections.cancel_scope.deadline = trio.current_time() + self._options.drain_timeout

    async def _end(self, stopping: Callable[[], Awaitable[None]], grace: float) -> None:
        await self._context.terminated.set()
        for each in list(self._connections):
            each.end()
        with trio.move_on_after(grace):
            await stopping()

    async def _accept(self, listener: socket.socket, connections: trio.Nursery) -> None:
        while True:
            await trio.lowlevel.wait_readable(listener)
            try:
                accepted = accept_nowait(listener)
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                logger.warning("no room for another connection: %s", error.strerror)
                await trio.sleep(NO_ROOM_PAUSE)
                continue
            if accepted is not None and self._has_room():
                connections.start_soon(self._serve, self._connect(*accepted))
            elif accepted is not None:
                self._turn_away(accepted[0])

    def _has_room(self) -> bool:
        """Tell whether one more may be served; the one that was idle for longest makes room."""
        if self.connections < self._options.max_connections:
            self._crowded = False
            return True
        if not self._idle:
            return False
        oldest = next(iter(self._idle))
        del self._idle[oldest]  # at once, so that it makes room for one only
        oldest.drop()
        return True

    def _turn_away(self, connection: socket.socket) -> None:
        if not self._crowded:
            self._crowded = True
            limit = self._options.max_connections
            logger.warning("connections are turned away: max_connections=%d are busy", limit)
        with connection, contextlib.suppress(OSError):
            if self._tls is None:  # else nothing could be said without a handshake
                connection.send(_BUSY)
                connection.shutdown(socket.SHUT_WR)
                # What is left unread would reset the connection, and the answer would be lost.
                connection.recv(MAX_RECEIVE)

    def _connect(self, connection: socket.socket, address: Any) -> Connection:
        made = Connection(
            app=self._app,
            config=self._config,
            options=self._options,
            context=self._context,
            wire=Wire(connection, self._options)
            if self._tls is None
            else TlsWire(connection, self._options, self._tls),
            client=endpoint(address),
            server=endpoint(connection.getsockname()),
            on_idle=self._set_idle,
        )
        self._connections[made] = None
        return made

    async def _serve(self, connection: Connection) -> None:
        try:
            await connection.run()
        except BaseException as error:  # noqa: BLE001 - what must go on does
            crash, going_on = split(error)
            if crash is not None:
                # One connection must not end the others, and no client may fill the log.
                verbose = logger.isEnabledFor(logging.DEBUG)
                logger.warning("a connection failed: %r", lone(crash), exc_info=verbose and crash)
            if going_on is not None:
                raise going_on from None
        finally:
            self._idle.pop(connection, None)
            del self._connections[connection]

    def _set_idle(self, connection: Connection, idle: bool) -> None:
        self._idle.pop(connection, None)
        if idle:
            self._idle[connection] = None


def _say_nothing() -> None:
    """What an application without a health check has to say before it is stopped."""


async def _nothing() -> None:
    """What an application without streams has to do before it is stopped."""


async def serve_asgi(
    app: Application,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    config: HostOptions | None = None,
    lifespan: AbstractAsyncContextManager[Any] | None = None,
    leaving: Callable[[], object] = _say_nothing,
    stopping: Callable[[], Awaitable[None]] = _nothing,
    grace: float = GRACE,
    task_status: trio.TaskStatus[Host] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application over HTTP/1.1 and HTTP/2 until its `Host` is stopped.

    `Host.stop` ends it in order: `leaving` is called, and for `config.lead` seconds all goes on;
    then nothing more is accepted, idle connections are closed, `stopping` has `grace` seconds,
    answers under way have `config.drain_timeout`, every connection is closed, whatever its client
    does, and the lifespan is left within `config.lifespan_timeout`. What shields itself from
    cancellation, or blocks, is waited for: nothing here ends it. To cancel `serve_asgi` leaves out
    everything but the end of the lifespan. Signals are left to the caller.

    Args:
        app: The application; called for requests only, with scopes of type `http`. One that fails
            before its answer has begun is answered for with 500, and logged. Its `send` does
            nothing when the client is gone. The head of an answer goes out with the first
            `http.response.body`, be it empty.
        host: The address to listen at, IPv4 or IPv6, or a name: all its addresses.
        port: The port; 0 for a free one.
        config: Limits, TLS, Unix socket.
        lifespan: Entered before anything listens, left when nothing is served any more.
        leaving: Lets the application say that it is not ready any more.
        stopping: Lets the application end its streams and its running requests.
        grace: Seconds that `stopping` gets.
        task_status: Started with the `Host` when connections are accepted.

    Raises:
        OSError: It cannot listen, or a file of TLS cannot be read; the text says why, in one line.
        BaseException: What the lifespan or `stopping` raises.
    """
    options = config or HostOptions()
    settings = HostConfig(options)
    tls = settings.create_ssl_context()
    within = trio.CancelScope()
    with single_failure(), within:
        async with lifespan or nullcontext():
            listeners = await open_listeners(host, port, options)
            try:
                serving = Host(app, settings, tls, listeners)
                await serving.run(partial(task_status.started, serving), leaving, stopping, grace)
            finally:
                for each in listeners:
                    close_listener(each)
                within.deadline = trio.current_time() + options.lifespan_timeout
    if within.cancelled_caught:
        logger.warning("leaving the lifespan took too long and was cancelled")
