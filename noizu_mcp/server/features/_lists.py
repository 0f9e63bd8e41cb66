"""The list methods: `tools/list`, `prompts/list`, `resources/list` and related ones."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ... import components
from ..._errors import InsufficientScope, McpError
from ...components import TemplateSpec
from ...engine import Job, crashes_logged, run_user_code
from ...jsonrpc import INVALID_PARAMS
from .._server_context import ServerContext
from .._server_request import ServerRequest
from ..calls._invoke import invoke_handler
from ..calls._scope_checks import holds
from ..registry._collection import Collection
from ._work import in_time

if TYPE_CHECKING:
    from .._contracts import ServedServer

#: The feature that the provider of a list offers, by the name of the collection.
_FEATURES: Final = {"templates": "resources"}
#: Computes a list for the caller; returns a `Page`, or a list if there is only one page.
_Compute = Callable[[str | None, ServerContext], Awaitable[Any]]


def list_page(name: str, override: str, ctx: ServerRequest) -> Job | None:
    """Answer a list method.

    Args:
        name: The collection of the registry; also the kind of cache hints.
        override: The method of the server that computes the list, if a class overrides it.
        ctx: The request.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = ctx.running.server
    collection: Collection[Any] = getattr(server.registry, name).seen_by(ctx.known_context)
    templates = server.registry.templates.seen_by(ctx.known_context)
    cursor = (ctx.request.params or {}).get("cursor")
    # Before the author's override, which expects a text.
    if not isinstance(cursor, str | None):
        raise McpError(INVALID_PARAMS, "Invalid cursor")
    compute: _Compute | None = None
    if server.registry.overrides(override):
        compute = getattr(server, override)
    # Only in this case: a list without instances is served from rendered bytes.
    elif name == "resources" and any(each.list for each in templates.shown):
        compute = _list_with_instances
    elif name == "skills" and server.registry.providers is not None:
        compute = _list_skills
    elif collection.gated:
        compute = collection.list_for
    # Registrations are listed to every caller; a computed list may be for one caller only. A shared
    # cache must not give it to another (2026-07-28 `server/utilities/caching`).
    guarded = compute is not None and ctx.envelope.origin.principal is not None
    guarded = guarded or collection.gated or (name == "resources" and templates.gated)
    providers = server.registry.providers
    guarded = guarded or (
        providers is not None and providers.depends_on_caller(_FEATURES.get(name, name))
    )
    caching = server.options.cache_of(name, guarded=guarded)
    if compute is None:
        # Cached by the collection: a list is rendered once per change, not once per request.
        members = collection.rendered(cursor, ctx.envelope.revision)
        ctx.complete_rendered(members, tail=caching.tail())
        return None

    async def work() -> None:
        page = collection.read(await run_user_code(compute(cursor, ctx.context)), ctx.context)
        revision = ctx.envelope.revision
        result = collection.write(page, revision)
        if revision.stateless:
            result |= caching.to_wire()
        ctx.complete(result)

    return in_time(ctx, work)


async def _list_skills(cursor: str | None, context: ServerContext) -> Any:
    from ..providers._introductions import list_skills

    server = context.server
    return server.registry.skills.cut(await list_skills(server, context), cursor)


async def _list_with_instances(cursor: str | None, context: ServerContext) -> Any:
    server = context.server
    collection = server.registry.resources
    found: list[Any] = list(collection.shown_to(context))
    for template in server.registry.templates.shown_to(context):
        if template.list is not None and holds(template, context.auth):
            found += await _list_instances(server, template, template.list, context)
    return collection.cut(found, cursor)


async def _list_instances(
    server: "ServedServer",
    template: TemplateSpec,
    method: Callable[[ServerContext], Any],
    context: ServerContext,
) -> Sequence[Any]:
    """List the instances of one template. If it fails, the list is empty and an error is logged."""
    found: Sequence[Any] = ()
    text = "%s.list failed; its resources are left out"
    # Resources that the caller may not see are left out without an error, as in other lists.
    with (
        crashes_logged(text, template.source, log=server.crash_log),
        suppress(InsufficientScope),
    ):
        listed = await invoke_handler(
            context, template.list_mode, template.source, partial(method, context)
        )
        found = components.to_listed(template, listed)
    return found
