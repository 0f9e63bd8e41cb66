"""Sessions of the revisions with a handshake: their state between requests, and their table.

Theory of operation. A session is made for an `initialize`, and gets its id and its place in the
table once that request is known to be valid. It is in use while a client waits for an answer or
reads a stream, and idle otherwise. It ends when its client sends a DELETE, when it has been idle
for `session_idle` seconds, when another session needs its place, or when the application ends.
`Sessions.end` is the only way to end it. It removes the session first, so a second call finds
nothing.

No lock is needed, since nothing waits between a check of the table and its change. Memory is
bounded: the number of sessions by `HttpLimits.sessions`, their events by `EventLog`, and all their
data by the quota of the client.

Source: 2025-11-25 `basic/transports`, "Session Management".
"""

import sys
from collections.abc import Awaitable, Hashable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import trio

from ...._errors import McpError
from ....jsonrpc import (
    INSUFFICIENT_SCOPE,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Decoded,
    Id,
)
from ....protocol import (
    HANDSHAKE_VERSIONS,
    SUPPORTED_VERSIONS,
    Dispatch,
    Fanout,
    Origin,
    PeerEvent,
    SendAnswer,
)
from ....server import ChangeFeed, Session, serve_in_task
from ....types import Principal
from ._asgi import HttpRefusal, HttpRequest, out_of_memory, unavailable
from ._event_store import EventLog, EventStream
from ._event_writer import EventWriter, TaskWork, time_left
from ._http_post import HttpPost, send_refusal
from ._quotas import EVICTABLE, HeldSession, Quota, Reservation, size_of
from ._running_app import RunningApp
from ._session_id import SessionIds

#: In lower case, as in ASGI.
SESSION: Final = b"mcp-session-id"
#: Bytes of a session itself.
SESSION_SIZE: Final = 4096
#: Bytes of a watched URI in addition to its characters.
WATCH_SIZE: Final = 256
#: Errors of handlers have status 200, except for missing scopes: 403 has the challenge that names
#: them (RFC 6750 section 3).
ANSWERS: Final = {INSUFFICIENT_SCOPE: 403}
#: A body that is not a JSON-RPC message is a bad HTTP request, too.
STATUSES: Final = {PARSE_ERROR: 400, INVALID_REQUEST: 400, **ANSWERS}


