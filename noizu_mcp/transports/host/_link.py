"""The link between both protocols and the connection that carries them."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.events import Event
from hypercorn.typing import (
    ASGIReceiveEvent,
    ASGISendEvent,
    ConnectionState,
    TaskGroup,
    WorkerContext,
)

from ...engine import split_cancellation
from .._asgi_extension import QuickSend, WriteNowait
from ._application import Application, Endpoint, failures
from ._config import HostConfig
from ._inbox import Inbox
from ._options import HostOptions


class Carrier(Protocol):
    """A connection, as its protocol sees it."""

    app: Application
    config: HostConfig
    options: HostOptions
    context: WorkerContext
    nursery: trio.Nursery
    secure: bool
    client: Endpoint
    server: Endpoint
    state: ConnectionState
    running: int

    async def deliver(self, event: Event) -> None:
        """Take what the protocol sends."""
        ...

    @property
    def is_free(self) -> bool:
        """True while `write` writes."""
        ...

    def write(self, data: bytes) -> int:
        """Write what the system takes at once; returns how much that is."""
        ...

    def stop(self) -> None:
        """Read nothing more."""
        ...

    def wake(self) -> None:
        """Let the reader go on with what it has read already."""
        ...


def protocol_arguments(carrier: Carrier) -> tuple[Any, ...]:
    """Give what a protocol of hypercorn is made with, in its order."""
    return (
        ASGIWrapper(carrier.app),
        carrier.config,
        carrier.context,
        None,  # a task group: each stream has its own
        carrier.state,
        carrier.secure,
        carrier.client,
        carrier.server,
        carrier.deliver,
    )


def task_group(
    carrier: Carrier, inbox: Inbox, write_nowait: WriteNowait | None = None
) -> TaskGroup:
    """Make what starts the application for one request, in the words of hypercorn."""
    return cast(TaskGroup, AppTask(carrier, inbox, write_nowait))


class AppTask:
    """The part of a task group of hypercorn that one request needs.

    Args:
        carrier: The connection.
        inbox: What the application receives from.
        write_nowait: Writes a part of the answer at once; None: that cannot be.
    """

    def __init__(self, carrier: Carrier, inbox: Inbox, write_nowait: WriteNowait | None) -> None:
        self._carrier: Final = carrier
        self._inbox: Final = inbox
        self._write_nowait: Final = write_nowait

    async def spawn_app(
        self,
        _app: Any,
        _config: Any,
        scope: Any,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        """Start it; gives what takes its events."""
        self._carrier.running += 1
        self._carrier.nursery.start_soon(self._run, scope, send)
        return self._inbox.put

    async def _run(
        self, scope: Any, send: Callable[[ASGISendEvent | None], Awaitable[None]]
    ) -> None:
        try:
            await self._call(scope, send)
            await send(None)
        finally:
            self._carrier.running -= 1
            await self._inbox.close()

    async def _call(self, scope: Any, send: Any) -> None:
        if self._write_nowait is not None:
            send = QuickSend(send)
            send.write_nowait = self._write_nowait
        try:
            await self._carrier.app(scope, self._inbox.receive, send)
        except BaseException as error:  # noqa: BLE001 - the author's code; what must go on does
            crash, going_on = split_cancellation(error)
            if crash is not None:
                # As it was sent: decoded, it could hold lines that look like records.
                path, method = scope["raw_path"].decode(), scope["method"]
                text = "the application failed at %s %s"
                failures.crash(method, text, method, path, error=crash)
            if going_on is not None:
                raise going_on from None
