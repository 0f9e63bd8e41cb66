"""`subscriptions/listen` (2026-07-28 `basic/patterns/subscriptions`)."""

from collections.abc import Iterable
from contextlib import suppress

import trio

from ..._errors import InsufficientScope, McpError
from ...engine import Exchange, Job
from ...protocol import ACKNOWLEDGED, Listening
from .._authored import authored
from .._connection import Connection
from .._registry import Registry
from .._task_calls import owner_of, require_tasks


def listen(connection: Connection, exchange: Exchange) -> Job | None:
    """Open a listen request: acknowledge what can be told; it stays open without a task.

    What the caller may not watch is left out of the agreement, not refused.

    Raises:
        McpError: The filter is no filter, or too many are open (-32602); or it has tasks, and the
            client does not say that it knows any (-32021).
    """
    server = connection.server
    params = exchange.request.params or {}
    offered = {**server.capabilities(), "extensions": server.extensions()}
    wanted = _read(connection, exchange, connection.interests.read(exchange.id, params, offered))
    if server.registry.scoped:
        wanted = wanted._replace(uris=_readable(exchange, server.registry, wanted.uris))
    if not wanted.uris or not server.overrides("can_watch", "subscribe"):
        allowed = frozenset(filter(server.registry.is_subscribable, wanted.uris))
        _open(connection, exchange, wanted._replace(uris=allowed))
        return None
    context = connection.context(exchange)

    async def ask() -> None:
        taken: list[str] = []
        try:
            for uri in sorted(wanted.uris):
                with suppress(McpError, InsufficientScope):
                    await authored(server.subscribe(uri, context))
                    taken.append(uri)
            # A hook may have passed over the cancellation: nothing may be opened after it.
            await trio.lowlevel.checkpoint_if_cancelled()
            _open(connection, exchange, wanted._replace(uris=frozenset(taken)))
        except BaseException:
            connection.leave(taken, exchange)
            raise

    return connection.in_background(exchange, ask)


def _read(connection: Connection, exchange: Exchange, wanted: Listening) -> Listening:
    """Leave out the tasks that the caller does not have, or may not see."""
    if not wanted.tasks:
        return wanted
    require_tasks(exchange.envelope)
    owner, caller = owner_of(exchange.envelope), exchange.envelope.origin.principal
    found = map(connection.task_store.get, wanted.tasks)
    own = (task for task in found if task is not None and task.owner == owner)
    return wanted._replace(tasks=frozenset(task.id for task in own if task.admits(caller)))


def _readable(exchange: Exchange, registry: Registry, uris: Iterable[str]) -> frozenset[str]:
    """Leave out what the caller may not read: nor may it be watched."""
    caller = exchange.envelope.origin.principal
    required = {uri: registry.required_for(uri) for uri in uris}
    return frozenset(uri for uri, each in required.items() if each is None or each.admits(caller))


def _open(connection: Connection, exchange: Exchange, agreed: Listening) -> None:
    connection.interests.listen(agreed)
    connection.listen(exchange)
    connection.desk.send(agreed.tag(ACKNOWLEDGED, {"notifications": agreed.agreed()}))
    connection.follow(sorted(agreed.tasks))