class HttpSession(Session):
    """One session: a connection whose messages come in many requests.

    Args:
        app: The shared part of the application.
        owner: The key of the principal that began it; None without authentication.
        quota: The quota of its client.
        table: Removes it when it ends.

    Attributes:
        id: The `Mcp-Session-Id`.
        owner: See Args.
        quota: See Args.
        event_log: Its event streams.
        get_stream: The stream for messages that belong to no request; read by a GET.
        used: When it was last used, on trio's clock.
        posts: The POSTs without a complete answer.
    """

    _sizes: Mapping[str, int] = MappingProxyType({})  # of the values of `put_session`

    def __init__(self, app: RunningApp, owner: str | None, quota: Quota, table: "Sessions") -> None:
        super().__init__(app.running)
        self._app = app
        # In the nursery of the application: an idle session needs no task.
        self._tasks = app.tasks.sibling()
        self.id = ""  # set when it is added to the table
        self.owner = owner
        self.quota = quota
        self.used = trio.current_time()
        self.posts: dict[HttpPost, None] = {}
        self._table = table
        self._reservation = Reservation(quota)
        self.event_log = EventLog(app.limits.history, self._reservation)
        self.get_stream = self.event_log.open()
        # Changes and other messages without a request are sent on one stream only, never in the
        # POST of another request (2025-11-25 `basic/transports`, "Multiple Connections").
        self.channel = self.get_stream

    @property
    def is_used(self) -> bool:
        """True while a client waits for an answer or reads a stream."""
        return self.event_log.is_read or not all(post.disconnected for post in self.posts)

    @property
    def idle(self) -> float:
        """Seconds since it was last used."""
        return 0.0 if self.is_used else trio.current_time() - self.used

    @property
    def polls(self) -> bool:
        """True if a stream may end before its answer, and the client comes back."""
        # Before 2025-11-25 servers should not end a stream before the answer.
        return self.peer.handshake.revision.polling

    def open_answer(self, event: Dispatch | Fanout) -> EventStream:
        """Open the stream of the answer to a POST.

        Args:
            event: The meaning of its message.
        """
        del event  # a stream of this process needs no more than the events
        return self.event_log.open()

    def _open_stream(self, event: Dispatch | Fanout, writer: EventWriter) -> EventStream:
        stream = self.open_answer(event)
        stream.attach(writer, None)
        if self.polls:
            stream.prime(self._app.limits.retry)
        return stream

    async def read(self, http: HttpRequest, last: str | None) -> None:
        """Answer a GET with a stream, as long as the client reads it.

        Args:
            http: The request.
            last: `Last-Event-ID`, the last event that the client received; None for the GET stream,
                from the last event that was sent to any reader.

        Raises:
            HttpRefusal: The event is not of this session, or is no longer stored (400).
        """
        stream, number = self.get_stream, None
        if last is not None:
            found = self.event_log.find(last)
            if found is None:
                text = "Last-Event-ID is not, or no longer, known"
                raise HttpRefusal(400, text, code=INVALID_REQUEST)
            stream, number = found
        # The token was checked with the head of this GET, and is not checked again while it lasts,
        # so the stream must not last longer than the token is trusted. It ends gracefully: a client
        # with a new token returns for the rest.
        life = time_left(http.principal, self._app.limits.stream_life)
        quota = self._app.quotas.of(http)
        writer = EventWriter(self._app.streams, quota, trio.current_time() + life)
        stream.attach(writer, http.principal)
        writer.on_close = partial(self._end_read, stream, writer)
        stream.replay(number)
        # An id at once: the reader can return even if the stream breaks before the first event.
        if self.polls and last is None:
            stream.prime(self._app.limits.retry)
        await writer.serve(http, may_hand_over=True)

    def _end_read(self, stream: EventStream, writer: EventWriter) -> None:
        stream.detach(writer)
        self._table.touch(self)

    def receive_from(self, post: HttpPost, message: Decoded) -> PeerEvent | None:
        """Convert the message of a POST to its event; see `Peer.receive`."""
        # The principal of this POST, not of the `initialize`: a new token may have other scopes.
        event = self.peer.receive(message, Origin(None, post.principal, self.quota.name))
        if self.listeners:
            self.observe_received(message, event, post.size)
        return event

    def take_message(self, message: Decoded) -> None:
        """Act on a message that needs no answer."""
        event = self.decide(message)
        if event is not None:
            self.take(event, self.get_stream)

    def act_on(self, post: HttpPost, event: PeerEvent | None) -> Awaitable[None]:
        """Answer a POST of the session (2025-11-25 `basic/transports`, "Sending Messages").

        Most of it happens when the returned awaitable is awaited.

        Args:
            post: The POST.
            event: The meaning of its message.
        """
        # A fanout is a batch of 2025-03-26. Without requests it is handled like a notification.
        if isinstance(event, Dispatch) or (isinstance(event, Fanout) and _is_asking(event)):
            return self._serve(post, event)
        # A POST without a request uses the session as well, which is then not idle.
        self._table.touch(self)
        if isinstance(event, SendAnswer):
            return send_refusal(post, event, STATUSES, 200)
        if event is not None:
            self.take(event, self.get_stream)
        # 2025-11-25 `basic/transports`: 202 without a body for notifications and responses.
        return post.respond(202, headers=())

    async def _serve(self, post: HttpPost, event: Dispatch | Fanout) -> None:
        post.statuses = ANSWERS
        # As a stream the answer can be read again.
        post.open_stream, post.polls = partial(self._open_stream, event), self.polls
        # A client that disconnects does not cancel its request (2025-11-25 `basic/transports`). The
        # handler continues, and the session is idle from now on.
        post.on_gone = partial(self._table.touch, self)
        # Before the handler starts: a session with an open answer is not idle, so it cannot lose
        # its place while the handler runs.
        self.posts[post] = None
        try:
            if isinstance(event, Dispatch):
                ctx, job = self.begin(event, post)
                await serve_in_task(ctx, job, post)
            else:
                self.take(event, post)
                # A stream that was handed over would be closed here, before its answers.
                await post.finish(may_hand_over=False)
        finally:
            del self.posts[post]
            self._table.touch(self)

    def make_feed(self) -> ChangeFeed:
        """Make the feed of the session; see `Session`."""
        limit = self.running.server.options.limits.subscriptions
        return WatchedFeed(self.running, self, limit)

    def reserve(self, size: int) -> None:
        """Count bytes that the session uses.

        Raises:
            McpError: There is no room (-32603).
        """
        if not self._reservation.reserve(size):
            raise McpError(INTERNAL_ERROR, "No memory is left for the session; try again later")

    def release(self, size: int) -> None:
        """Subtract bytes of the session."""
        self._reservation.release(size)

    def put_value(self, key: str, value: object) -> None:
        """Store a value for later requests; see `Session`.

        Raises:
            McpError: There is no room (-32603).
        """
        # The size is stored: a value may change later, and would be released with another size.
        size = size_of((key, value))
        self.reserve(size)
        self.release(self._sizes.get(key, 0))
        self._sizes = {**self._sizes, key: size}
        super().put_value(key, value)

    def spawn(self, work: TaskWork) -> None:
        """Run something beside the requests; see `InFlight`."""
        self._tasks.spawn(work)

    def stop(self) -> None:
        """End the session gracefully: refuse open requests, wake waiting code, end streams."""
        self._table.end(self)

    def evict(self) -> None:
        """Leave its place in the table to another session."""
        self.stop()

    def end(self) -> None:
        """End, after it was removed from the table."""
        # The refusals of open requests need their streams, which therefore end last.
        self.end_session()
        self.close("The session has ended")
        self._tasks.close()
        self.event_log.end()
        self._reservation.close()


