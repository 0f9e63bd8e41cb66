"""Sessions of the revisions with a handshake: their state between requests, and their table.

Theory of operation. A session is made for an `initialize`, and gets its id and its place in the
table once that request proves valid. It is in use while a client waits for an answer or reads a
stream, and idle otherwise. It ends when its client sends a DELETE, when it has been idle for
`session_idle` seconds, when another session needs its place, or when the application ends.
`Sessions.end` is the only way out. It forgets the session first, so a second end finds nothing.

No lock is needed, since nothing waits between a look at the table and its change. Memory is
bounded: the number of sessions by `HttpLimits.sessions`, their events by `History`, the requests
by the account of the client.

Source: 2025-11-25 `basic/transports`, "Session Management".
"""

from collections.abc import Hashable, Iterator
from functools import partial
from typing import Any, Final

import trio

from ....jsonrpc import INSUFFICIENT_SCOPE, INVALID_REQUEST, PARSE_ERROR, Decoded, Id, Notification
from ....protocol import Dispatch, Event, Fanout, Origin, Send
from ....server import ChangeFeed, Session, serve_in_task
from ....types import Principal
from ._asgi import HttpRequest, Refused, unavailable
from ._connection import Host
from ._event_store import EventStream, History
from ._event_writer import EventWriter
from ._quotas import Account, SessionTable
from ._reply import Reply, send_refusal
from ._session_id import SessionIds
from ._stream_lifetime import time_left
from ._task_group import Work

#: Seconds that a session must have been idle before another one may take its place, unless its
#: client has more of them than others.
EVICTABLE: Final = 60.0
#: Errors of handlers travel with 200. Missing scopes are the exception: 403 carries the challenge
#: that names them (RFC 6750 section 3).
ANSWERS: Final = {INSUFFICIENT_SCOPE: 403}
#: A body that is no JSON-RPC message is a bad HTTP request, too.
STATUSES: Final = {PARSE_ERROR: 400, INVALID_REQUEST: 400, **ANSWERS}


class HttpSession(Session):
    """One session: a connection whose messages come in many requests.

    Args:
        host: The shared part of the application.
        owner: The key of the principal that began it; None where nobody is verified.
        account: The quota of its client.
        table: Forgets it when it ends.

    Attributes:
        id: The `Mcp-Session-Id`.
        owner: See Args.
        account: See Args.
        standing: The stream for messages that belong to no request; a GET reads it.
        used: When it was last used, on trio's clock.
        replies: The answers to its requests that are being given.
    """

    def __init__(self, host: Host, owner: str | None, account: Account, table: "Sessions") -> None:
        super().__init__(host.running)
        self._host = host
        # In the nursery of the application: an idle session costs no task.
        self._tasks = host.tasks.sibling()
        self.id = ""  # until it is entered
        self.owner = owner
        self.account = account
        self.used = trio.current_time()
        self.replies: dict[Reply, None] = {}
        self._table = table
        self._history = History(host.options.limits.history, account)
        self.standing = self._history.open()
        # Changes and other messages without a request go to one stream only, never to a POST of
        # another request (2025-11-25 `basic/transports`, "Multiple Connections").
        self.channel = self.standing

    @property
    def is_used(self) -> bool:
        """True while a client waits for an answer or reads a stream."""
        return self._history.is_read or any(not reply.gone for reply in self.replies)

    @property
    def idle(self) -> float:
        """Seconds since it was used."""
        return 0.0 if self.is_used else trio.current_time() - self.used

    @property
    def _polls(self) -> bool:
        # Before 2025-11-25 servers should not end a stream ahead of the answer.
        return self.peer.handshake.revision.polling

    def make_reply(self, http: HttpRequest) -> Reply:
        """Make the answer to a POST; as a stream it can be read again."""
        reply = Reply(
            http,
            self._host.tasks,
            self._host.pace,
            statuses=ANSWERS,
            open_stream=self._open_stream,
            polls=self._polls,
        )
        # A client that leaves does not cancel its request (2025-11-25 `basic/transports`). The
        # handler goes on, and the session counts as idle from now on.
        reply.on_gone = partial(self._table.touch, self)
        return reply

    def _open_stream(self, writer: EventWriter) -> EventStream:
        stream = self._history.open()
        stream.attach(writer, None)
        if self._polls:
            stream.prime(self._host.options.limits.retry)
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
            found = self._history.find(last)
            if found is None:
                text = "Last-Event-ID is not, or no longer, known"
                raise Refused(400, text, code=INVALID_REQUEST)
            stream, number = found
        writer = EventWriter(self._host.pace)
        stream.attach(writer, http.principal)
        stream.replay(number)
        # An id at once: the reader can come back even if the stream breaks before the first event.
        if self._polls and last is None:
            stream.prime(self._host.options.limits.retry)
        # Not in the tasks of the session: when that ends, the bytes that wait are still written.
        self._host.tasks.spawn(partial(writer.run, http))
        try:
            # The token was checked with the head of this GET, and will not be checked again while
            # it lasts: so the stream must not last longer than the token is trusted.
            left = time_left(http.principal, self._host.options.limits.stream_life)
            with trio.move_on_after(left) as life:
                await writer.lost(http)
            if life.cancelled_caught:
                writer.end()  # in order: a client with a fresh token comes back for the rest
                await writer.lost(http)
        finally:
            writer.close()
            stream.detach(writer)
            self._table.touch(self)

    def receive_from(self, http: HttpRequest, message: Decoded) -> Event | None:
        """Decide on a message that came with a POST; see `Dispatcher.receive`."""
        # The principal of this POST, not of the `initialize`: a fresh token may have other scopes.
        event = self.peer.receive(message, Origin(None, http.principal))
        if self.listeners:
            self.observe_received(message, event, http.size)
        return event

    async def post(self, http: HttpRequest, message: Decoded) -> None:
        """Answer a POST of the session (2025-11-25 `basic/transports`, "Sending Messages").

        Args:
            http: The POST.
            message: Its body.
        """
        await self.act_on(http, self.receive_from(http, message))

    async def act_on(self, http: HttpRequest, event: Event | None) -> None:
        """Act on a message that came with a POST, and answer the POST.

        Args:
            http: The POST.
            event: The meaning of the message.
        """
        # A fanout is the array of 2025-03-26. One without requests is taken like a notification.
        if isinstance(event, Dispatch) or (isinstance(event, Fanout) and _is_asking(event)):
            await self._serve(http, event)
            return
        # A POST without a request uses the session as well: it must not be taken for idle.
        self._table.touch(self)
        if isinstance(event, Send):
            await send_refusal(http, event, STATUSES, 200)
        else:
            if event is not None:
                self.take(event, self.standing)
            # 2025-11-25 `basic/transports`: 202 and no body for notifications and responses.
            await http.respond(202, headers=())

    async def _serve(self, http: HttpRequest, event: Dispatch | Fanout) -> None:
        reply = self.make_reply(http)
        # Before the handler starts: a session with an open answer is not idle, so it cannot lose
        # its place while the handler runs.
        self.replies[reply] = None
        try:
            if isinstance(event, Dispatch):
                ctx, job = self.begin(event.request, event.envelope, reply)
                await serve_in_task(ctx, job, reply)
            else:
                self.take(event, reply)
                await reply.finish()
        finally:
            reply.close()
            del self.replies[reply]
            self._table.touch(self)

    def make_feed(self) -> ChangeFeed:
        """Make the feed of the session; see `Session`."""
        limit = self.running.server.options.limits.subscriptions
        return _StandingFeed(self.running, self, limit)

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
        self._history.end()

    def hang_up(self) -> None:
        """Wait no longer for readers that have not read everything."""
        self._history.hang_up()


