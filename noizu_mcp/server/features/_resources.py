"""Resources: lists, `resources/read` and subscriptions (`server/resources`)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from ... import components
from ..._errors import InsufficientScope, McpError
from ...components import Context, TemplateSpec
from ...engine import Job, crashes_logged, run_user_code
from ...jsonrpc import INVALID_PARAMS
from ...types import InputRequired
from .._request_context import RequestContext
from ..calls._invoke import invoke_handler, read_any, settle
from ..calls._scope_checks import holds
from ..changes._feed import leave
from ..registry._server_options import Cache
from ._lists import Ask, list_page

if TYPE_CHECKING:
    from .._server import Server

#: Characters of a resource URI, as many as common web servers accept in a URL. A watched URI is
#: kept for as long as its connection, so its length must have a bound.
MAX_URI: Final = 8 * 1024


def list_resources(ctx: RequestContext) -> Job | None:
    """Answer `resources/list`: the resources, and the instances that templates list.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = ctx.running.server
    ask: Ask | None = None
    if server.overrides("list_resources"):
        ask = server.list_resources
    # Only then: a list without instances is served from rendered bytes.
    elif any(template.list for template in server.registry.templates.shown):
        ask = _list_with_instances
    return list_page(ctx, server.registry.resources, "resources", ask)


async def _list_with_instances(cursor: str | None, context: Context) -> Any:
    server = context.server
    collection = server.registry.resources
    found: list[Any] = list(collection.shown)
    for template in server.registry.templates.shown:
        if template.list is not None and holds(template, context.auth):
            found += await _list_instances(server, template, template.list, context)
    return collection.cut(found, cursor)


async def _list_instances(
    server: "Server", template: TemplateSpec, method: Callable[[Context], Any], context: Context
) -> Sequence[Any]:
    """List the instances of one template; a failing one is empty, and does not hide others."""
    found: Sequence[Any] = ()
    text = "%s.list failed; its resources are left out"
    # Resources that the caller may not see are left out in silence, as everywhere in lists.
    with (
        crashes_logged(text, template.source, log=server.crash_log),
        suppress(InsufficientScope),
    ):
        listed = await invoke_handler(context, template.list_mode, partial(method, context))
        found = components.to_listed(template, listed)
    return found


def list_templates(ctx: RequestContext) -> Job | None:
    """Answer `resources/templates/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = ctx.running.server
    overridden = server.overrides("list_resource_templates")
    ask = server.list_resource_templates if overridden else None
    return list_page(ctx, server.registry.templates, "templates", ask)


def read_resource(ctx: RequestContext) -> Job | None:
    """Answer `resources/read`.

    Raises:
        McpError: The request is malformed, or its state is not valid for it (-32602).
    """
    server = ctx.running.server
    uri = _uri(ctx)
    ctx.take_up_rounds()
    # Once: matching templates takes time. The spec is also needed for the timeout.
    found = server.registry.find_resource(uri)
    spec = None if found is None else found[0]
    guarded = spec is not None and spec.requires is not None

    async def work() -> None:
        result = await settle(partial(read_any, server, uri, found, ctx), ctx)
        if not isinstance(result, InputRequired):
            # After the handler: only a complete result carries cache hints, an `InputRequired` must
            # not (2026-07-28 `server/utilities/caching`).
            caching = server.options.cache_of("read", guarded=guarded)
            ctx.complete(_write(ctx, result.to_wire(), caching))

    return ctx.in_time(work, spec)


def _write(ctx: RequestContext, result: dict[str, Any], caching: Cache) -> dict[str, Any]:
    revision = ctx.envelope.revision
    if revision.stateless:
        return {**result, **caching.to_wire()}
    if not revision.titles:
        # 2025-03-26 has no `_meta` on contents.
        contents = [
            {key: value for key, value in each.items() if key != "_meta"}
            for each in result["contents"]
        ]
        return {**result, "contents": contents}
    return result


def subscribe(ctx: RequestContext) -> Job | None:
    """Answer `resources/subscribe` (up to 2025-11-25).

    Raises:
        McpError: The resource is unknown, or nobody may watch it.
    """
    server = ctx.running.server
    if not server.can_be_watched:
        ctx.refuse_method()
        return None
    uri, feed = _uri(ctx), ctx.handshake_session.feed

    async def work() -> None:
        # A second subscription of one session changes nothing: `Server.subscribe` and `unsubscribe`
        # are promised to come in pairs.
        if not feed.subscriptions.watches(uri):
            await run_user_code(server.subscribe(uri, ctx))
            try:
                # The hook may have swallowed the cancellation. The client has given up then, and
                # would never unsubscribe.
                await trio.lowlevel.checkpoint_if_cancelled()
                feed.watch(uri)
            except BaseException:
                leave(ctx.running, [uri], ctx)
                raise
        ctx.complete({})

    return ctx.in_time(work)


def unsubscribe(ctx: RequestContext) -> Job | None:
    """Answer `resources/unsubscribe`; a URI that is not watched is fine."""
    server = ctx.running.server
    if not server.can_be_watched:
        ctx.refuse_method()
        return None
    uri, feed = _uri(ctx), ctx.handshake_session.feed

    async def work() -> None:
        if feed.subscriptions.watches(uri):
            # First, without a checkpoint after the test: two of these at a time call the hook once.
            feed.subscriptions.unwatch(uri)
            await run_user_code(server.unsubscribe(uri, ctx))
        ctx.complete({})

    return ctx.in_time(work)


def _uri(ctx: RequestContext) -> str:
    params: Mapping[str, Any] = ctx.request.params or {}
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise McpError(INVALID_PARAMS, f"{ctx.request.method} requires a uri")
    if len(uri) > MAX_URI:
        raise McpError(INVALID_PARAMS, f"uri may have {MAX_URI} characters")
    return uri