def _size_of_watch(uri: str) -> int:
    return WATCH_SIZE + sys.getsizeof(uri)


def _is_asking(fanout: Fanout) -> bool:
    # `SendAnswer` refuses one message of the batch, which needs an answer like a request.
    return any(isinstance(event, Dispatch | SendAnswer) for event in fanout.events)


class WatchedFeed(ChangeFeed):
    """The changes of a session, sent on its GET stream.

    The GET stream knows its reader, whose token may differ from the subscriber's. So the stream
    decides who is notified of a resource that requires scopes.
    """

    @property
    def _http_session(self) -> HttpSession:
        session: Any = self.session
        found: HttpSession = session
        return found

    def watch(self, uri: str) -> None:
        """Watch a resource, and dismiss a reader who may not be notified of it; see `ChangeFeed`.

        Raises:
            McpError: The limit is reached (-32602), or there is no memory (-32603).
        """
        size, session = _size_of_watch(uri), self._http_session
        if self.subscriptions.watches(uri):
            return
        session.reserve(size)
        try:
            super().watch(uri)
        except McpError:
            session.release(size)
            raise
        registry = self.running.server.registry
        session.get_stream.dismiss(registry.required_for(uri, session.context()))

    def unwatch(self, uri: str) -> None:
        """Stop watching a resource; see `ChangeFeed`."""
        super().unwatch(uri)
        self._http_session.release(_size_of_watch(uri))

    def may_be_notified(self, uri: str, _id: Id | None) -> bool:
        """Tell whether the resource is available: the stream checks scopes; see `ChangeFeed`."""
        return not self.running.server.registry.hides(uri, self.session.context())

    def deliver(self, notice: bytes, change: Hashable) -> None:
        """Send the notification of a change to readers who may get it; see `ChangeFeed`."""
        uri = change[0] if isinstance(change, tuple) else None
        requires = None
        if uri is not None:
            registry = self.running.server.registry
            requires = registry.required_for(uri, self.session.context())
        self._http_session.get_stream.deliver(notice, requires)


