"""`subscriptions/listen` (2026-07-28 `basic/patterns/subscriptions`)."""

from contextlib import suppress

import trio

from ..._errors import McpError
from ...engine import Exchange, Job
from ...protocol import ACKNOWLEDGED, Listening
from .._authored import authored
from .._connection import Connection


def listen(connection: Connection, exchange: Exchange) -> Job | None:
    """Open a listen request: acknowledge what can be told; it stays open without a task.

    What the caller may not watch is left out of the agreement, not refused.

    Raises:
        McpError: The filter is no filter, or too many are open (-32602).
    """
    server = connection.server
    params = exchange.request.params or {}
    wanted = connection.interests.read(exchange.id, params, server.capabilities())
    if not wanted.uris or not server.overrides("can_watch", "subscribe"):
        allowed = frozenset(filter(server.registry.is_subscribable, wanted.uris))
        _open(connection, exchange, wanted._replace(uris=allowed))
        return None
    context = connection.context(exchange)

    async def ask() -> None:
        taken: list[str] = []
        try:
            for uri in sorted(wanted.uris):
                with suppress(McpError):
                    await authored(server.subscribe(uri, context))
                    taken.append(uri)
            # A hook may have passed over the cancellation: nothing may be opened after it.
            await trio.lowlevel.checkpoint_if_cancelled()
            _open(connection, exchange, wanted._replace(uris=frozenset(taken)))
        except BaseException:
            connection.leave(taken, exchange)
            raise

    return connection.in_background(exchange, ask)


def _open(connection: Connection, exchange: Exchange, agreed: Listening) -> None:
    connection.interests.listen(agreed)
    connection.listen(exchange)
    connection.desk.send(agreed.tag(ACKNOWLEDGED, {"notifications": agreed.agreed()}))
