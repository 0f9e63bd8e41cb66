"""The verb over the noun: serve a server on a stream."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from ..engine import Link, LoopGate, MessageStream, single_failure
from ..protocol import Origin
from ..types import Principal
from ._authored import entered
from ._bus import Windows
from ._connection import Connection
from ._server import Server
from ._tasks import TaskStore
from .features import ROUTES

#: Seconds that running requests get to end once their peer has gone or the program stops.
GRACE: Final = 5.0


class StreamConnection(Connection):
    """A connection that one stream carries, from its first message to its end.

    Args:
        server: The server.
        stream: Carries the messages; `run` closes it.
        state: What the server's lifespan yielded.
        transport: What `ctx.transport` says.
        principal: Who is at the other end, as the program that serves says; None: it does not.
    """

    def __init__(
        self,
        server: Server,
        stream: MessageStream,
        state: Any,
        transport: str,
        principal: Principal | None = None,
    ) -> None:
        tasks = TaskStore(server.options, self.linger, server.telemetry)
        gate, windows = LoopGate(), Windows(self.linger)
        super().__init__(server, ROUTES, state, transport, gate, tasks=tasks, windows=windows)
        self.peer.origin = Origin(None, principal)
        self.desk = self._link = Link(stream, self.peer, self, server.options.limits)
        self._link.watch(self.listeners, self)
        self._nursery: trio.Nursery
        self._ended = 0.0

    async def run(self, grace: float) -> None:
        """Serve until the peer ends the connection or `stop` is called.

        Args:
            grace: Seconds that running requests and tasks get once no more can come.
        """
        async with trio.open_nursery() as self._nursery:
            try:
                await self._link.run(grace=grace)
                left = self._ended + grace - trio.current_time()
                await self.task_store.settle(max(0.0, left))
            finally:
                self.close()
                self._nursery.cancel_scope.cancel()

    def closing(self) -> None:
        """No more messages come; see `Connection`."""
        super().closing()
        self._ended = trio.current_time()

    def stop(self) -> None:
        """Take no more messages and let `run` end in order."""
        self._link.stop()

    def linger(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run something that ends after the requests; see `Connection`."""
        self._nursery.start_soon(work)


@asynccontextmanager
async def open_connection(
    server: Server, stream: MessageStream, *, transport: str, principal: Principal | None = None
) -> AsyncIterator[StreamConnection]:
    """Make the connection of a server to one peer; its `run` serves it, its `stop` ends it.

    Args:
        server: The server; its `lifespan` surrounds the connection.
        stream: Carries the messages; `run` closes it.
        transport: What `ctx.transport` says: `stdio`, `http` or `memory`.
        principal: Who is at the other end, `ctx.auth`; None where nobody says so.
    """
    async with entered(server.lifespan()) as state:
        yield StreamConnection(server, stream, state, transport, principal)


async def serve(
    server: Server,
    stream: MessageStream,
    *,
    transport: str,
    grace: float = GRACE,
    principal: Principal | None = None,
) -> None:
    """Serve one connection, from its first message to its orderly end.

    Args:
        server: The server.
        stream: Carries the messages; closed at the end.
        transport: What `ctx.transport` says.
        grace: Seconds that running requests get once no more can come.
        principal: Who is at the other end, `ctx.auth`; None where nobody says so.
    """
    with single_failure():
        async with open_connection(
            server, stream, transport=transport, principal=principal
        ) as connection:
            await connection.run(grace)
