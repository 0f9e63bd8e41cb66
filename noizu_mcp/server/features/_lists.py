"""The list methods: `tools/list`, `prompts/list`, `resources/list`, `resources/templates/list`."""

from collections.abc import Awaitable, Callable
from typing import Any

from ...components import Context
from ...engine import Job, run_user_code
from .._request_context import RequestContext
from ..registry._collection import Collection

Ask = Callable[[str | None, Context], Awaitable[Any]]


def list_page(
    ctx: RequestContext,
    collection: Collection[Any],
    cache: str,
    ask: Ask | None,
) -> Job | None:
    """Answer a list method.

    Args:
        ctx: The request.
        collection: The registrations, and the wire form of their lists.
        cache: The kind of cache hints.
        ask: The author's code that computes the list for the caller; returns a `Page`, or a list
            without further pages. None: the answer is the rendered list of registrations.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    cursor = (ctx.request.params or {}).get("cursor")
    # Registrations are listed to everybody; a computed list may be for this caller alone. A shared
    # cache must not give it to another one (2026-07-28 `server/utilities/caching`).
    guarded = ask is not None and ctx.envelope.origin.principal is not None
    caching = ctx.running.server.options.cache_of(cache, guarded=guarded)
    if ask is None:
        # Bytes that the collection keeps: a list is rendered once per change, not once per request.
        body = collection.rendered(cursor, ctx.envelope.revision)
        ctx.complete_rendered(body, caching.tail())
        return None

    async def work() -> None:
        page = collection.read(await run_user_code(ask(cursor, ctx)))
        revision = ctx.envelope.revision
        result = collection.write(page, revision)
        if revision.stateless:
            result |= caching.to_wire()
        ctx.complete(result)

    return ctx.in_time(work)
