"""Serving an ASGI application on hypercorn's protocols, in trio, bounded."""

import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import trio

from ...engine import Seldom, single_failure, split_cancellation, unwrap_single
from ...server import GRACE
from ._application import Application, logger
from ._options import HostOptions
from ._places import Places
from ._sockets import accept_nowait, close_listener, endpoint, open_listeners, url_of
from ._wire import MAX_RECEIVE, TlsWire, Wire

if TYPE_CHECKING:
    from ._config import HostConfig
    from ._connection import Connection

#: Seconds until a process that has no room for a connection tries again.
NO_ROOM_PAUSE: Final = 0.1
#: What it says then: no descriptor, here or in the system, or no memory.
_NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"retry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


def load_hypercorn() -> ModuleType:
    """Load what needs hypercorn.

    Raises:
        ImportError: It is not installed.
    """
    try:
        from . import _hypercorn
    except ImportError as error:
        text = "serving over HTTP needs hypercorn: pip install 'noizu-mcp[http]'"
        raise ImportError(text) from error
    return _hypercorn


class Host:
    """A host that serves; `serve_asgi` and `serve_http` make it.

    Args:
        app: The application.
        config: The settings of hypercorn, with the options of the host.
        tls: What it is in TLS; None: it speaks plain HTTP.
        listeners: Where it listens; closed at its end.

    Attributes:
        urls: Where it listens: `http://127.0.0.1:8000`, `https://[::1]:8000`, `unix:/path`.
        port: The port; None for a Unix socket.
    """

    def __init__(
        self,
        app: Application,
        config: "HostConfig",
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
        self._library: Final = load_hypercorn()
        # The events of it are hypercorn's: it tells the protocols that the host ends.
        self._context: Final = self._library.WorkerContext(None)
        self._stopping: Final = trio.Event()
        self._connections: Final[Places[Connection]] = Places(options.max_connections)
        self._log: Final = Seldom(trio.current_time, logger)

    @property
    def connections(self) -> int:
        """The number of connections."""
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
        """Serve until `stop`, and end; called once, by what made it.

        Args:
            started: Called when connections are accepted.
            leaving: Called when `stop` is, before anything else ends.
            stopping: Lets the application end its streams and its running requests.
            grace: Seconds that it gets.

        Raises:
            OSError: A listener fails.
            BaseException: What `stopping` raises.
        """
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
                self._log.warning("room", "no room for another connection: %s", error.strerror)
                await trio.sleep(NO_ROOM_PAUSE)
                continue
            if accepted is not None and self._connections.make_room():
                connections.start_soon(self._serve, self._connect(*accepted))
            elif accepted is not None:
                self._turn_away(accepted[0])

    def _turn_away(self, connection: socket.socket) -> None:
        text = "connections are turned away: max_connections=%d are busy"
        self._log.warning("crowd", text, self._options.max_connections)
        with connection, contextlib.suppress(OSError):
            if self._tls is None:  # else nothing could be said without a handshake
                connection.send(_BUSY)
                connection.shutdown(socket.SHUT_WR)
                # What is left unread would reset the connection, and the answer would be lost.
                connection.recv(MAX_RECEIVE)

    def _connect(self, connection: socket.socket, address: Any) -> "Connection":
        made: Connection = self._library.Connection(
            app=self._app,
            config=self._config,
            options=self._options,
            context=self._context,
            wire=Wire(connection, self._options)
            if self._tls is None
            else TlsWire(connection, self._options, self._tls),
            client=endpoint(address),
            server=endpoint(connection.getsockname()),
            places=self._connections,
        )
        self._connections.add(made)
        return made

    async def _serve(self, connection: "Connection") -> None:
        try:
            await connection.run()
        except BaseException as error:  # noqa: BLE001 - what must go on does
            crash, going_on = split_cancellation(error)
            if crash is not None:
                # One connection must not end the others, and no client may fill the log.
                verbose = logger.isEnabledFor(logging.DEBUG)
                failure, text = unwrap_single(crash), "a connection failed: %r"
                self._log.warning(type(failure).__name__, text, failure, exc_info=verbose and crash)
            if going_on is not None:
                raise going_on from None


def _say_nothing() -> None:
    """Do nothing: the application has no health check to change before it is stopped."""


async def _nothing() -> None:
    """Do nothing: the application has no streams to end before it is stopped."""


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
            nothing when the client is gone; one that has ended its side of the connection is, since
            nobody can tell it from one that has left. The head of an answer goes out with the first
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
        ImportError: hypercorn is not installed.
        OSError: It cannot listen, or a file of TLS cannot be read; the text says why, in one line.
        BaseException: What the lifespan or `stopping` raises.
    """
    options = config or HostOptions()
    settings: HostConfig = load_hypercorn().HostConfig(options)
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
