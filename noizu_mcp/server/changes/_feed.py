"""The changes that one peer is notified of: subscriptions, merged notifications, and their end.

Theory of operation. A feed is silent until `hear` adds it to the merger of its loop, which happens
at `initialize` or at the first listen request. From then on it receives every change, and
`Subscriptions` decides which ones are sent. While its channel has no room a change is stored once,
even if it is reported again, and its notification is made again when there is room. So a client
that does not read has at most one notification per distinct change, and none is out of date. A feed
ends in two steps: `end_listens` answers the open listen requests while messages can still be sent,
and `close` releases everything when the peer is gone. Both may happen in either order or twice:
`hang_up` removes a request once, and `leave` is called once for each accepted subscription. `limit`
bounds the subscriptions, so memory does not grow with the number of changes.
"""

from collections.abc import Collection, Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from ...engine import InFlight, crashes_logged, logger, run_user_code
from ...jsonrpc import Id, Notification
from ...protocol import ACKNOWLEDGED, LIST_CHANGED, Listening, SubscriptionNotice, Subscriptions
from ...types import META_SUBSCRIPTION_ID
from ..tasks._task_change import TaskChange

if TYPE_CHECKING:
    from ...components import Context
    from ...types import Principal
    from .._running import RunningServer
    from .._server_request import ServerRequest
    from .._session import Session
    from ..tasks._known_task import KnownTask

#: Seconds for `unsubscribe` after the end of a subscription. It is shielded for this time, which
#: therefore limits the length of a shutdown. Stopping a watcher takes far less.
UNSUBSCRIBE_TIME: Final = 2.0


