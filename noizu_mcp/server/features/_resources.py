"""Resources: lists, `resources/read`, and who may watch what (`server/resources`)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from ..._errors import InsufficientScope, McpError
from ...components import Context, TemplateSpec, to_listed
from ...engine import Exchange, Job, crashes_logged
from ...jsonrpc import INVALID_PARAMS
from ...types import InputRequired
from .._authored import authored
from .._calls import invoke_handler, read_any, settle
from .._connection import Connection
from .._options import Cache
from .._scopes import holds
from ._lists import Ask, list_page

if TYPE_CHECKING:
    from .._server import Server

#: Characters of the URI of a resource: as many as servers take of a URL. One that is watched stays.
MAX_URI: Final = 8 * 1024


def list_resources(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/list`: the resources, and the instances that templates list.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = connection.server
    ask: Ask | None = None
    if server.overrides("list_resources"):
        ask = server.list_resources
    elif any(template.list for template in server.registry.template_shelf.shown):
        ask = partial(_list_with_instances, connection)
    return list_page(connection, exchange, server.registry.resource_shelf, "resources", ask)


async def _list_with_instances(connection: Connection, cursor: str | None, context: Context) -> Any:
    server = connection.server
    shelf = server.registry.resource_shelf
    found: list[Any] = list(shelf.shown)
    for template in server.registry.template_shelf.shown:
        if template.list is not None and holds(template, context.auth):
            found += await _list_instances(server, template, template.list, context)
    return shelf.cut(found, cursor)


async def _list_instances(
    server: "Server", template: TemplateSpec, method: Callable[[Context], Any], context: Context
) -> Sequence[Any]:
    """List the instances of one template; one that fails hides no others, so it lists none."""
    found: Sequence[Any] = ()
    text = "%s.list failed; its resources are left out"
    # What the caller may not see is left out without a word, as everywhere in lists.
    with (
        crashes_logged(text, template.source, log=server.crash_log),
        suppress(InsufficientScope),
    ):
        listed = await invoke_handler(context, template.list_mode, partial(method, context))
        found = to_listed(template, listed)
    return found


def list_templates(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/templates/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = connection.server
    overridden = server.overrides("list_resource_templates")
    ask = server.list_resource_templates if overridden else None
    return list_page(connection, exchange, server.registry.template_shelf, "templates", ask)


def read_resource(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `resources/read`.

    Raises:
        McpError: It is no such request, or its state is not good for it (-32602).
    """
    server = connection.server
    uri = _uri(exchange)
    context = connection.context_of_round(exchange)
    found = server.registry.find_resource(uri)  # once: to match templates takes time
    spec = None if found is None else found[0]
    guarded = spec is not None and spec.requires is not None

    async def work() -> None:
        result = await settle(partial(read_any, server, uri, found, context), context)
        if not isinstance(result, InputRequired):
            caching = server.options.cache_of("read", guarded=guarded)
            connection.reply(exchange, _write(exchange, result.to_wire(), caching))

    return connection.in_background(exchange, work, spec)


def _write(exchange: Exchange, result: dict[str, Any], caching: Cache) -> dict[str, Any]:
    revision = exchange.envelope.revision
    if revision.stateless:
        return {**result, **caching.to_wire()}
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
        if not connection.interests.watches(uri):
            await authored(server.subscribe(uri, context))
            try:
                # A hook may have passed over the cancellation; then nobody wants this any more.
                await trio.lowlevel.checkpoint_if_cancelled()
                connection.watch(uri)
            except BaseException:
                connection.leave([uri], exchange)
                raise
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
        if connection.interests.watches(uri):
            connection.interests.unwatch(uri)
            await authored(server.unsubscribe(uri, context))
        connection.reply(exchange, {})

    return connection.in_background(exchange, work)


def _uri(exchange: Exchange) -> str:
    params: Mapping[str, Any] = exchange.request.params or {}
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise McpError(INVALID_PARAMS, f"{exchange.request.method} requires a uri")
    if len(uri) > MAX_URI:
        raise McpError(INVALID_PARAMS, f"uri may have {MAX_URI} characters")
    return uri
