"""Sessions of the revisions with a handshake: their state between requests, and their table.

Theory of operation. A session is made for an `initialize`, and gets its id and its place in the
table once that request proves valid. It is in use while a client waits for an answer or reads a
stream, and idle otherwise. It ends when its client sends a DELETE, when it has been idle for
`session_idle` seconds, when another session needs its place, or when the application ends.
`Sessions.end` is the only way out. It forgets the session first, so a second end finds nothing.

No lock is needed, since nothing waits between a look at the table and its change. Memory is
bounded: the number of sessions by `HttpLimits.sessions`, their events by `History`, and all that
they keep by the account of the client.

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
    Event,
    Fanout,
    Origin,
    Send,
)
from ....server import ChangeFeed, Session, serve_in_task
from ....types import Principal
from ._asgi import HttpRequest, Refused, out_of_memory, unavailable
from ._event_store import EventStream, History
from ._event_writer import EventWriter, Work, time_left
from ._quotas import EVICTABLE, Account, Hold, size_of
from ._reply import Reply, send_refusal
from ._running_app import RunningApp
from ._session_id import SessionIds

#: In lower case, as ASGI hands header names over.
SESSION: Final = b"mcp-session-id"
#: Bytes of a session itself.
SESSION_SIZE: Final = 4096
#: Bytes of a watched URI beside its characters.
WATCH_SIZE: Final = 256
#: Errors of handlers travel with 200. Missing scopes are the exception: 403 carries the challenge
#: that names them (RFC 6750 section 3).
ANSWERS: Final = {INSUFFICIENT_SCOPE: 403}
#: A body that is no JSON-RPC message is a bad HTTP request, too.
STATUSES: Final = {PARSE_ERROR: 400, INVALID_REQUEST: 400, **ANSWERS}


class HttpSession(Session):
    """One session: a connection whose messages come in many requests.

    Args:
        app: The shared part of the application.
        owner: The key of the principal that began it; None where nobody is verified.
        account: The quota of its client.
        table: Forgets it when it ends.

    Attributes:
        id: The `Mcp-Session-Id`.
        owner: See Args.
        account: See Args.
        history: Its event streams.
        standing: The stream for messages that belong to no request; a GET reads it.
        used: When it was last used, on trio's clock.
        replies: The answers to its requests that are being given.
    """

    _sizes: Mapping[str, int] = MappingProxyType({})  # of the values of `put_session`

    def __init__(
        self, app: RunningApp, owner: str | None, account: Account, table: "Sessions"
    ) -> None:
        super().__init__(app.running)
        self._app = app
        # In the nursery of the application: an idle session costs no task.
        self._tasks = app.tasks.sibling()
        self.id = ""  # until it is entered
        self.owner = owner
        self.account = account
        self.used = trio.current_time()
        self.replies: dict[Reply, None] = {}
        self._table = table
        self._hold = Hold(account)
        self.history = History(app.limits.history, self._hold)
        self.standing = self.history.open()
        # Changes and other messages without a request go to one stream only, never to a POST of
        # another request (2025-11-25 `basic/transports`, "Multiple Connections").
        self.channel = self.standing

    @property
    def is_used(self) -> bool:
        """True while a client waits for an answer or reads a stream."""
        return self.history.is_read or not all(reply.gone for reply in self.replies)

    @property
    def idle(self) -> float:
        """Seconds since it was used."""
        return 0.0 if self.is_used else trio.current_time() - self.used

    @property
    def _polls(self) -> bool:
        # Before 2025-11-25 servers should not end a stream ahead of the answer.
        return self.peer.handshake.revision.polling

    def _open_stream(self, writer: EventWriter) -> EventStream:
        stream = self.history.open()
        stream.attach(writer, None)
        if self._polls:
            stream.prime(self._app.limits.retry)
        return stream

    async def read(self, http: HttpRequest, last: str | None) -> None:
        """Answer a GET with a stream, for as long as the client reads it.

        Args:
            http: The request.
            last: `Last-Event-ID`, the last event that the client has; None: the standing stream,
                from the last event that any reader was given.

        Raises:
            Refused: The event is not one of this session, or is no longer kept (400).
        """
        stream, number = self.standing, None
        if last is not None:
            found = self.history.find(last)
            if found is None:
                text = "Last-Event-ID is not, or no longer, known"
                raise Refused(400, text, code=INVALID_REQUEST)
            stream, number = found
        # The token was checked with the head of this GET, and will not be checked again while it
        # lasts: so the stream must not last longer than the token is trusted. It ends in order: a
        # client with a fresh token comes back for the rest.
        life = time_left(http.principal, self._app.limits.stream_life)
        account = self._app.accounts.of(http)
        writer = EventWriter(self._app.streams, account, trio.current_time() + life)
        stream.attach(writer, http.principal)
        writer.on_close = partial(self._end_read, stream, writer)
        stream.replay(number)
        # An id at once: the reader can come back even if the stream breaks before the first event.
        if self._polls and last is None:
            stream.prime(self._app.limits.retry)
        await writer.serve(http, may_hand_over=True)

    def _end_read(self, stream: EventStream, writer: EventWriter) -> None:
        stream.detach(writer)
        self._table.touch(self)

    def receive_from(self, http: HttpRequest, message: Decoded) -> Event | None:
        """Turn a message that came with a POST into its event; see `Peer.receive`."""
        # The principal of this POST, not of the `initialize`: a fresh token may have other scopes.
        event = self.peer.receive(message, Origin(None, http.principal, self.account.name))
        if self.listeners:
            self.observe_received(message, event, http.size)
        return event

    def act_on(self, http: HttpRequest, event: Event | None) -> Awaitable[None]:
        """Answer a POST of the session (2025-11-25 `basic/transports`, "Sending Messages").

        Most of it happens when the return value is awaited.

        Args:
            http: The POST.
            event: The meaning of its message.
        """
        # A fanout is the array of 2025-03-26. One without requests is taken like a notification.
        if isinstance(event, Dispatch) or (isinstance(event, Fanout) and _is_asking(event)):
            return self._serve(http, event)
        # A POST without a request uses the session as well: it must not be taken for idle.
        self._table.touch(self)
        if isinstance(event, Send):
            return send_refusal(http, event, STATUSES, 200)
        if event is not None:
            self.take(event, self.standing)
        # 2025-11-25 `basic/transports`: 202 and no body for notifications and responses.
        return http.respond(202, headers=())

    async def _serve(self, http: HttpRequest, event: Dispatch | Fanout) -> None:
        # As a stream the answer can be read again.
        reply = Reply(http, self._app, ANSWERS, self._open_stream, polls=self._polls)
        # A client that leaves does not cancel its request (2025-11-25 `basic/transports`). The
        # handler goes on, and the session counts as idle from now on.
        reply.on_gone = partial(self._table.touch, self)
        # Before the handler starts: a session with an open answer is not idle, so it cannot lose
        # its place while the handler runs.
        self.replies[reply] = None
        try:
            if isinstance(event, Dispatch):
                ctx, job = self.begin(event, reply)
                await serve_in_task(ctx, job, reply)
            else:
                self.take(event, reply)
                # A stream that is handed over would be closed here, before its answers.
                await reply.finish(may_hand_over=False)
        finally:
            reply.close()
            del self.replies[reply]
            self._table.touch(self)

    def make_feed(self) -> ChangeFeed:
        """Make the feed of the session; see `Session`."""
        limit = self.running.server.options.limits.subscriptions
        return _StandingFeed(self.running, self, limit)

    def reserve(self, size: int) -> None:
        """Count bytes that the session keeps.

        Raises:
            McpError: There is no room (-32603).
        """
        if not self._hold.reserve(size):
            raise McpError(INTERNAL_ERROR, "No memory is left for the session; try again later")

    def release(self, size: int) -> None:
        """Count bytes of the session no more."""
        self._hold.release(size)

    def put_value(self, key: str, value: Any) -> None:
        """Store a value for later requests; see `Session`.

        Raises:
            McpError: There is no room (-32603).
        """
        # Noted: a value may change after it was stored, and would be released with another size.
        size = size_of((key, value))
        self.reserve(size)
        self.release(self._sizes.get(key, 0))
        self._sizes = {**self._sizes, key: size}
        super().put_value(key, value)

    def spawn(self, work: Work) -> None:
        """Run something beside the requests; see `InFlight`."""
        self._tasks.spawn(work)

    def stop(self) -> None:
        """End in order: open requests are refused, waiting code is woken, streams end."""
        self._table.end(self)

    def end(self) -> None:
        """End, after the table has forgotten it."""
        # The refusals of open requests need their streams, which therefore end last.
        self.end_session()
        self.close("The session has ended")
        self._tasks.close()
        self.history.end()
        self._hold.close()


def _size_of_watch(uri: str) -> int:
    return WATCH_SIZE + sys.getsizeof(uri)


def _is_asking(fanout: Fanout) -> bool:
    # `Send` is the refusal of one message of the array, which needs an answer like a request.
    return any(isinstance(event, Dispatch | Send) for event in fanout.events)


class _StandingFeed(ChangeFeed):
    """The changes of a session, on its standing stream.

    The standing stream knows its reader, whose token may differ from that of the subscription. So
    the stream decides who hears of a resource that needs scopes.
    """

    @property
    def _http_session(self) -> HttpSession:
        session: Any = self.session
        found: HttpSession = session
        return found

    def watch(self, uri: str) -> None:
        """Watch a resource, and send a reader away who could not hear of it; see `ChangeFeed`.

        Raises:
            McpError: The limit is reached (-32602), or no memory is left (-32603).
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
        session.standing.dismiss(registry.required_for(uri, session.context()))

    def unwatch(self, uri: str) -> None:
        """Stop watching a resource; see `ChangeFeed`."""
        super().unwatch(uri)
        self._http_session.release(_size_of_watch(uri))

    def may_hear(self, uri: str, _id: Id | None) -> bool:
        """Tell whether the resource is available: the stream checks scopes; see `ChangeFeed`."""
        return not self.running.server.registry.hides(uri, self.session.context())

    def deliver(self, notice: bytes, change: Hashable) -> None:
        """Send the notice of a change to readers who may have it; see `ChangeFeed`."""
        uri = change[0] if isinstance(change, tuple) else None
        requires = None
        if uri is not None:
            registry = self.running.server.registry
            requires = registry.required_for(uri, self.session.context())
        self._http_session.standing.deliver(notice, requires)