class ChangeFeed:
    """The changes that one peer is notified of, in either era.

    Args:
        running: The server while it is served.
        in_flight: Encodes the notifications; for a session, the session.
        limit: Maximum number of open listen requests and watched URIs together.

    Attributes:
        subscriptions: The notifications that the peer subscribed to.
        running: See Args.
    """

    _waiting: frozenset[Hashable] = frozenset()  # changes that wait for room

    def __init__(self, running: "RunningServer", in_flight: InFlight, limit: int) -> None:
        self.running = running
        self.subscriptions = Subscriptions(limit)
        self._in_flight = in_flight
        self._listening: dict[Id, ServerRequest] = {}
        self._is_subscribed = False

    # The session

    @property
    def channel(self) -> Any:
        """The `ReplyChannel` of notifications that belong to no request in flight."""
        return self.session.channel

    @property
    def session(self) -> "Session":
        """The session of the feed."""
        session: Any = self._in_flight
        found: Session = session
        return found

    def reader(self, id_: Id | None) -> "Principal | None":
        """Return the caller of a listen request; for None, the caller of the session."""
        if id_ is None:
            return self.session.peer.origin.principal
        return self._listening[id_].envelope.origin.principal

    def may_be_notified(self, uri: str, id_: Id | None) -> bool:
        """Tell whether a listen request, or for None the session, may be notified of a resource."""
        # Checked for each notification: since the subscription the resource may have been replaced
        # by one with other scopes.
        registry = self.running.server.registry
        context = self.session.context() if id_ is None else self._listening[id_].context
        requires = registry.required_for(uri, context)
        admitted = requires is None or requires.admits(self.reader(id_))
        return admitted and not registry.hides(uri, context)

    def deliver(self, notice: bytes, _change: Hashable) -> None:
        """Send the notification of a change."""
        self.channel.deliver(notice)

    def _send(self, notice: SubscriptionNotice, id_: Id | None, change: Hashable) -> None:
        data = notice.encode(id_)
        if self._in_flight.listeners:
            self._in_flight.observe_sent(notice.method, len(data))
        self.deliver(data, change)

    @property
    def is_behind(self) -> bool:
        """True while changes wait for room."""
        return bool(self._waiting)

    def watch(self, uri: str) -> None:
        """Watch a resource for a client with a handshake.

        Raises:
            McpError: The limit is reached.
        """
        self.subscriptions.watch(uri)

    def unwatch(self, uri: str) -> None:
        """Stop watching a resource that is watched."""
        self.subscriptions.unwatch(uri)

    async def begin_watch(self, uri: str) -> bool:
        """Watch a resource after the hook of the server; without other nodes, no checkpoint.

        Returns:
            False if the hook of another node keeps the subscription.

        Raises:
            McpError: The limit is reached.
        """
        self.watch(uri)
        return True

    async def end_watch(self, uri: str) -> bool:
        """Stop watching a resource; without other nodes, no checkpoint.

        Returns:
            False if the hook of another node keeps the subscription.
        """
        self.unwatch(uri)
        return True

    def end_watches(self) -> Collection[str]:
        """Stop watching all resources.

        Returns:
            Those that the hook of this server keeps.
        """
        return self.subscriptions.close()

    # Changes

    def hear(self) -> None:
        """Receive changes from now on."""
        # Started late: a peer without subscriptions causes no work for a change.
        if not self._is_subscribed:
            self._is_subscribed = True
            self.running.add_subscriber(self)

    def await_ready(self) -> None:
        """Store list changes from now on: a handshake begins, and `push` sends them at its end.

        Before `initialized` a server sends only pings and log messages (2025-11-25
        `basic/lifecycle`, "Initialization").
        """
        self.subscriptions.await_ready()
        self.hear()

    def push(self) -> None:
        """Send list changes from now on: the handshake is complete."""
        self.hear()
        for kind in self.subscriptions.push():
            self._send(LIST_CHANGED[kind], None, kind)

    def tell(self, change: Hashable, notice: SubscriptionNotice) -> bool:
        """Send the peer a change as soon as there is room, if it subscribed; see `Subscriber`."""
        tasks = self.running.tasks
        task = tasks.find_known(change.id) if isinstance(change, TaskChange) else None
        recipients = self._find_recipients(change, task) if self._is_subscribed else ()
        if not recipients:
            return False
        if self.channel.has_room:
            for id_ in recipients:
                self._send(notice, id_, change)
            if task is not None:
                # Only if the notification was sent: until then the owner does not know that the
                # task ended, and the task must not be removed to make room.
                self.running.tasks.note_delivered(task)
        elif change not in self._waiting:
            self._waiting |= {change}
            self.running.linger(partial(self._wait, change))
        return True

    def _find_recipients(self, change: Hashable, task: "KnownTask | None") -> list[Id | None]:
        if task is not None:
            # The call may have needed more scopes since the subscription began.
            return self.subscriptions.task_changed(
                task.id, lambda id_: task.admits(self.reader(id_))
            )
        if isinstance(change, tuple):  # a resource, by its URI
            return self.subscriptions.updated(change[0], partial(self.may_be_notified, change[0]))
        return self.subscriptions.changed(str(change))

    async def _wait(self, change: Hashable) -> None:
        await self.channel.room()
        self._waiting -= {change}
        self.running.merger.report(change, self)

    # Listen requests

    def listen(self, ctx: "ServerRequest", agreed: Listening) -> None:
        """Open a listen request. It ends with its client or its connection.

        Args:
            ctx: The request.
            agreed: The notifications of the acknowledged filter.

        Raises:
            McpError: Too many are open (-32602).
        """
        # First, since it may raise: then there is nothing to undo.
        self.subscriptions.listen(agreed)
        self.hear()
        ctx.listen(self)
        self._listening[ctx.id] = ctx
        # Before any change: the acknowledgement must be the first message (2026-07-28
        # `basic/patterns/subscriptions`). There is no checkpoint in between.
        acknowledgement = SubscriptionNotice(ACKNOWLEDGED, {"notifications": agreed.agreed()})
        self._send(acknowledgement, ctx.id, None)
        for id_ in sorted(agreed.tasks):
            self.running.tasks.follow(id_, self.report)
            # The current state: the task may have ended before.
            self.report(TaskChange(id_))

    def report(self, change: Hashable) -> None:
        """Report a change to this peer only, in the loop's thread."""
        self.running.merger.report(change, self)

    def report_all(self) -> None:
        """Report every change that the peer has subscribed to; see `Subscriber`."""
        for change in self.subscriptions.wanted():
            self.report(change)

    def hang_up(self, ctx: "ServerRequest") -> None:
        """Stop sending changes to an open listen request."""
        del self._listening[ctx.id]
        ended = cast(Listening, self.subscriptions.drop(ctx.id))
        for id_ in ended.tasks:
            # Another listen request of this peer may follow the same task: the store has one
            # follower for all of them.
            if not self.subscriptions.follows(id_):
                self.running.tasks.unfollow(id_, self.report)
        leave(self.running, ended.uris, ctx.context)

    def end_listens(self) -> None:
        """Answer the open listen requests.

        2026-07-28 is ambiguous: `basic/patterns/cancellation` requires a notification,
        `basic/patterns/subscriptions` the result. On a pipe both are sent, and a client accepts
        either; over HTTP the end of the response replaces the notification.
        """
        # A copy: `hang_up` changes the table.
        for ctx in list(self._listening.values()):
            if self.running.transport != "http":
                ended = Notification("notifications/cancelled", {"requestId": ctx.id})
                self.channel.deliver(self._in_flight.encode_notice(ended))
            self.hang_up(ctx)
            ctx.complete({"_meta": {META_SUBSCRIPTION_ID: ctx.id}})

    def close(self) -> None:
        """Release everything: the peer is gone."""
        if self._is_subscribed:
            self._is_subscribed = False
            self.running.discard_subscriber(self)
        for ctx in list(self._listening.values()):
            self.hang_up(ctx)
        watched = self.end_watches()
        if watched:
            leave(self.running, watched, self.session.context())


