"""Resources: lists, `resources/read`, and who may watch what (`server/resources`)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..._errors import McpError
from ...components import Context, to_listed
from ...engine import Exchange, Job
from ...jsonrpc import INVALID_PARAMS
from ...types import InputRequired
from .._calls import invoke_handler, read_any, settle
from .._connection import Connection
from ._lists import list_computed, list_shelf


def list_resources(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/list`: the resources, and the instances that templates list.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = connection.server
    if not server.offers("resources"):
        connection.refuse(exchange)
        return None
    shelf = server.registry.resource_shelf
    if server.overrides("list_resources"):
        return list_computed(connection, exchange, shelf, "resources", server.list_resources)
    if any(template.list for template in server.registry.template_shelf.shown):
        enumerate_all = partial(_list_with_instances, connection)
        return list_computed(connection, exchange, shelf, "resources", enumerate_all)
    list_shelf(connection, exchange, shelf, "resources")
    return None


async def _list_with_instances(connection: Connection, cursor: str | None, context: Context) -> Any:
    server = connection.server
    shelf = server.registry.resource_shelf
    found: list[Any] = list(shelf.shown)
    for template in server.registry.template_shelf.shown:
        if template.list is not None:
            listing = partial(template.list, context)
            listed = await invoke_handler(server, template.list_mode, listing)
            found += to_listed(template, listed)
    return shelf.cut(found, cursor)


def list_templates(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/templates/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = connection.server
    if not server.offers("resources"):
        connection.refuse(exchange)
        return None
    shelf = server.registry.template_shelf
    if server.overrides("list_resource_templates"):
        ask = server.list_resource_templates
        return list_computed(connection, exchange, shelf, "templates", ask)
    list_shelf(connection, exchange, shelf, "templates")
    return None


def read_resource(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/read`.

    Raises:
        McpError: It is no such request, or its state is not good for it (-32602).
    """
    server = connection.server
    if not server.offers("resources"):
        connection.refuse(exchange)
        return None
    uri = _uri(exchange)
    context = connection.context_of_round(exchange)

    async def work() -> None:
        result = await settle(partial(read_any, server, uri, context), context)
        if not isinstance(result, InputRequired):
            connection.reply(exchange, _write(connection, exchange, result.to_wire()))

    found = server.registry.find_resource(uri)
    return connection.in_background(exchange, work, None if found is None else found[0])


def _write(connection: Connection, exchange: Exchange, result: dict[str, Any]) -> dict[str, Any]:
    revision = exchange.envelope.revision
    if revision.stateless:
        return {**result, **connection.server.options.cache_of("read").to_wire()}
    if not revision.titles:
        contents = [
            {key: value for key, value in each.items() if key != "_meta"}
            for each in result["contents"]
        ]
        return {**result, "contents": contents}
    return result


def subscribe(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/subscribe` (up to 2025-11-25).

    Raises:
        McpError: There is no such resource.
    """
    server = connection.server
    if not server.can_be_watched:
        connection.refuse(exchange)
        return None
    uri = _uri(exchange)
    context = connection.context(exchange)

    async def work() -> None:
        await server.subscribe(uri, context)
        connection.interests.watch(uri)
        connection.reply(exchange, {})

    return connection.in_background(exchange, work)


def unsubscribe(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/unsubscribe`; what is not watched is fine."""
    server = connection.server
    if not server.can_be_watched:
        connection.refuse(exchange)
        return None
    uri = _uri(exchange)
    context = connection.context(exchange)

    async def work() -> None:
        connection.interests.unwatch(uri)
        await server.unsubscribe(uri, context)
        connection.reply(exchange, {})

    return connection.in_background(exchange, work)


def _uri(exchange: Exchange) -> str:
    params: Mapping[str, Any] = exchange.request.params or {}
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise McpError(INVALID_PARAMS, f"{exchange.request.method} requires a uri")
    return uri
