"""Sessions of a server with many nodes: each node serves each request of each session.

Theory of operation. A session is a record of the backend. A node that serves it has a copy
(`SharedSession`), and reads the record for each request; the value is transferred only if another
node has changed it. Whatever a client may rely on later (`put_session`, the log level, watched
resources) is changed in the record before it is answered. So a copy may be dropped at any time, and
its end is not the end of the session. A session ends with its record: by a DELETE, because `init`
failed, for another session's place, or when no node has used it for `session_idle` seconds.

What cannot move stays at its node, and other nodes send messages to it: a handler that waits for an
answer of the client, a request that is cancelled, a watched resource whose `subscribe` ran there
(the node is its *keeper*), and the GET stream (the node is its *reader*). Only the reader sends
notifications of changes. The record has the position in the log of all nodes up to which the client
was told, so another node can go on. Notifications for one session alone are messages to all nodes
as well: then they have a place in that log, whoever reads.

While the backend cannot be reached, a node serves the copies that it has confirmed lately. When the
backend has lost its data, each node writes the records of its latest copies again; the copy that
knew the latest version of a record counts.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from ...._errors import McpError
from ...._value import JSON, JSONObject
from ....backends import BackendUnavailable, Conflict, Full
from ....engine import crashes_logged
from ....jsonrpc import (
    Decoded,
    Malformed,
    Request,
)
from ....protocol import Dispatch, Origin
from ....server import Node, Stored
from ._asgi import HttpRefusal, HttpRequest, out_of_memory, unavailable
from ._event_writer import TaskWork
from ._http_post import HttpPost
from ._http_session import (
    SESSION,
    HttpSession,
    Sessions,
    not_found,
    owner_of,
)
from ._quotas import EVICTABLE, LOOKS, HeldSession
from ._running_app import RunningApp
from ._shared_messages import ClientMessages
from ._shared_parts import (
    CHANGED_HERE,
    ENDED,
    NOTICE,
    OVERRULED,
    REPLACED,
    RESTORED,
    UNWATCHED,
    WATCHES,
    Edit,
    in_time,
    is_record,
    offline,
)
from ._shared_session import RENEWAL, SharedSession
from ._shared_streams import RETRY, node_of, position_in

#: Seconds in which nodes write a later copy of a record that was lost.
RESTORING: Final = 0.1
#: The group of all sessions.
_GROUP: Final = "sessions"


class SharedSessions(Sessions):
    """The copies of sessions at one node.

    Args:
        app: The shared part of the application.
        node: The node.

    Attributes:
        node: See Args.
    """

    _sessions: "dict[str, SharedSession]"  # type: ignore[assignment]

    def __init__(self, app: RunningApp, node: Node) -> None:
        super().__init__(app)
        self.node = node
        self._idle = app.limits.session_idle
        self._by_digest: dict[str, SharedSession] = {}
        self._writing = 0
        self._written: trio.Event | None = None
        node.on_emptied.append(self._write_all_again)
        limits = app.running.server.options.limits
        self._messages = ClientMessages(node, limits, self.write_soon)
        acts: dict[str, Callable[..., object]] = {
            **self._messages.acts,
            ENDED: self.end,
            REPLACED: lambda session, reader: session.reader.end(reader),
            RESTORED: self._take_restored,
            OVERRULED: self._take_overruled,
            UNWATCHED: lambda session, uri: session.feed.stop_keeping(uri),
            WATCHES: lambda session, *body: session.feed.note_watched(*body),
            CHANGED_HERE: lambda session, kind: session.reader.take_change(kind),
            NOTICE: lambda session, text: session.reader.take_notice(text),
        }
        for kind, act in acts.items():
            node.receivers[kind] = partial(self._receive, act)

    def _receive(self, act: Callable[..., object], _sender: str, digest: str, *body: JSON) -> None:
        session = self._by_digest.get(digest)
        if session is not None:
            act(session, *body)

    # Requests

    async def answer(self, post: HttpPost, message: Decoded) -> None:
        """Answer a POST of a session, or the POST that begins it.

        Raises:
            HttpRefusal: There is no such session (404), there are too many (503), or the backend
                cannot answer now (503).
        """
        if isinstance(message, Request) and message.method == "initialize":
            session = self.make(post)
            event = session.receive_from(post, message)
            if isinstance(event, Dispatch):
                await self._begin(session)
                post.extra = (*post.extra, (SESSION, session.id.encode()))
            await session.act_on(post, event)
            return
        session = await self.find_shared(post)
        # A request is answered where it came.
        if not isinstance(message, Request):
            rest = await self._messages.pass_on(session, message)
            if rest is None:
                self.touch(session)
                await post.respond(202, headers=())
                return
            message = rest
        await session.act_on(post, session.receive_from(post, message))

    async def take_malformed(self, post: HttpPost, message: Malformed) -> None:
        """Take a malformed answer to a question.

        Raises:
            HttpRefusal: See `answer`.
        """
        session = await self.find_shared(post)
        if await self._messages.pass_on(session, message) is not None:
            session.take_message(message)

    async def read(self, http: HttpRequest) -> None:
        """Answer a GET.

        Raises:
            HttpRefusal: See `answer`, `SharedSession.read_changes` and
                `SharedSession.read_answer`.
        """
        session = await self.find_shared(http)
        last = http.header(b"last-event-id")
        position = None if last is None else position_in(last)
        if last is None or position is not None:
            await session.reader.serve(http, position)
        else:
            await session.read_answer(http, last)

    async def delete_session(self, http: HttpRequest) -> None:
        """End the session of a request at all nodes.

        Raises:
            HttpRefusal: See `answer`.
        """
        session = await self.find_shared(http)
        try:
            with in_time():
                await self.node.records.delete(session.key)
        except BackendUnavailable:
            raise offline() from None
        self.node.tell(ENDED, session.digest)
        self.end(session)

    # Copies

    def make(self, http: HttpRequest) -> SharedSession:
        """Make a copy; see `Sessions`."""
        quota = self._app.quotas.of(http)
        session = SharedSession(self._app, owner_of(http.principal), quota, self)
        session.peer.origin = Origin(None, http.principal, quota.name)
        return session

    def has(self, session: SharedSession) -> bool:
        """Tell whether a copy is in the table."""
        return self._sessions.get(session.id) is session

    def find_spare(self, _session: HttpSession) -> HeldSession | None:
        """Find the copy to drop for a new one: its session goes on; see `Sessions`."""
        return self._app.quotas.sessions.find_idle(0)

    def _enter(self, session: HttpSession, id_: str) -> None:
        super()._enter(session, id_)
        shared = self._sessions[id_]
        self._by_digest[shared.digest] = shared

    def end(self, session: HttpSession) -> None:
        """End a copy; see `Sessions`."""
        shared = self._sessions.get(session.id)
        if shared is session:
            del self._by_digest[shared.digest]
        super().end(session)

    async def _begin(self, session: SharedSession) -> None:
        """Begin a session.

        Raises:
            HttpRefusal: There are too many, or the backend cannot answer now (503).
        """
        id_ = self._ids.make(session.peer.handshake.agreed(), session.owner)
        session.name_by(id_)
        record = session.begin_record()
        try:
            with in_time():
                version = await self._create(session, record)
        except BackendUnavailable:
            raise offline() from None
        try:
            self._enter(session, id_)
        except HttpRefusal:
            self.write_soon(partial(self.delete_record, session))
            raise
        session.confirm(Stored(record, version))

    async def _create(self, session: SharedSession, record: JSONObject) -> int:
        limits = self._app.limits
        for _ in range(LOOKS):
            try:
                return await self.node.records.put(
                    session.key,
                    record,
                    ttl=self._idle,
                    version=0,
                    groups={_GROUP: limits.sessions},
                )
            except Full:
                spare = self._app.quotas.find_spare(session.quota)
                if not isinstance(spare, SharedSession):
                    break
                await self._end_spare(spare)
        raise unavailable(f"More than {limits.sessions} sessions", EVICTABLE)

    async def _end_spare(self, spare: SharedSession) -> None:
        """End an idle session for the place of another one, unless another node uses it."""
        record = await self.node.backend.get(spare.key)
        value: JSON = None if record is None else self.node.records.open(spare.key, record.value)
        if record is not None and is_record(value):
            idle = self._idle - (record.expires_at - self.node.backend.now())
            # A second for the way to the backend.
            if node_of(value["reader"]) in self.node.alive or idle + 1 < spare.idle:
                spare.used = trio.current_time() - idle
                self._app.quotas.touch_session(spare)
                return
        await self.delete_record(spare)
        self.end(spare)

    async def delete_record(self, session: SharedSession) -> None:
        """End a session at all nodes, after the end of the copy here; failures are logged."""
        try:
            await self.node.records.delete(session.key)
        except BackendUnavailable as error:
            self.node.note_failure(error)
        self.node.tell(ENDED, session.digest)

    async def find_shared(self, http: HttpRequest) -> SharedSession:
        """Find the session of a request.

        Raises:
            HttpRefusal: See `answer`.
        """
        id_, owner = self.read_id(http), owner_of(http.principal)
        session = self._sessions.get(id_)
        try:
            if session is not None and (session.owner != owner or not await self.look_up(session)):
                raise not_found()
            # The copy may have been dropped meanwhile.
            if session is None or not self.has(session):
                session = await self._copy(id_, http)
        except BackendUnavailable:
            if session is None or not self.has(session) or session.unconfirmed >= self._idle:
                raise offline() from None
        except McpError:
            raise out_of_memory() from None
        if session.peer.handshake.complete():
            # Another node has received the `initialized` notification.
            session.complete_handshake()
        session.feed.find_keepers()
        return session

    async def look_up(self, session: SharedSession) -> bool:
        """Use the record of a copy; False if the session has ended, and its copy with it.

        Raises:
            BackendUnavailable: The backend cannot answer now.
            McpError: There is no memory for it.
        """
        # The engine bounds the time: a second bound costs more than a read that joins others.
        stored = await self.node.records.get(session.key, ttl=self._idle, known=session.version)
        if stored is None and session.is_recent:
            with in_time():
                if await self.node.is_forgotten():
                    await self.restore(session)
                    return True
        if stored is not None and session.is_ahead_of(stored):
            with in_time():
                await self.write_again(session)
            return True
        if stored is None or not (stored.value is None or is_record(stored.value)):
            self.end(session)
            return False
        session.confirm(stored)
        return True

    async def _copy(self, id_: str, http: HttpRequest) -> SharedSession:
        """Make the copy of a session that this node does not know.

        Raises:
            HttpRefusal: There is no such session (404), or no room for the copy (503).
            BackendUnavailable: The backend cannot answer now.
            McpError: There is no memory for it.
        """
        session = self.make(http)
        session.name_by(id_)
        with in_time():
            stored = await self.node.records.get(session.key, ttl=self._idle)
            if stored is None and await self.node.is_forgotten():
                # A node that has a copy may write it again.
                raise offline()
        if stored is None or not is_record(stored.value):
            raise not_found()
        record: JSONObject = stored.value
        if record["owner"] != session.owner:
            raise not_found()
        if (other := self._sessions.get(id_)) is not None:
            # Another request has made it meanwhile.
            other.confirm(stored)
            return other
        session.peer.handshake.resume(record["agreed"])
        self._enter(session, id_)
        try:
            session.confirm(stored)
        except McpError:
            self.end(session)
            raise
        session.complete_handshake()
        return session

    async def sweep(self) -> None:
        """Keep the records of used sessions, and drop idle copies, until cancelled."""
        while True:
            await trio.sleep(min(self._idle / 4, RENEWAL))
            for session in list(self._sessions.values()):
                with crashes_logged("a session could not be kept"):
                    await self._check(session)

    async def _check(self, session: SharedSession) -> None:
        try:
            if session.is_used:
                # An idle reader needs less: the record shows it to all nodes.
                if session.requests or session.unconfirmed >= self._idle / 4 - RENEWAL:
                    await session.renew()
            # Other nodes may use it, and rely on this one for what it keeps.
            elif session.idle >= self._idle and (
                not session.feed.kept or await self.node.records.get(session.key) is None
            ):
                self.end(session)
        except BackendUnavailable as error:
            self.node.note_failure(error)
        except McpError:
            return  # no memory for the latest version: the next request is refused

    # After a loss of the data

    async def restore(self, session: SharedSession) -> None:
        """Write the record of a session that a request needs now, as far as any node knows it.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        await self.write_again(session)
        # A node with a later copy writes that.
        self.node.tell(RESTORED, session.digest)
        await trio.sleep(RESTORING)
        stored = await self.node.records.get(session.key)
        if stored is not None and is_record(stored.value):
            session.confirm(stored)

    def _take_restored(self, session: SharedSession) -> None:
        self.write_soon(partial(self.write_again, session))

    async def write_again(self, session: SharedSession) -> None:
        """Write the record of a copy, which the backend has lost.

        The record of another node stays, unless this one knew a later version.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        # Until the next change the record tells how much its writer knew.
        record = {**session.record, "was": session.known, "position": self.node.position}
        limits = self._app.limits

        def edit(stored: JSON) -> JSON:
            return record if not is_record(stored) or session.knows_more(stored) else None

        try:
            version = await self.node.records.put(
                session.key,
                record,
                ttl=self._idle,
                version=0,
                groups={_GROUP: limits.sessions},
            )
            stored: Stored | None = Stored(record, version)
        except Conflict as conflict:
            stored = await self._overrule(session, record, edit, conflict.version)
        except Full:
            stored = None  # others were first
        if stored is not None:
            session.version = 0
            session.confirm(stored)

    async def _overrule(
        self, session: SharedSession, record: JSONObject, edit: Edit, version: int
    ) -> Stored | None:
        """Replace the record that is there, if this node knew a later version of it."""
        stored: Stored | None = None
        if version < session.known:
            # Versions grow: the backend has lost the last writes only.
            with suppress(Conflict):
                new = await self.node.records.put(
                    session.key, record, ttl=self._idle, version=version
                )
                stored = Stored(record, new)
        if stored is None:
            stored = await self.node.records.change(session.key, edit, ttl=self._idle)
        if stored is not None and stored.value is record:
            self.node.tell(OVERRULED, session.digest)
        return stored

    def _take_overruled(self, session: SharedSession) -> None:
        # Each request reads the record. Changes come without a request.
        if session.get_stream.is_read:
            self.write_soon(partial(self._refresh, session))

    async def _refresh(self, session: SharedSession) -> None:
        await self.look_up(session)
        # What it did not watch meanwhile may have changed.
        session.feed.report_all()

    async def _write_all_again(self) -> None:
        for session in list(self._sessions.values()):
            is_written = False
            while not is_written and session.is_recent and self.has(session):
                try:
                    await self.write_again(session)
                    is_written = True
                except BackendUnavailable:
                    await trio.sleep(RETRY)

    # Work that outlives its session

    def write_soon(self, work: TaskWork) -> None:
        """Start a task that writes to the backend; the end of the application waits for it.

        Nothing depends on what the backend cannot take.
        """
        self._writing += 1
        self._app.tasks.spawn(partial(self._write, work))

    async def _write(self, work: TaskWork) -> None:
        try:
            await work()
        except BackendUnavailable as error:
            self.node.note_failure(error)
        finally:
            self._writing -= 1
            if self._written is not None and not self._writing:
                self._written.set()

    async def flush(self) -> None:
        """Wait until everything is written."""
        while self._writing:
            self._written = trio.Event()
            await self._written.wait()