class ListenFeed(ChangeFeed):
    """The feed of one listen request of 2026-07-28 over HTTP, which belongs to no session.

    Args:
        ctx: The request.
    """

    def __init__(self, ctx: "ServerRequest") -> None:
        limit = ctx.running.server.options.limits.subscriptions
        super().__init__(ctx.running, ctx.in_flight, limit)
        self._channel = ctx.channel

    @property
    def channel(self) -> Any:
        """The response to the POST."""
        return self._channel

    def hang_up(self, ctx: "ServerRequest") -> None:
        """Close the feed together with its only listen request; see `ChangeFeed`."""
        super().hang_up(ctx)
        # `close` calls `hang_up` for open requests: there are none by now.
        self.close()


def leave(running: "RunningServer", uris: Collection[str], context: "Context") -> None:
    """Start `unsubscribe` for resources that are no longer watched. Does not wait.

    Args:
        running: The server while it is served.
        uris: The resources.
        context: The request that watched them, or the session.
    """
    if uris and running.server.registry.takes_ends:
        running.linger(partial(_unsubscribe, running.server, uris, context))


async def _unsubscribe(server: Any, uris: Iterable[str], context: "Context") -> None:
    """Call `unsubscribe` for all resources concurrently, so that a slow one delays no other."""

    async def one(uri: str) -> None:
        text = "unsubscribe of %r failed for %s"
        with crashes_logged(text, server, uri, log=server.crash_log):
            await run_user_code(server.unsubscribe(uri, context))

    # Shielded: the end of a connection must not cancel the code that stops the author's watchers.
    deadline = trio.current_time() + UNSUBSCRIBE_TIME
    with trio.CancelScope(shield=True, deadline=deadline) as scope:
        async with trio.open_nursery() as nursery:
            for uri in uris:
                nursery.start_soon(one, uri)
    if scope.cancelled_caught:
        text = "unsubscribe of %r took longer than %s s and was cancelled"
        logger.warning(text, server, UNSUBSCRIBE_TIME)
