"""`skills/list`, `skills/get`, `resources/directory/read` (the extension of SEP-2640)."""

from collections.abc import Mapping
from typing import Any

from ..._errors import McpError
from ...engine import Exchange, Job
from ...jsonrpc import INVALID_PARAMS
from .._connection import Connection
from ._lists import list_page


def list_skills(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `skills/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    shelf = connection.server.registry.skill_shelf
    return list_page(connection, exchange, shelf, "skills", None)


def get_skill(connection: Connection, exchange: Exchange) -> None:
    """Answer `skills/get`.

    Raises:
        McpError: There is no such skill (-32602).
    """
    server = connection.server
    uri = _uri(exchange)
    spec = server.registry.skill_shelf.specs.get(uri)
    if spec is None:
        raise McpError(INVALID_PARAMS, "Skill not found", {"uri": uri})
    caching = server.options.cache_of("skills", guarded=spec.requires is not None)
    connection.reply(exchange, {"skill": spec.definition, **caching.to_wire()})


def read_directory(connection: Connection, exchange: Exchange) -> None:
    """Answer `resources/directory/read`; the result is none that clients may keep.

    Raises:
        McpError: There is no such directory, or the cursor is invalid (-32602).
    """
    registry = connection.server.registry
    uri = _uri(exchange)
    children = registry.directories.get(uri)
    if children is None:
        raise McpError(INVALID_PARAMS, "Directory not found", {"uri": uri})
    shelf = registry.resource_shelf
    page = shelf.cut(list(children.values()), (exchange.request.params or {}).get("cursor"))
    connection.reply(exchange, shelf.write(page, exchange.envelope.revision))


def _uri(exchange: Exchange) -> str:
    params: Mapping[str, Any] = exchange.request.params or {}
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise McpError(INVALID_PARAMS, f"{exchange.request.method} requires a uri")
    return uri
