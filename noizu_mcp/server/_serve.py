"""The verb over the noun: serve a server on a stream."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ..engine import MessageStream, single_failure
from ._connection import Connection
from ._server import Server
from .features import ROUTES

#: Seconds that running requests get to end once their peer has gone or the program stops.
GRACE: Final = 5.0


@asynccontextmanager
async def open_connection(
    server: Server, stream: MessageStream, *, transport: str
) -> AsyncIterator[Connection]:
    """Make the connection of a server to one peer; its `run` serves it, its `stop` ends it.

    Args:
        server: The server; its `lifespan` surrounds the connection.
        stream: Carries the messages; `run` closes it.
        transport: What `ctx.transport` says: `stdio`, `http` or `memory`.
    """
    async with server.lifespan() as state:
        yield Connection(server, ROUTES, stream, state, transport)


async def serve(
    server: Server, stream: MessageStream, *, transport: str, grace: float = GRACE
) -> None:
    """Serve one connection, from its first message to its orderly end.

    Args:
        server: The server.
        stream: Carries the messages; closed at the end.
        transport: What `ctx.transport` says.
        grace: Seconds that running requests get once no more can come.
    """
    with single_failure():
        async with open_connection(server, stream, transport=transport) as connection:
            await connection.run(grace)