def _is_asking(fanout: Fanout) -> bool:
    # `Send` is the refusal of one message of the array, which needs an answer like a request.
    return any(isinstance(event, Dispatch | Send) for event in fanout.events)


class _StandingFeed(ChangeFeed):
    """The changes of a session, on its standing stream.

    The standing stream knows its reader, whose token may differ from that of the subscription. So
    the stream decides who hears of a resource that needs scopes.
    """

    @property
    def _standing(self) -> EventStream:
        session: Any = self.session
        standing: EventStream = session.standing
        return standing

    def watch(self, uri: str) -> None:
        """Watch a resource, and send a reader away who could not hear of it; see `ChangeFeed`."""
        super().watch(uri)
        self._standing.dismiss(self.running.server.registry.required_for(uri))

    def may_hear(self, _uri: str, _id: Id | None) -> bool:
        """Tell everybody: the stream checks its reader; see `ChangeFeed`."""
        return True

    def send_notice(self, notice: Notification, change: Hashable) -> None:
        """Send the notice of a change to readers who may have it; see `ChangeFeed`."""
        uri = change[0] if isinstance(change, tuple) else None
        requires = None if uri is None else self.running.server.registry.required_for(uri)
        self._standing.deliver(self.session.encode_notice(notice), requires)


class Sessions:
    """The sessions of one endpoint.

    Args:
        host: The shared part of the application.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._limits = host.options.limits
        self._sessions: SessionTable[HttpSession] = SessionTable()
        self._ids = SessionIds(host.running.server, sealed=host.options.seal_sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter(list(self._sessions.values()))

    def make(self, http: HttpRequest) -> HttpSession:
        """Make a session, which `add` enters.

        Args:
            http: The request that begins it.
        """
        account = self._host.accounts.of(http)
        session = HttpSession(self._host, owner_of(http.principal), account, self)
        session.peer.origin = Origin(None, http.principal)
        return session

    def add(self, session: HttpSession) -> None:
        """Enter a session, once its handshake has begun.

        Raises:
            Refused: The table is full, and no session can make room (503).
        """
        self._enter(session, self._ids.make(session))

    def _enter(self, session: HttpSession, id_: str) -> None:
        if len(self._sessions) >= self._limits.sessions:
            # Before the new session stands in the tables: the search must not find it.
            self.end(self._spare(session.account))
        session.id = id_
        self._sessions[id_] = session.account.sessions[id_] = session
        self._host.accounts.note(session.account)

    def _spare(self, account: Account) -> HttpSession:
        """Find a session that makes room for another one of a client."""
        heaviest = self._host.accounts.heaviest()
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

    def find(self, id_: str | None, http: HttpRequest) -> HttpSession:
        """Find the session of a request, or restore one that another process began.

        Args:
            id_: The `Mcp-Session-Id` of the request.
            http: The request.

        Raises:
            Refused: No id was sent (400); or there is no such session of this principal (404).
        """
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
        self._sessions.touch(session)
        session.account.sessions.touch(session)

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


def owner_of(principal: Principal | None) -> str | None:
    """Return the key of the principal that owns a session; None where nobody is verified."""
    return None if principal is None else principal.key
