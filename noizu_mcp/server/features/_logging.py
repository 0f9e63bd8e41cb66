"""`logging/setLevel`, for revisions with a handshake; 2026-07-28 sends the level with requests."""

from ..._errors import McpError
from ...jsonrpc import INVALID_PARAMS
from ...types import LOG_LEVELS
from .._request_context import RequestContext


def set_level(ctx: RequestContext) -> None:
    """Set the least severe level that the client wants (2025-11-25 `server/utilities/logging`).

    Raises:
        McpError: There is no such level (-32602).
    """
    level = (ctx.request.params or {}).get("level")
    if level not in LOG_LEVELS:
        raise McpError(INVALID_PARAMS, f"Invalid log level; use one of {', '.join(LOG_LEVELS)}")
    if ctx.dispatcher is not None:  # the method belongs to revisions with sessions
        ctx.dispatcher.peer.handshake.log_level = level
    ctx.complete({})
