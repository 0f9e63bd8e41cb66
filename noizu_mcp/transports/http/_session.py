"""Sessions with a handshake: what one keeps between requests, and the table of all.

Source: 2025-11-25 `basic/transports`, "Session Management".
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import trio

from ...engine import Channel, Desk
from ...jsonrpc import INTERNAL_ERROR, INVALID_REQUEST
from ...server import Connection
from ._asgi import Refused
from ._history import EventStream, History
from ._options import HttpLimits
from ._sse import EventWriter
from ._tasks import TaskSet, Work

#: Seconds that a session must have been idle before another one may take its place.
EVICTABLE: Final = 60.0
#: Random bytes of a session id.
ENTROPY: Final = 24


class HttpDesk(Desk):
    """The requests of one session, or the one of 2026-07-28.

    Args:
        connection: What serves them.
        channel: Where messages go that belong to none of them.
        tasks: What they run beside.
    """

    def __init__(self, connection: Connection, channel: Channel, tasks: TaskSet) -> None:
        super().__init__(connection.peer, connection, channel)
        self._tasks = tasks

    def spawn(self, work: Work) -> None:
        """Run something beside the requests; see `Desk`."""
        self._tasks.spawn(work)


class Session:
    """One session.

    Args:
        connection: What serves it.
        tasks: Runs what it does beside its requests.
        limits: Bounds what it keeps.
        owner: Names the principal that began it; None where nobody is verified.

    Attributes:
        id: What the client names it by.
        desk: Its requests.
        history: Its event streams.
        standing: The stream for what belongs to no request; a GET reads it.
        used: When it was last used, on trio's clock.
    """

    def __init__(
        self, connection: Connection, tasks: TaskSet, limits: HttpLimits, owner: str | None
    ) -> None:
        self.id = secrets.token_urlsafe(ENTROPY)
        self.owner = owner
        self.connection = connection
        self.history = History(int(limits.history))
        self.standing = self.history.open()
        self.desk = HttpDesk(connection, self.standing, tasks)
        connection.desk = self.desk
        self.used = trio.current_time()
        self._tasks = tasks
        self._limits = limits

    @property
    def idle(self) -> float:
        """Seconds since it was used; 0 while a request runs or a stream is read."""
        if self.desk.busy or self.history.is_read:
            return 0.0
        return trio.current_time() - self.used

    def open_stream(self, writer: EventWriter) -> EventStream:
        """Open the stream of an answer; its reader may come back for what it missed."""
        stream = self.history.open()
        stream.attach(writer)
        if self.connection.peer.handshake.revision.polling:
            stream.prime(self._limits.retry)
        return stream

    def end(self) -> None:
        """End it: what runs is cancelled, who waits is told, streams end."""
        self.connection.close()
        self.desk.close()
        self.history.end()
        self._tasks.close()


class Sessions:
    """The sessions of one endpoint.

    Args:
        limits: Bounds their number and their time.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._sessions: OrderedDict[str, Session] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> "Any":
        return iter(list(self._sessions.values()))

    def make_room(self) -> None:
        """Make room for one more.

        Raises:
            Refused: There are too many, and none has been idle for long (503).
        """
        if len(self._sessions) < self._limits.sessions:
            return
        oldest = next(iter(self._sessions.values()))
        if oldest.idle < EVICTABLE:
            text = f"More than {self._limits.sessions:g} sessions; try again later"
            retry = (b"retry-after", b"%d" % EVICTABLE)
            raise Refused(503, text, code=INTERNAL_ERROR, headers=[retry])
        self.end(oldest)

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
