"""The list methods: `tools/list`, `prompts/list`, `resources/list`, `resources/templates/list`."""

from collections.abc import Awaitable, Callable
from typing import Any

from ...components import Context
from ...engine import Exchange, Job
from .._connection import Connection
from .._shelf import Shelf

Ask = Callable[[str | None, Context], Awaitable[Any]]


def list_shelf(connection: Connection, exchange: Exchange, shelf: Shelf[Any], cache: str) -> None:
    """Answer from what is rendered already.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    body = shelf.rendered(_cursor(exchange), exchange.envelope.revision)
    connection.reply_rendered(exchange, body, connection.server.options.cache_of(cache).tail())


def list_computed(
    connection: Connection, exchange: Exchange, shelf: Shelf[Any], cache: str, ask: Ask
) -> Job:
    """Answer from what the author's code computes for the caller.

    Args:
        connection: The connection.
        exchange: The request.
        shelf: Says how a list of the kind is written.
        cache: The kind of cache hints it carries.
        ask: Gives a `Page`, or a list without further pages.
    """
    context = connection.context(exchange)
    cursor = _cursor(exchange)

    async def work() -> None:
        page = shelf.read(await ask(cursor, context))
        revision = exchange.envelope.revision
        result = shelf.write(page, revision)
        if revision.stateless:
            result |= connection.server.options.cache_of(cache).to_wire()
        connection.reply(exchange, result)

    return connection.in_background(exchange, work)


def _cursor(exchange: Exchange) -> Any:
    return (exchange.request.params or {}).get("cursor")
