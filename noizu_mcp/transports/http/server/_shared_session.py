"""The copy of a session at one of many nodes; see `_shared_sessions`."""

import math
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Final, cast

import trio

from ...._errors import McpError
from ...._value import JSON, JSONMapping, JSONObject
from ....backends import BackendUnavailable
from ....engine import Delivery
from ....jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Notification,
    parse_json,
    render,
)
from ....protocol import Dispatch, Fanout
from ....server import Stored, digest_of
from ._asgi import HttpRefusal, HttpRequest
from ._event_store import EventStream
from ._event_writer import EventWriter, time_left
from ._http_session import (
    HttpSession,
    Sessions,
    not_found,
)
from ._quotas import EVICTABLE, Quota, size_of
from ._running_app import RunningApp
from ._shared_contracts import CopyTable
from ._shared_feed import SharedFeed
from ._shared_parts import CHANGED_HERE, NOTICE, Edit, in_time, is_record, offline
from ._shared_reader import SharedReader
from ._shared_streams import (
    FITS,
    RETRY,
    CopiedStream,
    RemoteStream,
    SharedEventLog,
    SharedGetStream,
    StreamCopy,
    find_head,
    follow,
    parse_id,
)

#: Bytes of JSON of the values of one session: each change writes all of them.
MAX_VALUES: Final = 256 * 1024
#: Seconds of the lease that a running request has on the record of its session.
RENEWAL: Final = EVICTABLE / 2
#: Seconds between two looks whether `init` has ended at another node: the first, and the most.
FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.2


