"""`subscriptions/listen` (2026-07-28 `basic/patterns/subscriptions`)."""

from ...engine import Exchange
from ...protocol import ACKNOWLEDGED
from .._connection import Connection


def listen(connection: Connection, exchange: Exchange) -> None:
    """Open a listen request: acknowledge what can be told; it stays open without a task.

    Raises:
        McpError: The filter is no filter, or too many are open (-32602).
    """
    capabilities = connection.server.capabilities()
    params = exchange.request.params or {}
    listening = connection.interests.listen(exchange.id, params, capabilities)
    acknowledged = listening.tag(ACKNOWLEDGED, {"notifications": listening.agreed()})
    connection.listen(exchange)
    connection.link.send(acknowledged)