class Sessions:
    """The sessions of one endpoint.

    Args:
        app: The shared part of the application.
    """

    def __init__(self, app: RunningApp) -> None:
        self._app = app
        self._limits = app.limits
        self._sessions = app.accounts.sessions
        self._ids = SessionIds(app.running.server, sealed=app.seal_sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter(list(self._sessions.values()))

    def make(self, http: HttpRequest) -> HttpSession:
        """Make a session, which `add` enters.

        Args:
            http: The request that begins it.
        """
        account = self._app.accounts.of(http)
        session = HttpSession(self._app, owner_of(http.principal), account, self)
        session.peer.origin = Origin(None, http.principal, account.name)
        return session

    def add(self, session: HttpSession) -> None:
        """Enter a session, once its handshake has begun.

        Raises:
            Refused: The table or the memory is full, and no session can make room (503).
        """
        self._enter(session, self._ids.make(session.peer.handshake.agreed(), session.owner))

    def _enter(self, session: HttpSession, id_: str) -> None:
        if len(self._sessions) >= self._limits.sessions:
            # Before the new session stands in the tables: the search must not find it.
            self.end(self._spare(session.account))
        handshake = session.peer.handshake
        client = handshake.client_info, handshake.client_capabilities
        try:
            session.reserve(SESSION_SIZE + size_of((id_, *client)))
        except McpError:
            raise out_of_memory() from None
        session.id = id_
        self._sessions[id_] = session.account.sessions[id_] = session
        self._app.accounts.busiest.note(session.account)

    def _spare(self, account: Account) -> HttpSession:
        """Find a session that makes room for another one of a client."""
        heaviest = self._app.accounts.busiest.find(self._limits.sessions)
        # A client that has the most pays for the new session with one of its own. One that has two
        # more than the new one's client gives up an idle session at once, so nobody is locked out
        # by others. Otherwise all are alike, and a session must have been idle for a minute.
        if heaviest is account and len(account.sessions) > 1:
            found = account.sessions.find_idle(EVICTABLE)
        elif len(heaviest.sessions) > len(account.sessions) + 1:
            found = heaviest.sessions.find_idle(0)
        else:
            found = self._sessions.find_idle(EVICTABLE)
        if found is None:
            raise unavailable(f"More than {self._limits.sessions} sessions", EVICTABLE)
        return found

    def find(self, http: HttpRequest) -> HttpSession:
        """Find the session of a request, or restore one that another process began.

        Raises:
            Refused: No id was sent, or a revision without sessions (400); or there is no such
                session of this principal (404).
        """
        version, id_ = http.version, http.header(SESSION)
        # Another one than was agreed on is let pass: the official suite 0.1.16 sends such.
        if version is not None and version not in HANDSHAKE_VERSIONS:
            text = f"MCP-Protocol-Version {version[:50]!r} is not supported"
            data = {"supported": list(SUPPORTED_VERSIONS), "requested": version[:50]}
            raise Refused(400, text, code=UNSUPPORTED_VERSION, data=data)
        if id_ is None:
            raise Refused(400, "Mcp-Session-Id header is missing", code=INVALID_REQUEST)
        owner = owner_of(http.principal)
        session = self._sessions.get(id_) or self._take_up(id_, http)
        # The same 404 for the session of another principal: possession of an id proves nothing, and
        # the answer must not tell that the id exists (security best practices, "Session
        # Hijacking").
        if session is None or session.owner != owner:
            raise Refused(404, "Session not found; initialize again", code=INVALID_REQUEST)
        # Another process may have heard that the handshake is complete.
        if self._ids.sealed and session.peer.handshake.complete():
            session.complete_handshake()
        return session

    def _take_up(self, id_: str, http: HttpRequest) -> HttpSession | None:
        agreed = self._ids.read(id_, owner_of(http.principal))
        if agreed is None:
            return None
        session = self.make(http)
        # The sealed id carries the result of the handshake; nothing else is shared between
        # processes.
        session.peer.handshake.resume(agreed)
        self._enter(session, id_)
        session.complete_handshake()
        return session

    def touch(self, session: HttpSession) -> None:
        """Note the end of a use; while the use lasts, `HttpSession.is_used` is True."""
        session.used = trio.current_time()
        # One look for both tables: a session stands in both or in none.
        if session.id in self._sessions:
            self._sessions.move_to_end(session.id)
            session.account.sessions.move_to_end(session.id)

    def delete(self, session: HttpSession) -> None:
        """End a session for good, as its client wants it."""
        # A sealed id could otherwise restore the session in this process.
        self._ids.end(session.id)
        self.end(session)

    def end(self, session: HttpSession) -> None:
        """End a session and forget it; ending it twice is fine."""
        if self._sessions.pop(session.id, None) is not None:
            del session.account.sessions[session.id]
            session.end()

    async def sweep(self) -> None:
        """End idle sessions, again and again, until cancelled."""
        while True:
            # A quarter: a session outlives its time by a quarter at most, and looks stay rare.
            await trio.sleep(self._limits.session_idle / 4)
            for session in self:
                if session.idle >= self._limits.session_idle:
                    self.end(session)


def is_handshake(version: str | None) -> bool:
    """Tell whether the header allows a session; without one, the negotiated version counts."""
    return version is None or version in HANDSHAKE_VERSIONS


def owner_of(principal: Principal | None) -> str | None:
    """Return the key of the principal that owns a session; None where nobody is verified."""
    return None if principal is None else principal.key
