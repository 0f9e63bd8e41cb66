"""`logging/setLevel`, for revisions with a handshake; 2026-07-28 sends the level with requests."""

from ..._errors import McpError
from ...engine import Exchange
from ...jsonrpc import INVALID_PARAMS
from ...types import LOG_LEVELS
from .._connection import Connection


def set_level(connection: Connection, exchange: Exchange) -> None:
    """Set the least severe level that the client wants (2025-11-25 `server/utilities/logging`).

    Raises:
        McpError: There is no such level (-32602).
    """
    level = (exchange.request.params or {}).get("level")
    if level not in LOG_LEVELS:
        raise McpError(INVALID_PARAMS, f"Invalid log level; use one of {', '.join(LOG_LEVELS)}")
    connection.peer.handshake.log_level = level
    connection.reply(exchange, {})
