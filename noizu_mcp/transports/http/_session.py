"""Sessions with a handshake: what one keeps between requests, and the table of all.

Source: 2025-11-25 `basic/transports`, "Session Management".
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Final

import trio

from ...jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from ._asgi import HttpRequest, Refused
from ._connection import Host, HttpConnection
from ._history import EventStream, History
from ._reply import Reply
from ._sse import EventWriter

#: Seconds that a session must have been idle before another one may take its place.
EVICTABLE: Final = 60.0
#: Random bytes of a session id.
ENTROPY: Final = 24
#: With a handshake errors have no status of their own, but for what is no request.
STATUSES: Final = {PARSE_ERROR: 400, INVALID_REQUEST: 400}


class Session:
    """One session.

    Args:
        host: What it shares with the others.
        owner: Names the principal that began it; None where nobody is verified.
        table: Forgets it when it ends.

    Attributes:
        id: What the client names it by.
        connection: What serves it.
        standing: The stream for what belongs to no request; a GET reads it.
        used: When it was last used, on trio's clock.
    """

    def __init__(self, host: Host, owner: str | None, table: "Sessions") -> None:
        self.id = secrets.token_urlsafe(ENTROPY)
        self.owner = owner
        self.connection = HttpConnection(host, partial(table.end, self))
        self.used = trio.current_time()
        self._limits = host.options.limits
        self._pace = host.pace
        self._history = History(int(self._limits.history))
        self.standing = self._history.open()
        self.desk = self.connection.begin(self.standing)

    @property
    def idle(self) -> float:
        """Seconds since it was used; 0 while a request runs or a stream is read."""
        if self.desk.busy or self._history.is_read:
            return 0.0
        return trio.current_time() - self.used

    @property
    def _polls(self) -> bool:
        return self.connection.peer.handshake.revision.polling

    def reply(self, http: HttpRequest) -> Reply:
        """Make the answer to a POST; as a stream it can be read again."""
        return Reply(
            http,
            self.connection.tasks,
            self._pace,
            statuses=STATUSES,
            open_stream=self._open_stream,
        )

    def _open_stream(self, writer: EventWriter) -> EventStream:
        stream = self._history.open()
        stream.attach(writer)
        if self._polls:
            stream.prime(self._limits.retry)
        return stream

    async def read(self, http: HttpRequest, last: str | None) -> None:
        """Answer a GET with a stream, for as long as the client reads it.

        Args:
            http: The request.
            last: The last event that the client has of the stream; None: the standing one.

        Raises:
            Refused: That event is none of this session, or no longer kept (400).
        """
        stream, number = self.standing, None
        if last is not None:
            found = self._history.find(last)
            if found is None:
                text = "Last-Event-ID is not, or no longer, known"
                raise Refused(400, text, code=INVALID_REQUEST)
            stream, number = found
        writer = EventWriter(self._pace)
        stream.attach(writer)
        if number is not None:
            stream.replay(number)
        elif self._polls:
            stream.prime(self._limits.retry)
        await self._write(http, stream, writer)

    async def _write(self, http: HttpRequest, stream: EventStream, writer: EventWriter) -> None:
        watching = trio.CancelScope()

        async def watch() -> None:
            with watching:
                await http.gone()
                writer.close()

        self.desk.spawn(watch)
        try:
            await writer.run(http)
        finally:
            stream.detach(writer)
            watching.cancel()
            self.used = trio.current_time()

    def end(self) -> None:
        """End it: what runs is cancelled, who waits is told, streams end."""
        self._history.end()
        self.connection.end()


class Sessions:
    """The sessions of one endpoint.

    Args:
        host: What they share.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._limits = host.options.limits
        self._sessions: OrderedDict[str, Session] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def make(self, owner: str | None) -> Session:
        """Make a session, which `add` enters.

        Raises:
            Refused: There are too many, and none has been idle for long (503).
        """
        if len(self._sessions) >= self._limits.sessions:
            oldest = next(iter(self._sessions.values()))
            if oldest.idle < EVICTABLE:
                text = f"More than {self._limits.sessions:g} sessions"
                raise unavailable(text, EVICTABLE)
            self.end(oldest)
        return Session(self._host, owner, self)

    def add(self, session: Session) -> None:
        """Enter a session, once its handshake has begun."""
        self._sessions[session.id] = session

    def find(self, id_: str | None, owner: str | None) -> Session:
        """Find the session of a request.

        Args:
            id_: What the client sent as `Mcp-Session-Id`.
            owner: Names the principal who asks.

        Raises:
            Refused: No id was sent (400); or there is no such session of this principal (404).
        """
        if id_ is None:
            raise Refused(400, "Mcp-Session-Id header is missing", code=INVALID_REQUEST)
        session = self._sessions.get(id_)
        if session is None or session.owner != owner:
            raise Refused(404, "Session not found; initialize again", code=INVALID_REQUEST)
        session.used = trio.current_time()
        self._sessions.move_to_end(id_)
        return session

    def end(self, session: Session) -> None:
        """End a session and forget it; ending it twice is fine."""
        if self._sessions.pop(session.id, None) is not None:
            session.end()

    async def sweep(self) -> None:
        """End what has been idle for too long, for ever."""
        while True:
            await trio.sleep(self._limits.session_idle / 4)
            for session in self:
                if session.idle >= self._limits.session_idle:
                    self.end(session)


def unavailable(text: str, seconds: float) -> Refused:
    """Refuse a request that may be repeated later (503).

    Args:
        text: Why.
        seconds: When.
    """
    retry = (b"retry-after", b"%d" % seconds)
    return Refused(503, f"{text}; try again later", code=INTERNAL_ERROR, headers=[retry])
