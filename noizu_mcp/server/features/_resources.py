"""Resources (`server/resources`) and skills (SEP-2640), except their lists."""

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ..._errors import McpError
from ..._value import JSONMapping, JSONObject
from ...engine import Job, run_user_code
from ...jsonrpc import INVALID_PARAMS
from ...types import InputRequired
from .._contracts import EMPTY
from .._server_request import ServerRequest
from ..calls._answers import LARGE, size_of
from ..calls._invoke import read_any, settle
from ..calls._unknown import not_found
from ..changes._feed import ChangeFeed, leave
from ..policies._policy_set import is_guarded
from ..registry._server_options import Cache
from ._work import in_time

if TYPE_CHECKING:
    pass

#: Maximum characters of a resource URI, as many as common web servers accept in a URL. A watched
#: URI is stored as long as its connection lasts, so its length is limited.
MAX_URI: Final = 8 * 1024


def read_resource(ctx: ServerRequest) -> Job | None:
    """Answer `resources/read`.

    Raises:
        McpError: The request is malformed, or its state is not valid for it (-32602).
    """
    server = ctx.running.server
    uri = _uri(ctx)
    if ctx.resume_rounds():
        return None
    uri = server.registry.canonical(uri, ctx.context)
    # Looked up once: matching templates takes time. The spec also has the timeout.
    found = server.registry.find_resource(uri, ctx.context)
    spec = None if found is None else found[0]
    guarded = spec is not None and (spec.requires is not None or spec.available is not None)

    async def work() -> None:
        result = await settle(partial(read_any, server, uri, found, ctx.context), ctx)
        if not isinstance(result, InputRequired):
            # After the handler: only a complete result has cache hints, an `InputRequired` must not
            # (2026-07-28 `server/utilities/caching`).
            caching = server.options.cache_of("read", guarded=guarded)
            size = sum(size_of(each.text) + size_of(each.blob) for each in result.contents)
            if size <= LARGE or await ctx.running.turns.take(size, ctx.reserve):
                ctx.complete(_write(ctx, result.to_wire(), caching))

    check = None
    known = spec is not None or server.registry.overrides("read_resource")
    if known and (server.policies.chains or is_guarded(spec)):
        check = partial(ctx.running.admit, "resource", uri, EMPTY, spec, ctx.context)
    return in_time(ctx, work, spec, check)


def _write(ctx: ServerRequest, result: JSONObject, caching: Cache) -> JSONObject:
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


def subscribe(ctx: ServerRequest) -> Job | None:
    """Answer `resources/subscribe` (up to 2025-11-25).

    Raises:
        McpError: The resource is unknown, or cannot be watched.
    """
    server = ctx.running.server
    uri, feed = _watched(ctx)

    async def work() -> None:
        # A second subscription of one session changes nothing: `Server.subscribe` and `unsubscribe`
        # are always called in pairs.
        if server.registry.hides(uri, ctx.context):
            raise not_found(uri, ctx.context)
        if not feed.subscriptions.watches(uri):
            await run_user_code(server.subscribe(uri, ctx.context))
            try:
                # The hook may have caught the cancellation. The client has given up then, and would
                # never unsubscribe.
                await trio.lowlevel.checkpoint_if_cancelled()
                if not await feed.begin_watch(uri):
                    leave(ctx.running, [uri], ctx.context)
            except BaseException:
                leave(ctx.running, [uri], ctx.context)
                raise
        ctx.complete({})

    return in_time(ctx, work)


def unsubscribe(ctx: ServerRequest) -> Job | None:
    """Answer `resources/unsubscribe`. A URI that is not watched is no error."""
    server = ctx.running.server
    uri, feed = _watched(ctx)

    async def work() -> None:
        # First, and without a checkpoint after the test: two concurrent requests call the hook
        # once.
        if feed.subscriptions.watches(uri) and await feed.end_watch(uri):
            await run_user_code(server.unsubscribe(uri, ctx.context))
        ctx.complete({})

    return in_time(ctx, work)


def get_skill(ctx: ServerRequest) -> Job | None:
    """Answer `skills/get`.

    Raises:
        McpError: There is no such skill (-32602).
    """
    server = ctx.running.server
    uri = _uri(ctx)
    spec = server.registry.skills.specs.get(uri)
    if spec is None and server.registry.providers is None:
        raise McpError(INVALID_PARAMS, "Skill not found", {"uri": uri})
    if spec is not None:
        _send_skill(ctx, spec.definition, guarded=spec.requires is not None)
        return None

    async def work() -> None:
        from ..providers._introductions import find_skill

        entry = await find_skill(server, uri, ctx.context)
        if entry is None:
            raise McpError(INVALID_PARAMS, "Skill not found", {"uri": uri})
        # The answer of a provider may depend on the caller.
        _send_skill(ctx, entry, guarded=ctx.context.auth is not None)

    return in_time(ctx, work)


def _send_skill(ctx: ServerRequest, entry: JSONObject, *, guarded: bool) -> None:
    # A skill with scopes is private to its caller, regardless of the option: a shared cache checks
    # no scopes.
    caching = ctx.running.server.options.cache_of("skills", guarded=guarded)
    ctx.complete({"skill": entry, **caching.to_wire()})


def read_directory(ctx: ServerRequest) -> Job | None:
    """Answer `resources/directory/read`; its result carries no cache hints.

    Raises:
        McpError: There is no such directory, or the cursor is invalid (-32602).
    """
    server = ctx.running.server
    uri, cursor = _uri(ctx), (ctx.request.params or {}).get("cursor")
    page = server.registry.read_directory(uri, cursor)
    if page is None and server.registry.providers is None:
        raise McpError(INVALID_PARAMS, "Directory not found", {"uri": uri})
    if page is not None:
        ctx.complete(page)
        return None

    async def work() -> None:
        from ..providers._introductions import read_directory

        found = await read_directory(server, uri, cursor, ctx.context)
        if found is None:
            raise McpError(INVALID_PARAMS, "Directory not found", {"uri": uri})
        ctx.complete(found)

    return in_time(ctx, work)


def _watched(ctx: ServerRequest) -> tuple[str, ChangeFeed]:
    """Return the URI of a subscription and the feed of its session.

    Raises:
        McpError: No resource can be watched (-32601), or the URI is missing or too long (-32602).
    """
    if not ctx.running.server.registry.can_be_watched:
        raise ctx.unknown_method()
    return _uri(ctx), ctx.handshake_session.feed


def _uri(ctx: ServerRequest) -> str:
    params: JSONMapping = ctx.request.params or {}
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise McpError(INVALID_PARAMS, f"{ctx.request.method} requires a uri")
    if len(uri) > MAX_URI:
        raise McpError(INVALID_PARAMS, f"uri may have {MAX_URI} characters")
    return uri