class SharedSession(HttpSession):
    """The copy of a session at one node.

    Args:
        app: See `HttpSession`.
        owner: See `HttpSession`.
        quota: See `HttpSession`.
        table: The copies of this node.

    Attributes:
        digest: The digest of its id, by which other nodes know it.
        key: The key of its record.
        record: The value of the record when it was last read.
        version: The version of the record then; 0 before it was read.
        confirmed: When it was last read, on trio's clock.
        table: See Args.
        limits: The limits of the application.
        reader: The reader of the GET stream, if it is at this node.
    """

    event_log: SharedEventLog
    get_stream: SharedGetStream
    feed: SharedFeed

    def __init__(self, app: RunningApp, owner: str | None, quota: Quota, table: CopyTable) -> None:
        super().__init__(app, owner, quota, cast(Sessions, table))
        self.node = table.node
        self.table = table
        self.limits = app.limits
        self.reader = SharedReader(self)
        self.digest = self.key = ""
        self.record: JSONObject = {}
        self.version = 0
        self.confirmed = -math.inf
        self._epoch = ""
        self._record_size = 0
        self.event_log = SharedEventLog(
            app.limits.history, self._reservation, self.node, table.write_soon
        )
        self.get_stream = self.event_log.add(
            SharedGetStream(self.event_log.next_name(), self.event_log, self._find_position)
        )
        self.channel = self.get_stream
        # Never used twice in a session, also by a later copy at this node.
        self.peer.ledger.prefix = f"{self.node.id}.{os.urandom(4).hex()}."

    def _find_position(self) -> str | None:
        is_waiting = self.running.merger.marked or self.feed.is_behind
        return None if is_waiting else self.node.position

    def name_by(self, id_: str) -> None:
        """Take the digest of an id as the name of the record."""
        self.digest = digest_of(id_)
        self.key = f"s:{self.digest}"

    @property
    def is_used(self) -> bool:
        """True while a client waits for an answer or reads a stream, perhaps at another node."""
        return super().is_used or bool(self.requests) or self._setting_up is not None

    @property
    def unconfirmed(self) -> float:
        """Seconds since the record was read."""
        return trio.current_time() - self.confirmed

    @property
    def is_recent(self) -> bool:
        """True while it is used, or was a short while ago."""
        return self.idle < EVICTABLE

    # The record

    def begin_record(self) -> JSONObject:
        """Make the record of a new session."""
        return {
            "ready": not super().needs_init(),
            "level": self.peer.handshake.log_level,
            "values": {},
            "watched": {},
            "reader": None,
            "position": self.node.position,
            "owner": self.owner,
            "agreed": self.peer.handshake.agreed(),
        }

    def confirm(self, stored: Stored) -> None:
        """Take over a record that was read or written.

        Raises:
            McpError: There is no memory for it, or too much is watched.
        """
        self.confirmed = trio.current_time()
        record, epoch = stored.value, self.node.backend.epoch
        # Operations overlap: what began earlier may end later.
        is_older = stored.version < self.version and self._epoch == epoch
        if record is None or is_older or not self.table.has(self):
            return
        size = size_of(record)
        if size > self._record_size:
            self.reserve(size - self._record_size)
        else:
            self.release(self._record_size - size)
        self._record_size = size
        # Not `!=`, by which 1 equals true. The same object while nothing changes: the lists of
        # providers are kept for it.
        if render(record["values"]) != render(dict(self.values)):
            self.values = MappingProxyType(record["values"])
        self.feed.set_watched(record["watched"])
        self.peer.handshake.log_level = record["level"]
        self.record, self.version, self._epoch = record, stored.version, epoch

    @property
    def known(self) -> int:
        """The version of the record from which this copy is, before the last loss of the data."""
        known: int = self.record.get("was", self.version)
        return known

    def knows_more(self, record: JSONObject) -> bool:
        """Tell whether a record was written again by a node that had an older copy."""
        return bool(record.get("was", math.inf) < self.known)

    def is_ahead_of(self, stored: Stored) -> bool:
        """Tell whether the backend has lost writes of a record that this copy has."""
        if not is_record(stored.value):
            return False
        if "was" in stored.value or self._epoch == self.node.backend.epoch:
            return self.knows_more(stored.value)
        return stored.version < self.known  # versions grow

    async def change(self, edit: Edit) -> bool:
        """Change the record, and take it over; False if the session has ended.

        Raises:
            BackendUnavailable: It cannot be changed now.
            McpError: See `confirm`.
        """

        def checked(record: JSON) -> JSON:
            if not is_record(record):
                return None
            new = edit(self.record if self.knows_more(record) else record)
            if new is not None:
                new.pop("was", None)  # see `SharedSessions.write_again`
            return new

        ttl = self.limits.session_idle
        with in_time():
            stored = await self.node.records.change(self.key, checked, ttl=ttl)
            if stored is None and self.is_recent and await self.node.is_forgotten():
                await self.table.restore(self)
                stored = await self.node.records.change(self.key, checked, ttl=ttl)
        if stored is None or not is_record(stored.value):
            return False
        self.confirm(stored)
        return True

    async def store(self, edit: Edit, noun: str) -> None:
        """Change the record for a client, which relies on it.

        Args:
            edit: See `Records.change`.
            noun: What is stored.

        Raises:
            McpError: It is not stored (-32603).
        """
        try:
            is_stored = await self.change(edit)
        except BackendUnavailable:
            text = f"{noun} could not be stored; try again in a moment"
            raise McpError(INTERNAL_ERROR, text) from None
        if not is_stored:
            raise McpError(INTERNAL_ERROR, f"{noun} could not be stored: the session has ended")

    async def store_value(self, key: str, value: object) -> None:
        """Store a value where all later requests find it; see `Session`.

        Raises:
            TypeError: The value is not JSON.
            ValueError: The values of the session are too large.
            McpError: It is not stored (-32603).
        """
        try:
            copy = parse_json(render(value))
        except (TypeError, ValueError):
            copy = None
        # A tuple would come back as a list.
        if copy != value or not isinstance(key, str):
            kind = type(value).__name__
            raise TypeError(f"put_session({key!r}): with a backend a value is JSON, not {kind}")

        def edit(record: JSONObject) -> JSONObject:
            values = {**record["values"], key: copy}
            if (size := len(render(values))) > MAX_VALUES:
                text = f"the values of the session would have {size:,} bytes of JSON"
                raise ValueError(f"put_session({key!r}): {text}; at most {MAX_VALUES:,} are stored")
            return {**record, "values": values}

        await self.store(edit, f"The value {key!r} of the session")

    def set_level(self, level: str) -> Callable[[], Awaitable[None]]:
        """Set the least level of log messages; see `Session`."""

        def edit(record: JSONObject) -> JSONObject:
            return {**record, "level": level}

        return partial(self.store, edit, "The log level")

    # `init`

    def needs_init(self) -> bool:
        """Tell whether `init` must run, or runs at another node; see `Session`."""
        return self.record["ready"] is not True

    async def run_init(self) -> bool:
        """Run `init`, unless another node does, and wait for its end; see `Session`."""
        dead, pause = "", FIRST_PAUSE

        def claim(record: JSONObject) -> JSONObject | None:
            return {**record, "ready": self.node.id} if record["ready"] in (False, dead) else None

        while True:
            # Without the backend, or memory for what `init` stores elsewhere, it waits.
            with suppress(BackendUnavailable, McpError):
                if not await self.change(claim):
                    return False
                runner = self.record["ready"]
                if runner is True:
                    return True
                if runner == self.node.id:
                    return await super().run_init() and await self._note_init()
                if await self.node.is_dead(runner):
                    dead = runner
            await trio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _note_init(self) -> bool:
        while True:
            try:
                return await self.change(lambda record: {**record, "ready": True})
            except BackendUnavailable:
                await trio.sleep(RETRY)

    # Watched resources

    def make_feed(self) -> SharedFeed:
        """Make the feed of the session; see `Session`."""
        return SharedFeed(self.running, self, self.running.server.options.limits.subscriptions)

    # Streams

    def open_answer(self, event: Dispatch | Fanout) -> EventStream:
        """Open the stream of an answer; see `HttpSession`."""
        events = (event,) if isinstance(event, Dispatch) else event.events
        ids = [each.request.id for each in events if isinstance(each, Dispatch)]
        copy = StreamCopy(
            self.node,
            self.event_log.next_name(),
            self.digest,
            ids,
            limits=self.limits,
            write_soon=self.table.write_soon,
        )
        return self.event_log.add(CopiedStream(self.event_log, copy))

    def make_writer(self, http: HttpRequest) -> EventWriter:
        """Make the writer of the answer to a GET."""
        life = time_left(http.principal, self.limits.stream_life)
        quota = self._app.quotas.of(http)
        return EventWriter(self._app.streams, quota, trio.current_time() + life)

    def report_change(self, kind: str) -> None:
        """Notify the client that a list changed, from any thread; see `Session`."""
        self.running.portal.run_soon(partial(self._report_change, kind))

    def _report_change(self, kind: str) -> None:
        self.reader.take_change(kind)
        self.node.tell(CHANGED_HERE, self.digest, kind)

    def send_notice(self, method: str, params: JSONMapping) -> Delivery:
        """Send a notification to the reader at any node; see `Session`."""
        message = self.encode_notice(Notification(method, dict(params)))
        if self.get_stream.is_read:
            self.get_stream.offer(message)
        elif len(render(text := message.decode())) <= FITS:
            self.node.tell(NOTICE, self.digest, text)
        return Delivery(self.channel.room)

    async def read_answer(self, http: HttpRequest, last: str) -> None:
        """Answer a GET with the rest of an answer, from this node or from the backend.

        Args:
            http: The request.
            last: `Last-Event-ID`.

        Raises:
            HttpRefusal: The event is not of this session, or is no longer stored (400); or the
                backend cannot answer now (503).
        """
        if self.event_log.find(last) is not None:
            await self.read(http, last)
            return
        parsed, head = parse_id(last), None
        if parsed is not None:
            try:
                with in_time():
                    head = await find_head(self.node, self.digest, parsed[0])
            except BackendUnavailable:
                raise offline() from None
        if not self.table.has(self):
            raise not_found()  # it has ended meanwhile, and follows nothing
        if parsed is None or head is None:
            text = "Last-Event-ID is not, or no longer, known"
            raise HttpRefusal(400, text, code=INVALID_REQUEST)
        name, number = parsed
        writer = self.make_writer(http)
        stream = RemoteStream(name, self.event_log, writer)
        if (former := self.event_log.remote.get(name)) is not None:
            former.end()
        self.event_log.remote[name] = stream
        stream.attach(writer, http.principal)
        writer.on_close = partial(self._end_remote, stream, writer)
        self.spawn(partial(follow, self.node, self.digest, head, stream, number))
        await writer.serve(http, may_hand_over=True)

    def _end_remote(self, stream: RemoteStream, writer: EventWriter) -> None:
        stream.detach(writer)
        if self.event_log.remote.get(stream.name) is stream:
            del self.event_log.remote[stream.name]
        self.table.touch(self)

    async def renew(self) -> None:
        """Keep the record, and the logs of open answers, while the session is used.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        for stream in list(self.event_log.streams.values()):
            if isinstance(stream, CopiedStream) and not stream.ended:
                await stream.copy.renew()
        if await self.table.look_up(self):
            self.reader.check()

    # The end

    def stop(self) -> None:
        """End the session at all nodes; see `HttpSession`."""
        self.table.end(self)
        self.table.write_soon(partial(self.table.delete_record, self))

    def evict(self) -> None:
        """Drop this copy; see `HttpSession`."""
        kept = list(self.feed.kept)
        self.table.end(self)
        if kept:
            self.table.write_soon(partial(self.feed.hand_over, kept))
