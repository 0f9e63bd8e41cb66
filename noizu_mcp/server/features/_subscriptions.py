"""`subscriptions/listen` (2026-07-28 `basic/patterns/subscriptions`)."""

from collections.abc import Mapping
from typing import Any, Final

from ...engine import Exchange, Job
from ...protocol import ACKNOWLEDGED
from .._connection import Connection

URIS: Final = "resourceSubscriptions"


def listen(connection: Connection, exchange: Exchange) -> Job | None:
    """Open a listen request: acknowledge what can be told; it stays open without a task.

    Raises:
        McpError: The filter is no filter, or too many are open (-32602).
    """
    params = exchange.request.params or {}
    given = params.get("notifications")
    wanted: dict[str, Any] = given if isinstance(given, dict) else {}
    uris: Any = wanted.get(URIS)
    if not _can_be_asked(connection, uris):
        _open(connection, exchange, params)
        return None
    context = connection.context(exchange)

    async def ask() -> None:
        # What the caller may not watch is left out of the agreement, not refused.
        allowed = [uri for uri in uris if await connection.server.can_watch(uri, context)]
        _open(connection, exchange, {"notifications": {**wanted, URIS: allowed}})

    return connection.in_background(exchange, ask)


def _can_be_asked(connection: Connection, uris: Any) -> bool:
    """Tell whether it is worth to ask about each URI; what is no filter or too much is not."""
    return (
        connection.server.can_be_watched
        and isinstance(uris, list)
        and len(uris) <= connection.server.options.limits.subscriptions
        and all(isinstance(uri, str) for uri in uris)
    )


def _open(connection: Connection, exchange: Exchange, params: Mapping[str, Any]) -> None:
    capabilities = connection.server.capabilities()
    listening = connection.interests.listen(exchange.id, params, capabilities)
    acknowledged = listening.tag(ACKNOWLEDGED, {"notifications": listening.agreed()})
    connection.listen(exchange)
    connection.link.send(acknowledged)
