"""The alternative host: hypercorn with its trio worker, one `TCPServer` per connection.

It supports HTTP/2 and is widely deployed. Limits that it does not have (the number of connections,
the pace of bodies and readers) do not apply. Its own `serve` is not used: there, the failure of one
connection ends the program.
"""

import errno
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import attrs
import trio

from ..._limits import GRACE
from ...engine import ThrottledLog, single_failure
from ._forwarded import TrustedProxies
from ._host import do_nothing, run_connection, say_nothing
from ._listeners import ListeningSocket, open_listeners
from ._options import Application, HostOptions, ListenError, logger
from ._tls import make_context

if TYPE_CHECKING:
    from hypercorn.config import Config
    from hypercorn.trio.tcp_server import TCPServer

    from ...workers import SharedSockets


@attrs.frozen(eq=False)
class HypercornHost:
    """A running hypercorn.

    Attributes:
        urls: The addresses, as in `Host.urls`.
        port: The port; None for a Unix socket.
        accepting: The scope in which connections are accepted.
    """

    urls: tuple[str, ...]
    port: int | None
    _stopping: trio.Event = attrs.field(factory=trio.Event)
    accepting: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    def retire(self) -> None:
        """Leave new connections to other processes."""
        self.accepting.cancel()

    def stop(self) -> None:
        """Stop gracefully."""
        self._stopping.set()

    async def wait_stopped(self) -> None:
        """Wait for `stop`."""
        await self._stopping.wait()


