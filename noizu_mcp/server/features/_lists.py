"""The list methods: `tools/list`, `prompts/list`, `resources/list`, `resources/templates/list`."""

from collections.abc import Awaitable, Callable
from typing import Any

from ...components import Context
from ...engine import Exchange, Job
from .._authored import authored
from .._connection import Connection
from .._shelf import Shelf

Ask = Callable[[str | None, Context], Awaitable[Any]]


def list_page(
    connection: Connection,
    exchange: Exchange,
    shelf: Shelf[Any],
    cache: str,
    ask: Ask | None,
) -> Job | None:
    """Answer a list method.

    Args:
        connection: The connection.
        exchange: The request.
        shelf: What is registered, and how a list of the kind is written.
        cache: The kind of cache hints it carries.
        ask: The author's code that computes the list for the caller: gives a `Page`, or a list
            without further pages. None: the answer is what is registered, rendered already.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    cursor = (exchange.request.params or {}).get("cursor")
    # What is registered is listed to everybody; what is computed may be for this caller alone.
    guarded = ask is not None and exchange.envelope.origin.principal is not None
    caching = connection.server.options.cache_of(cache, guarded=guarded)
    if ask is None:
        body = shelf.rendered(cursor, exchange.envelope.revision)
        connection.reply_rendered(exchange, body, caching.tail())
        return None
    context = connection.context(exchange)

    async def work() -> None:
        page = shelf.read(await authored(ask(cursor, context)))
        revision = exchange.envelope.revision
        result = shelf.write(page, revision)
        if revision.stateless:
            result |= caching.to_wire()
        connection.reply(exchange, result)

    return connection.in_background(exchange, work)
