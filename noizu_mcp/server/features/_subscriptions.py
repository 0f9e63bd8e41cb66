"""`subscriptions/listen` (2026-07-28 `basic/patterns/subscriptions`)."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from ..._errors import InsufficientScope, McpError
from ...engine import Job, run_user_code
from ...protocol import Listening
from .._server_request import ServerRequest
from ..changes._feed import ChangeFeed, ListenFeed, leave
from ..registry._registry import Registry
from ._work import in_time

if TYPE_CHECKING:
    from ..tasks._known_task import KnownTask


def listen(ctx: ServerRequest) -> Job | None:
    """Open a listen request and acknowledge the filter. It stays open without a task.

    Parts of the filter that the caller may not watch are left out of the acknowledged filter, not
    refused (2026-07-28 `basic/patterns/subscriptions`).

    Raises:
        McpError: The filter is malformed, or too many are open (-32602); or it names tasks, and the
            client does not declare the extension (-32021).
    """
    server = ctx.running.server
    params = ctx.request.params or {}
    offered = {**server.registry.capabilities(), "extensions": server.registry.extensions()}
    # Over HTTP the request has no session, so it has its own feed.
    feed = ListenFeed(ctx) if ctx.dispatcher is None else ctx.dispatcher.feed
    wanted = feed.subscriptions.read(ctx.id, params, offered)
    if not wanted.tasks:
        return _listen(ctx, feed, wanted)
    # Loaded with the first filter that names a task.
    from ._tasks import require_tasks

    require_tasks(ctx.envelope)
    if ctx.running.node is None:
        found = map(ctx.running.tasks.get, wanted.tasks)
        return _listen(ctx, feed, _visible(ctx, wanted, found))

    async def look_up() -> None:
        shared = ctx.running.shared_tasks
        found = [await shared.find(id_) for id_ in wanted.tasks]
        job = _listen(ctx, feed, _visible(ctx, wanted, found))
        if job is not None:
            await job()

    return in_time(ctx, look_up)


def _visible(
    ctx: ServerRequest, wanted: Listening, found: "Iterable[KnownTask | None]"
) -> Listening:
    """Leave out tasks that are unknown, of other owners, or not visible to the caller."""
    from ._tasks import owner_of

    owner, caller = owner_of(ctx.envelope), ctx.envelope.origin.principal
    own = (task for task in found if task is not None and task.owner == owner)
    return wanted._replace(tasks=frozenset(task.id for task in own if task.admits(caller)))


def _listen(ctx: ServerRequest, feed: ChangeFeed, wanted: Listening) -> Job | None:
    """Open a listen request, after its tasks were found."""
    server = ctx.running.server
    registry = server.registry
    if registry.scoped or registry.gated:
        wanted = wanted._replace(uris=_readable(ctx, registry, wanted.uris))
    # No code of the author to wait for: the acknowledgement is sent at once.
    if not wanted.uris:
        feed.listen(ctx, wanted)
        return None
    if not registry.takes_subscriptions:
        allowed = frozenset(
            uri for uri in wanted.uris if registry.is_subscribable(uri, ctx.context)
        )
        feed.listen(ctx, wanted._replace(uris=allowed))
        return None

    async def ask() -> None:
        taken: list[str] = []
        try:
            # Sorted, so that the hooks run in the same order for the same filter.
            for uri in sorted(wanted.uris):
                with suppress(McpError, InsufficientScope):
                    await run_user_code(server.subscribe(uri, ctx.context))
                    taken.append(uri)
            # A hook may have caught the cancellation. A feed opened after it would stay open: its
            # client has given up and does not close it.
            await trio.lowlevel.checkpoint_if_cancelled()
            feed.listen(ctx, wanted._replace(uris=frozenset(taken)))
        except BaseException:
            # Each URI that `subscribe` accepted gets its `unsubscribe`, even if a later one failed.
            leave(ctx.running, taken, ctx.context)
            raise

    return in_time(ctx, ask)


def _readable(ctx: ServerRequest, registry: Registry, uris: Iterable[str]) -> frozenset[str]:
    """Leave out resources that the caller may not read: a notification shows that they exist."""
    caller = ctx.envelope.origin.principal
    required = {uri: registry.required_for(uri, ctx.context) for uri in uris}
    return frozenset(
        uri
        for uri, each in required.items()
        if (each is None or each.admits(caller)) and not registry.hides(uri, ctx.context)
    )
