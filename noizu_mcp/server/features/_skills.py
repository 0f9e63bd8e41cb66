"""`skills/list`, `skills/get`, `resources/directory/read` (the extension of SEP-2640)."""

from collections.abc import Mapping
from typing import Any

from ..._errors import McpError
from ...engine import Job
from ...jsonrpc import INVALID_PARAMS
from .._request_context import RequestContext
from ._lists import list_page


def list_skills(ctx: RequestContext) -> Job | None:
    """Answer `skills/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    collection = ctx.running.server.registry.skills
    return list_page(ctx, collection, "skills", None)


def get_skill(ctx: RequestContext) -> None:
    """Answer `skills/get`.

    Raises:
        McpError: There is no such skill (-32602).
    """
    server = ctx.running.server
    uri = _uri(ctx)
    spec = server.registry.skills.specs.get(uri)
    if spec is None:
        raise McpError(INVALID_PARAMS, "Skill not found", {"uri": uri})
    # A skill with scopes is private to its caller, whatever the option says: a shared cache checks
    # no scopes.
    caching = server.options.cache_of("skills", guarded=spec.requires is not None)
    ctx.complete({"skill": spec.definition, **caching.to_wire()})


def read_directory(ctx: RequestContext) -> None:
    """Answer `resources/directory/read`; its result carries no cache hints.

    Raises:
        McpError: There is no such directory, or the cursor is invalid (-32602).
    """
    registry = ctx.running.server.registry
    uri = _uri(ctx)
    children = registry.directories.get(uri)
    if children is None:
        raise McpError(INVALID_PARAMS, "Directory not found", {"uri": uri})
    collection = registry.resources
    page = collection.cut(list(children.values()), (ctx.request.params or {}).get("cursor"))
    ctx.complete(collection.write(page, ctx.envelope.revision))


def _uri(ctx: RequestContext) -> str:
    params: Mapping[str, Any] = ctx.request.params or {}
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise McpError(INVALID_PARAMS, f"{ctx.request.method} requires a uri")
    return uri