async def serve_hypercorn(
    app: Application,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    config: HostOptions | None = None,
    lifespan: AbstractAsyncContextManager[Any] | None = None,
    leaving: Callable[[], object] = say_nothing,
    stopping: Callable[[], Awaitable[None]] = do_nothing,
    grace: float = GRACE,
    shared: "SharedSockets | None" = None,
    task_status: trio.TaskStatus[HypercornHost] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application on hypercorn, with the arguments and errors of `serve_asgi`.

    There is no `probes`: hypercorn reserves no connections for them. It supports these options of
    `config`: `uds`, the TLS options, `forwarded_allow_ips`, `max_requests`, `max_streams`,
    `max_header_size`, `keep_alive_timeout`, `handshake_timeout`, `lead`, `drain_timeout`,
    `lifespan_timeout` and `backlog`, and in the scope `body_timeout`. With `health_port` it raises
    `ListenError`.
    """
    try:
        import hypercorn.trio  # noqa: F401
    except ImportError as error:
        text = "serving on hypercorn needs hypercorn: pip install 'noizu-mcp[http]'"
        raise ImportError(text) from error

    options = config or HostOptions()
    if options.health_port is not None:
        text = "cannot listen on health_port with hypercorn, which has one port: use server='noizu'"
        raise ListenError(errno.EINVAL, text)
    tls = make_context(options)
    if tls is not None:
        tls.set_alpn_protocols(["h2", "http/1.1"])
    within = trio.CancelScope()
    with single_failure(), within:
        async with lifespan or nullcontext():
            listeners = await open_listeners(host, port, options, shared)
            serving = HypercornHost(tuple(each.url for each in listeners), listeners[0].port)
            trusting = TrustedProxies(options.forwarded_allow_ips).wrap(app)
            workers = _Connections(trusting, options, tls)
            try:
                async with trio.open_nursery() as connections:
                    async with trio.open_nursery() as accepting:
                        accept = partial(workers.accept, listeners, connections)
                        accepting.start_soon(accept, serving.accepting)
                        task_status.started(serving)
                        await serving.wait_stopped()
                        leaving()
                        await trio.sleep(options.lead)
                        serving.retire()
                    for each in listeners:
                        each.close()
                    # Before hypercorn ends: it would cut off endless streams.
                    with trio.move_on_after(grace):
                        await stopping()
                    await workers.end()
                    drain = options.drain_timeout
                    connections.cancel_scope.deadline = trio.current_time() + drain
            finally:
                for each in listeners:
                    each.close()
                within.deadline = trio.current_time() + options.lifespan_timeout
    if within.cancelled_caught:
        logger.warning("leaving the lifespan took too long and was cancelled")


class _Connections:
    """The connections of hypercorn. A connection that fails does not end others.

    Clients can make a connection fail in many ways, such as an HTTP/2 path that is not ASCII, or a
    part of a body that comes after the answer.

    Args:
        app: The application.
        options: The options of the host.
        tls: The certificate and the settings of TLS; None for plain HTTP.
    """

    def __init__(self, app: Application, options: HostOptions, tls: ssl.SSLContext | None) -> None:
        from h11 import LocalProtocolError
        from hypercorn.app_wrappers import ASGIWrapper
        from hypercorn.trio.worker_context import WorkerContext

        self._context = WorkerContext(None)
        wrapped = ASGIWrapper(self._call)
        self._make = partial(_server(), wrapped, _settings(options), self._context, {})
        self._app = app
        self._tls = tls
        self._extensions = {"noizu_mcp.unread_body": {"seconds": options.body_timeout}}
        self._log = ThrottledLog(trio.current_time, logger)
        self._protocol_error = LocalProtocolError

    async def accept(
        self, listeners: list[ListeningSocket], nursery: trio.Nursery, within: trio.CancelScope
    ) -> None:
        """Accept connections until a scope is cancelled, and serve them in a nursery."""
        opened: list[trio.SocketListener | trio.SSLListener[trio.SocketStream]] = []
        for each in listeners:
            # A copy, which trio closes.
            copy = socket.socket(fileno=os.dup(each.fileno()))
            plain = trio.SocketListener(trio.socket.from_stdlib_socket(copy))
            if self._tls is None:
                opened.append(plain)
            else:
                opened.append(trio.SSLListener(plain, self._tls, https_compatible=True))
        with within:
            await trio.serve_listeners(self._serve, opened, handler_nursery=nursery)

    async def end(self) -> None:
        """Close connections that have no request, from now on."""
        await self._context.terminated.set()

    async def _serve(self, stream: Any) -> None:
        async def run() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_close_at_end, stream)
                await self._make(stream)
                nursery.cancel_scope.cancel()

        await run_connection(run, self._log)

    async def _call(self, scope: Any, receive: Any, send: Any) -> None:
        scope["extensions"].update(self._extensions)
        try:
            await self._app(scope, receive, send)
        except self._protocol_error as error:
            # For example the answer to a WebSocket that sends too early. hypercorn would log a
            # traceback each time, and clients could fill the log.
            self._log.warning(type(error).__name__, "a connection failed: %r", error)


@cache
def _server() -> "type[TCPServer]":
    """Make a subclass of hypercorn's connection that does not wait for a client that left."""
    from hypercorn.events import Event, Updated
    from hypercorn.protocol.h2 import H2Protocol
    from hypercorn.trio.tcp_server import TCPServer

    class HypercornConnection(TCPServer):
        """A connection that ends as soon as its client has disconnected."""

        _has_left = False

        async def protocol_send(self, event: Event) -> None:
            # The end of an answer would start to wait for the next request.
            if not (self._has_left and isinstance(event, Updated)):
                await super().protocol_send(event)

        async def _read_data(self) -> None:
            await super()._read_data()
            self._has_left = True
            await self.idle_task.stop()
            if isinstance(self.protocol.protocol, H2Protocol):
                # Nothing more is written, so an answer would wait forever.
                for buffer in [*self.protocol.protocol.stream_buffers.values()]:
                    await buffer.close()

    return HypercornConnection


async def _close_at_end(stream: Any) -> None:
    """Close a connection when this is cancelled: hypercorn shields its writes."""
    plain = stream if isinstance(stream, trio.SocketStream) else stream.transport_stream
    try:
        await trio.sleep_forever()
    finally:
        plain.socket.close()


def _settings(options: HostOptions) -> "Config":
    from hypercorn.config import Config

    settings = Config()
    settings.accesslog = None
    settings.errorlog = logger
    # The codec of h2 logs every header at DEBUG, including tokens.
    codec = logging.getLogger("hpack")
    codec.setLevel(max(codec.level, logging.INFO))
    settings.h11_max_incomplete_size = options.max_header_size
    settings.h2_max_header_list_size = options.max_header_size
    settings.h2_max_concurrent_streams = options.max_streams
    settings.keep_alive_max_requests = options.max_requests
    settings.keep_alive_timeout = options.keep_alive_timeout
    settings.ssl_handshake_timeout = options.handshake_timeout
    settings.include_server_header = False
    return settings
