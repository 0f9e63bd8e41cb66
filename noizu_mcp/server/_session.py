"""A session: one client with a handshake, or one pipe, and the state between its requests.

Theory of operation. The handshake itself is a state of `peer`. `complete_handshake` starts `init`
if the server overrides it; until `init` ends, `_setting_up` holds the event that requests wait for.
The message loop does not wait: it goes on reading, so pings are answered in the meantime. If `init`
fails, the waiting requests are answered with an error and the session stops. `end_session` runs
once no message can be sent, and closes the feed.
"""

import abc
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import trio

from .._errors import LocalProtocolError
from .._value import JSONMapping
from ..engine import (
    BatchReply,
    Delivery,
    Dispatcher,
    Job,
    ReplyChannel,
    crashes_logged,
    logger,
    run_user_code,
)
from ..events import Place, observe_message, observe_notice
from ..jsonrpc import INTERNAL_ERROR, Batch, Decoded, Notification
from ..protocol import Dispatch, Fanout, PeerEvent, Revision, ServerPeer
from ._contracts import EMPTY
from ._running import RunningServer
from ._server_context import NOT_SENT, ServerContext
from ._server_request import ServerRequest
from .changes._feed import ChangeFeed
from .threads._fair_limiter import ClientShare

if TYPE_CHECKING:
    from ..types import RequireScopes


class Session(Dispatcher):
    """The server's end of one session or one pipe; on a pipe also for requests of 2026-07-28.

    The owner of a session sets its channel before its first message.

    Args:
        running: The server while it is served.

    Attributes:
        running: See Args.
        peer: The protocol state of the client.
        values: The values that handlers stored with `put_session`. Replaced, never changed in
            place.
        feed: The changes that the client is notified of.
    """

    def __init__(self, running: RunningServer) -> None:
        limits = running.server.options.limits
        self.peer = ServerPeer(limits.in_flight)
        super().__init__(self.peer)
        self.running = running
        self.values: JSONMapping = EMPTY
        self.feed = self.make_feed()
        self.listeners = running.listeners
        self._label: str | None = None
        self._setting_up: trio.Event | None = None  # while `init` runs
        self._failed = False

    def make_feed(self) -> ChangeFeed:
        """Make the feed of the session."""
        return ChangeFeed(self.running, self, self.running.server.options.limits.subscriptions)

    @property
    def log_level(self) -> str | None:
        """The least level of log messages that the client wants; None for no messages."""
        return self.peer.handshake.log_level

    def report_change(self, kind: str) -> None:
        """Notify the client that a list changed, from any thread."""
        self.running.portal.run_soon(partial(self.feed.report, kind))

    def put_value(self, key: str, value: object) -> None:
        """Store a value for later requests."""
        # A new mapping: the snapshots of running requests do not change.
        self.values = MappingProxyType({**self.values, key: value})

    async def store_value(self, key: str, value: object) -> None:
        """Store a value where all later requests find it; a checkpoint."""
        await trio.lowlevel.checkpoint()
        self.put_value(key, value)

    def set_level(self, level: str) -> Callable[[], Awaitable[None]] | None:
        """Set the least level of log messages that the client wants.

        Returns:
            A function that sets it at all nodes; None if it is set.
        """
        self.peer.handshake.log_level = level
        return None

    @abc.abstractmethod
    def stop(self) -> None:
        """Take no more messages and end gracefully."""

    # engine.Dispatcher

    def begin(
        self, event: Dispatch, channel: ReplyChannel, batch: BatchReply | None = None
    ) -> tuple[ServerRequest, Job | None]:
        """Begin a request; see `Dispatcher`."""
        request, envelope = event
        ctx = ServerRequest(self.running, self, self, event, channel, size=self.size, batch=batch)
        waiting = self._setting_up
        # Pings are answered in every phase, even while the server waits (2025-11-25
        # `basic/lifecycle`, "Initialization").
        if waiting is None or envelope.revision.stateless or request.method == "ping":
            job = ctx.begin()
        else:
            job = partial(self._begin_after, waiting, ctx)
        ctx = ctx.resumed or ctx
        if not ctx.answered:
            self.requests[request.id] = ctx
        return ctx, job

    async def _begin_after(self, set_up: trio.Event, ctx: ServerRequest) -> None:
        """Begin a request once `init` of the server has ended."""
        await set_up.wait()
        if self._failed:
            ctx.send_error(INTERNAL_ERROR, "The session could not be set up")
            return
        job = ctx.begin()
        if job is not None:
            ctx.expire_at(ctx.deadline)  # its scope exists already
            await job()

    def receive_notice(self, notification: Notification) -> None:
        """Ignore a notification: servers act on no notification that reaches this point."""
        logger.debug("ignored %s", notification.method)

    def complete_handshake(self) -> None:
        """Start to push list changes, and run `init` of the server."""
        server = self.running.server
        server.telemetry.sessions.add(self)
        self.feed.push()
        if self.needs_init():
            self._setting_up = trio.Event()
            self.spawn(partial(self._set_up, self._setting_up))

    def needs_init(self) -> bool:
        """Tell whether `init` of the server, or of a mounted one, must run."""
        server = self.running.server
        providers = server.registry.providers
        mounted = () if providers is None else providers.mounted(self.context())
        servers = server, *(each for each, _ in mounted)
        return any(each.registry.overrides("init") for each in servers)

    async def _set_up(self, done: trio.Event) -> None:
        # Set first: after a cancellation the session must not look set up.
        self._failed = True
        self._failed = not await self.run_init()
        if self._failed:
            self.stop()
        self._setting_up = None
        # After `stop` and the flags: the waiting requests read them when they wake up.
        done.set()

    async def run_init(self) -> bool:
        """Run `init` of the server, and of mounted ones; False if one of them has failed."""
        server = self.running.server
        failed = "init of %r failed; the session ends"
        is_done = False
        with crashes_logged(failed, server, log=server.crash_log):
            await run_user_code(server.init(self.context()))
            is_done = True
        providers = server.registry.providers
        # A new context: it sees the values that `init` of the server has stored.
        for each, ctx in () if providers is None else providers.mounted(self.context()):
            if not is_done:
                break
            is_done = False
            with crashes_logged(failed, each, log=server.crash_log):
                await run_user_code(each.init(ctx))
                is_done = True
        return is_done

    def context(self) -> ServerContext:
        """Make a context for code that belongs to the session and to no request."""
        return _NoRequest(self).context

    def end_subscriptions(self) -> None:
        """End the listen requests, with their results; see `Dispatcher`."""
        self.feed.end_listens()

    def end_session(self) -> None:
        """Close the feed: the peer is gone."""
        self.feed.close()
        self.running.server.telemetry.sessions.discard(self)
        # No answer can reach the peer now. Every start that listeners saw must have an end.
        for request in self.requests.values():
            if request.observer is not None:
                request.observer.observe_cancellation()

    def send_notice(self, method: str, params: JSONMapping) -> Delivery:
        """Send a notification, which is dropped if there is no room. Awaiting it waits for room."""
        self.channel.offer(self.encode_notice(Notification(method, dict(params))))
        return Delivery(self.channel.room)

    # Telemetry

    def observe_received(self, message: Decoded, event: PeerEvent | None, size: int | None) -> None:
        """Observe a message of the client; see `Dispatcher`."""
        self.size = None if isinstance(message, Batch) else size
        self._observe(message, event, size)

    def _observe(self, message: Decoded, event: PeerEvent | None, size: int | None) -> None:
        if isinstance(message, Batch) and isinstance(event, Fanout):
            for each, meaning in zip(message.messages, event.events, strict=True):
                self._observe(each, meaning, None)
        elif not isinstance(event, Dispatch):  # a dispatched request is recorded separately
            place = self.place(self.peer.revision_of(message))
            observe_message(self.running.server.telemetry, place, message, event, size)

    def observe_sent(self, method: str, size: int) -> None:
        """Observe a sent notification; see `InFlight`."""
        telemetry, notice = self.running.server.telemetry, Notification(method)
        observe_notice(telemetry, self.place(self.peer.revision), notice, size, outbound=True)

    def place(self, revision: Revision | None) -> Place:
        """Return the place of messages of a revision in events; None if the revision is unknown."""
        transport = self.running.transport
        if revision is None:
            return Place(transport)
        # 2026-07-28 has no sessions, not even on a pipe. A label would suggest that its requests
        # belong together.
        return Place(transport, revision.name, None if revision.stateless else self.label)

    @property
    def label(self) -> str:
        """The name of the session in events: random, since the id of a session is secret."""
        if self._label is None:
            self._label = os.urandom(8).hex()
        return self._label


