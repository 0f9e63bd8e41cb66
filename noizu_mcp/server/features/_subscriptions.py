"""`subscriptions/listen` (2026-07-28 `basic/patterns/subscriptions`)."""

from collections.abc import Iterable
from contextlib import suppress

import trio

from ..._errors import InsufficientScope, McpError
from ...engine import Job, run_user_code
from ...protocol import Listening
from .._request_context import RequestContext
from ..changes._feed import ListenFeed, leave
from ..registry._registry import Registry
from ._task_call import owner_of, require_tasks


def listen(ctx: RequestContext) -> Job | None:
    """Open a listen request: acknowledge what can be told; it stays open without a task.

    What the caller may not watch is left out of the agreement, not refused.

    Raises:
        McpError: The filter is no filter, or too many are open (-32602); or it has tasks, and the
            client does not say that it knows any (-32021).
    """
    server = ctx.running.server
    params = ctx.request.params or {}
    offered = {**server.capabilities(), "extensions": server.extensions()}
    # Over HTTP the request has no session: the feed is its own.
    feed = ListenFeed(ctx) if ctx.dispatcher is None else ctx.dispatcher.feed
    wanted = _read(ctx, feed.subscriptions.read(ctx.id, params, offered))
    if server.registry.scoped:
        wanted = wanted._replace(uris=_readable(ctx, server.registry, wanted.uris))
    if not wanted.uris or not server.overrides("can_watch", "subscribe"):
        allowed = frozenset(filter(server.registry.is_subscribable, wanted.uris))
        feed.listen(ctx, wanted._replace(uris=allowed))
        return None

    async def ask() -> None:
        taken: list[str] = []
        try:
            for uri in sorted(wanted.uris):
                with suppress(McpError, InsufficientScope):
                    await run_user_code(server.subscribe(uri, ctx))
                    taken.append(uri)
            # A hook may have passed over the cancellation: nothing may be opened after it.
            await trio.lowlevel.checkpoint_if_cancelled()
            feed.listen(ctx, wanted._replace(uris=frozenset(taken)))
        except BaseException:
            leave(ctx.running, taken, ctx)
            raise

    return ctx.in_time(ask)


def _read(ctx: RequestContext, wanted: Listening) -> Listening:
    """Leave out the tasks that the caller does not have, or may not see."""
    if not wanted.tasks:
        return wanted
    require_tasks(ctx.envelope)
    owner, caller = owner_of(ctx.envelope), ctx.envelope.origin.principal
    found = map(ctx.running.tasks.get, wanted.tasks)
    own = (task for task in found if task is not None and task.owner == owner)
    return wanted._replace(tasks=frozenset(task.id for task in own if task.admits(caller)))


def _readable(ctx: RequestContext, registry: Registry, uris: Iterable[str]) -> frozenset[str]:
    """Leave out what the caller may not read: nor may it be watched."""
    caller = ctx.envelope.origin.principal
    required = {uri: registry.required_for(uri) for uri in uris}
    return frozenset(uri for uri, each in required.items() if each is None or each.admits(caller))
