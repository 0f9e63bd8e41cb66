"""Resources: lists, `resources/read`, and who may watch what (`server/resources`)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..._errors import McpError
from ...components import Context, to_contents, to_listed
from ...engine import Exchange, Job
from ...jsonrpc import INVALID_PARAMS, INVALID_REQUEST, RESOURCE_NOT_FOUND
from ...protocol import Revision
from ...types import InputRequired, ReadResult
from .._calls import invoke_handler, settle
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
    return list_shelf(connection, exchange, shelf, "resources")


async def _list_with_instances(
    connection: Connection, cursor: str | None, context: Context
) -> Any:
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
    return list_shelf(connection, exchange, shelf, "templates")


def read_resource(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/read`.

    Raises:
        McpError: There is no such resource.
    """
    server = connection.server
    if not server.offers("resources"):
        connection.refuse(exchange)
        return None
    uri = _uri(exchange)
    found = server.registry.find_resource(uri)
    context = connection.context_of_round(exchange)
    spec, variables = found if found is not None else (None, None)
    if server.overrides("read_resource"):
        invoke = partial(server.read_resource, uri, context)
    elif spec is None:
        raise not_found(uri, exchange.envelope.revision)
    else:
        arguments = (uri, context) if variables is None else (uri, variables, context)
        handler = partial(spec.invoke, *arguments)
        invoke = partial(invoke_handler, server, spec.mode, handler)
    mime_type = None if spec is None else spec.mime_type

    async def work() -> None:
        value = await settle(invoke, context)
        if isinstance(value, InputRequired):
            return
        if isinstance(value, ReadResult):
            result = value.to_wire()
        else:
            contents = to_contents(mime_type, uri, value)
            result = {"contents": [each.to_wire() for each in contents]}
        connection.reply(exchange, _write(connection, exchange, result))

    return connection.in_background(exchange, work, spec)


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


def not_found(uri: str, revision: Revision) -> McpError:
    """Make the error for a resource that is not there.

    2026-07-28 forbids -32002 and answers -32602 (`server/resources`, "Error Handling").
    """
    code = INVALID_PARAMS if revision.stateless else RESOURCE_NOT_FOUND
    return McpError(code, "Resource not found", {"uri": uri})


def not_watchable(uri: str) -> McpError:
    """Make the error for a resource that nobody may watch."""
    return McpError(INVALID_REQUEST, f"Resource is not subscribable: {uri}")
