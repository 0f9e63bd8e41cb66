"""The other host: hypercorn with its trio worker, by its documented interface.

It has HTTP/2, and the habits of a server that many know. Limits that it does not have (the number
of connections, the pace of bodies and readers) do not hold with it.
"""

import errno
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import attrs
import trio

from ...engine import single_failure
from ...server import GRACE
from ._forwarded import TrustedProxies
from ._host import do_nothing, say_nothing
from ._listeners import Listener, open_listeners
from ._options import Application, HostOptions, ListenError, logger
from ._tls import make_context

if TYPE_CHECKING:
    from hypercorn.config import Config


@attrs.frozen(eq=False)
class HypercornHost:
    """A hypercorn that serves.

    Attributes:
        urls: Where it listens, as `Host.urls`.
        port: The port; None for a Unix socket.
    """

    urls: tuple[str, ...]
    port: int | None
    _stopping: trio.Event = attrs.field(factory=trio.Event)

    def stop(self) -> None:
        """End in order."""
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
    task_status: trio.TaskStatus[HypercornHost] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application on hypercorn; arguments and errors are those of `serve_asgi`.

    There is no `probes`: hypercorn keeps no places for them. Of `config` it has the options `uds`,
    those of TLS, `forwarded_allow_ips`, `max_requests`, `max_streams`, `max_header_size`,
    `keep_alive_timeout`, `lead`, `drain_timeout` and `backlog`. With `health_port` it raises
    `ListenError`.
    """
    try:
        from hypercorn.trio import serve
    except ImportError as error:
        text = "serving on hypercorn needs hypercorn: pip install 'noizu-mcp[http]'"
        raise ImportError(text) from error

    options = config or HostOptions()
    if options.health_port is not None:
        text = "cannot listen on health_port with hypercorn, which has one port: use server='noizu'"
        raise ListenError(errno.EINVAL, text)
    make_context(options)  # faults in the files are explained there

    async def stopped() -> None:
        await serving.wait_stopped()
        leaving()
        await trio.sleep(options.lead)
        # hypercorn closes connections after this; streams that never end would be cut off.
        with trio.move_on_after(grace):
            await stopping()

    within = trio.CancelScope()
    with single_failure(), within:
        async with lifespan or nullcontext():
            listeners = await open_listeners(host, port, options)
            serving = HypercornHost(tuple(each.url for each in listeners), listeners[0].port)
            try:
                settings = _settings(options, listeners)
                async with trio.open_nursery() as nursery:
                    trusting = TrustedProxies(options.forwarded_allow_ips).wrap(app)
                    await nursery.start(_serve, serve, trusting, settings, stopped)
                    task_status.started(serving)
            finally:
                for each in listeners:
                    each.close()
                within.deadline = trio.current_time() + options.lifespan_timeout
    if within.cancelled_caught:
        logger.warning("leaving the lifespan took too long and was cancelled")


async def _serve(
    serve: Callable[..., Awaitable[None]],
    app: Application,
    settings: "Config",
    stopped: Callable[[], Awaitable[None]],
    *,
    task_status: trio.TaskStatus[Any],
) -> None:
    async def requests_only(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        # The lifespan has begun already, and ends after hypercorn.
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})

    await serve(requests_only, settings, shutdown_trigger=stopped, task_status=task_status)


def _settings(options: HostOptions, listeners: list[Listener]) -> "Config":
    from hypercorn.config import Config

    settings = Config()
    # Copies of our own sockets: hypercorn would not say where it cannot listen, nor bind a name at
    # all its addresses.
    settings.bind = [f"fd://{os.dup(each.fileno())}" for each in listeners]
    settings.accesslog = None
    settings.errorlog = logger
    # h2's codec writes every header at DEBUG, with the tokens in them.
    codec = logging.getLogger("hpack")
    codec.setLevel(max(codec.level, logging.INFO))
    settings.certfile = options.certfile
    settings.keyfile = options.keyfile or options.certfile
    settings.keyfile_password = options.keyfile_password
    settings.ca_certs = options.ca_certs
    settings.verify_mode = options.verify_mode
    settings.ciphers = options.ciphers or settings.ciphers
    settings.h11_max_incomplete_size = options.max_header_size
    settings.h2_max_header_list_size = options.max_header_size
    settings.h2_max_concurrent_streams = options.max_streams
    settings.keep_alive_max_requests = options.max_requests
    settings.keep_alive_timeout = options.keep_alive_timeout
    settings.graceful_timeout = options.drain_timeout
    settings.backlog = options.backlog
    settings.include_server_header = False
    return settings