class Sessions:
    """The sessions of one endpoint.

    Args:
        app: The shared part of the application.
    """

    def __init__(self, app: RunningApp) -> None:
        self._app = app
        self._sessions: dict[str, HttpSession] = {}
        self._ids = SessionIds(
            app.running.server,
            sealed=app.seal_sessions,
            # `open_node` has found the keys, or a backend in this process.
            in_process=app.running.node is not None,
        )

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter(list(self._sessions.values()))

    def make(self, http: HttpRequest) -> HttpSession:
        """Make a session, to be added with `add`.

        Args:
            http: The request that begins it.
        """
        quota = self._app.quotas.of(http)
        session = HttpSession(self._app, owner_of(http.principal), quota, self)
        session.peer.origin = Origin(None, http.principal, quota.name)
        return session

    def add(self, session: HttpSession) -> None:
        """Add a session to the table, once its handshake has begun.

        Raises:
            HttpRefusal: The table or the memory is full, and no session can be evicted (503).
        """
        self._enter(session, self._ids.make(session.peer.handshake.agreed(), session.owner))

    def _enter(self, session: HttpSession, id_: str) -> None:
        quotas, limit = self._app.quotas, self._app.limits.sessions
        if len(self._sessions) >= limit:
            # Before the new session is in the tables: the search must not find it.
            spare = self.find_spare(session)
            if spare is None:
                raise unavailable(f"More than {limit} sessions", EVICTABLE)
            spare.evict()
        handshake = session.peer.handshake
        client = handshake.client_info, handshake.client_capabilities
        try:
            session.reserve(SESSION_SIZE + size_of((id_, *client)))
        except McpError:
            raise out_of_memory() from None
        session.id = id_
        self._sessions[id_] = session
        quotas.add_session(session)

    def find_spare(self, session: HttpSession) -> HeldSession | None:
        """Find the session to evict for a new one."""
        return self._app.quotas.find_spare(session.quota)

    def read_id(self, http: HttpRequest) -> str:
        """Read the id of the session of a request.

        Raises:
            HttpRefusal: The id is missing, or the revision has no sessions (400).
        """
        version, sent = http.version, http.headers.get(SESSION)
        # A version other than the negotiated one is accepted: the official suite 0.1.16 sends such.
        if version is not None and version not in HANDSHAKE_VERSIONS:
            text = f"MCP-Protocol-Version {version[:50]!r} is not supported"
            data = {"supported": list(SUPPORTED_VERSIONS), "requested": version[:50]}
            raise HttpRefusal(400, text, code=UNSUPPORTED_VERSION, data=data)
        if sent is None:
            raise HttpRefusal(400, "Mcp-Session-Id header is missing", code=INVALID_REQUEST)
        return sent.decode("latin-1").strip(" \t")  # as `header` reads it

    def find(self, http: HttpRequest) -> HttpSession:
        """Find the session of a request, or restore a session that another process began.

        Raises:
            HttpRefusal: The id is missing, or the revision has no sessions (400); or this principal
                has no such session (404).
        """
        id_ = self.read_id(http)
        session = self._sessions.get(id_) or self._restore(id_, http)
        if session is None or session.owner != owner_of(http.principal):
            raise not_found()
        # Another process may have received the `initialized` notification.
        if self._ids.sealed and session.peer.handshake.complete():
            session.complete_handshake()
        return session

    def _restore(self, id_: str, http: HttpRequest) -> HttpSession | None:
        agreed = self._ids.read(id_, owner_of(http.principal))
        if agreed is None:
            return None
        session = self.make(http)
        # The sealed id contains the result of the handshake; processes share nothing else.
        session.peer.handshake.resume(agreed)
        self._enter(session, id_)
        session.complete_handshake()
        return session

    def touch(self, session: HttpSession) -> None:
        """Record the end of a use; during the use `HttpSession.is_used` is True."""
        session.used = trio.current_time()
        # One check for both tables: a session is in both or in none.
        if session.id in self._sessions:
            self._app.quotas.touch_session(session)

    def delete(self, session: HttpSession) -> None:
        """End a session for good, as requested by its client."""
        # Otherwise a sealed id could restore the session in this process.
        self._ids.end(session.id)
        self.end(session)

    def end(self, session: HttpSession) -> None:
        """End a session and remove it; a second call does nothing."""
        if self._sessions.pop(session.id, None) is not None:
            self._app.quotas.remove_session(session)
            session.end()

    async def sweep(self) -> None:
        """End idle sessions regularly, until cancelled."""
        while True:
            # A session outlives its time by at most a quarter, and checks are rare.
            await trio.sleep(self._app.limits.session_idle / 4)
            for session in self:
                if session.idle >= self._app.limits.session_idle:
                    self.end(session)


def not_found() -> HttpRefusal:
    """Make the refusal of a request of no session of its principal (404)."""
    # The same for the session of another principal: knowing an id proves nothing, and the answer
    # must not reveal that the id exists (security best practices, "Session Hijacking").
    return HttpRefusal(404, "Session not found; initialize again", code=INVALID_REQUEST)


def is_handshake(version: str | None) -> bool:
    """Tell whether the header allows a session; without it, the negotiated version applies."""
    return version is None or version in HANDSHAKE_VERSIONS


def owner_of(principal: Principal | None) -> str | None:
    """Return the key of the principal that owns a session; None without authentication."""
    return None if principal is None else principal.key