class _NoRequest:
    """The session in place of a request: for `init`, and for `unsubscribe` at its end.

    Args:
        session: The session.
    """

    input_responses: JSONMapping = EMPTY
    request_state: str | None = None
    attempt = 1
    completion_arguments: Mapping[str, str] = EMPTY
    cancelled = False
    emitter = None
    asker = None
    task_start = None

    def __init__(self, session: Session) -> None:
        self.running = session.running
        self.envelope = session.peer.handshake.envelope(origin=session.peer.origin)
        self.dispatcher: Session | None = session
        self.stop = session.stop
        self._session = session

    @property
    def context(self) -> ServerContext:
        """A new context, with the current values of the session."""
        context = ServerContext(self, self.running)
        if self.running.server.registry.providers is not None:
            context.provided = self.running.provider_lists.known_to(self._session)
        return context

    @property
    def id(self) -> str | int:
        """Raise: only requests have ids."""
        raise _no_request("there is no request id")

    @property
    def threads(self) -> ClientShare:
        """The threads of sync handlers, as this client may use them."""
        return self.running.server.threads.of(self.envelope.origin.client)

    def need(self, missing: str) -> None:
        """Raise: this is no request; see `HandledRequest`."""
        raise _no_request(missing)

    def check_scopes(self, scopes: "RequireScopes") -> None:
        """Check that the caller holds the scopes."""
        scopes.check(self.envelope.origin.principal)

    def send(self, method: str, params: JSONMapping) -> Awaitable[None]:
        """Send a notification, from any thread."""
        return self.running.portal.run(partial(self._session.send_notice, method, params))

    def send_progress(self, *_: object) -> Awaitable[None]:
        """Do nothing: no request asked for progress."""
        return NOT_SENT

    def end_stream(self, retry_after: float) -> None:
        """Do nothing: a session has no stream to end."""

    async def ask(self, *_: object) -> Any:
        """Raise: only requests can ask and run steps."""
        raise _no_request("there is nobody to ask")

    step = retry = ask


def _no_request(text: str) -> LocalProtocolError:
    return LocalProtocolError(f"init, and the end of a session, belong to no request: {text}")
