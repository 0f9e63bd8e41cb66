"""The copy of a session at one of many nodes; see `_shared_sessions`."""

import math
import os
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import trio

from ...._errors import McpError
from ...._value import JSON, JSONMapping, JSONObject
from ....backends import BackendUnavailable, Gap
from ....engine import Delivery, crashes_logged, run_user_code
from ....jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Notification,
    parse_json,
    render,
)
from ....protocol import Dispatch, Fanout, SubscriptionNotice
from ....server import ALL, CHANGED, Stored, decode_change, digest_of, leave
from ._asgi import HttpRefusal, HttpRequest, unavailable
from ._event_store import EventStream
from ._event_writer import EventWriter, time_left
from ._http_session import (
    HttpSession,
    WatchedFeed,
    not_found,
)
from ._quotas import EVICTABLE, Quota, size_of
from ._running_app import RunningApp
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
    node_of,
    parse_id,
)

if TYPE_CHECKING:
    from ._shared_sessions import SharedSessions

#: Seconds for one use of the backend, whatever its engine does: a request has two at most.
PATIENCE: Final = 1.5
#: Bytes of JSON of the values of one session: each change writes all of them.
MAX_VALUES: Final = 256 * 1024
#: Seconds of the lease that a running request has on the record of its session.
RENEWAL: Final = EVICTABLE / 2
#: Entries of the log that are read for a GET stream: a client may name any position.
MAX_MISSED: Final = 1000
#: Seconds between two looks whether `init` has ended at another node: the first, and the most.
FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.2

# The kinds of messages to other nodes. All begin with the digest of the session.
MESSAGE: Final = "session message"  # of the client, for a request at the receiver; its text
STORED: Final = "session message in a record"  # the same; the key of the record
ENDED: Final = "session ended"
REPLACED: Final = "session read elsewhere"  # the replaced reader
RESTORED: Final = "session written again"
OVERRULED: Final = "session overruled"  # a copy that knew more has replaced the record
UNWATCHED: Final = "session unwatched"  # the resource that the receiver keeps
WATCHES: Final = "session watches"  # a resource, and whether it is watched; to the reader
CHANGED_HERE: Final = "session changed"  # a change for this session alone
NOTICE: Final = "session notice"  # a notification for this session alone; its text

#: Changes a record: returns the new value for the present one, or None to leave it.
Edit = Callable[[JSONObject], JSONObject | None]


@contextmanager
def in_time() -> Iterator[None]:
    """Bound the time of an operation.

    Raises:
        BackendUnavailable: The time was over.
    """
    try:
        with trio.fail_after(PATIENCE):
            yield
    except trio.TooSlowError:
        raise BackendUnavailable(f"no answer within {PATIENCE:g} s") from None


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
        kept: The watched resources whose `subscribe` ran at this node.
    """

    _table: "SharedSessions"
    event_log: SharedEventLog
    get_stream: SharedGetStream
    feed: "SharedFeed"

    def __init__(
        self, app: RunningApp, owner: str | None, quota: Quota, table: "SharedSessions"
    ) -> None:
        super().__init__(app, owner, quota, table)
        self.node = table.node
        self.digest = self.key = ""
        self.record: JSONObject = {}
        self.version = 0
        self.confirmed = -math.inf
        self.kept: dict[str, None] = {}
        self._epoch = ""
        self._values_size = 0
        self._is_finding_keepers = False
        self._readers = 0
        self._reader = ""  # names the reader of the GET stream at this node
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
        if record is None or is_older or not self._table.has(self):
            return
        size = size_of(record["values"])
        if size > self._values_size:
            self.reserve(size - self._values_size)
        else:
            self.release(self._values_size - size)
        self._values_size = size
        if record["values"] != self.values:
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

        ttl = self._app.limits.session_idle
        with in_time():
            stored = await self.node.records.change(self.key, checked, ttl=ttl)
            if stored is None and self.is_recent and await self.node.is_forgotten():
                await self._table.restore(self)
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
            try:
                if not await self.change(claim):
                    return False
                runner = self.record["ready"]
                if runner is True:
                    return True
                if runner == self.node.id:
                    return await super().run_init() and await self._note_init()
                if await self.node.is_dead(runner):
                    dead = runner
            except BackendUnavailable as error:
                self.node.note_failure(error)
            except McpError:
                return False  # no memory for what `init` has stored
            await trio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _note_init(self) -> bool:
        while True:
            try:
                return await self.change(lambda record: {**record, "ready": True})
            except BackendUnavailable:
                await trio.sleep(RETRY)

    # Watched resources

    def make_feed(self) -> "SharedFeed":
        """Make the feed of the session; see `Session`."""
        return SharedFeed(self.running, self, self.running.server.options.limits.subscriptions)

    def find_keepers(self) -> None:
        """Keep the watched resources whose keepers are dead. Does not wait."""
        watched: dict[str, str | None] = self.record["watched"]
        if not self._is_finding_keepers and any(
            uri not in self.kept if keeper == self.node.id else keeper not in self.node.alive
            for uri, keeper in watched.items()
        ):
            self._is_finding_keepers = True
            self.spawn(self._find_keepers)

    async def _find_keepers(self) -> None:
        try:
            for uri, keeper in list(self.record["watched"].items()):
                is_free = not keeper or (keeper == self.node.id and uri not in self.kept)
                if is_free or await self.node.is_dead(keeper):
                    await self._keep(uri, keeper)
        except BackendUnavailable as error:
            self.node.note_failure(error)
        finally:
            self._is_finding_keepers = False

    async def _keep(self, uri: str, former: str | None) -> None:
        def edit(record: JSONObject) -> JSONObject | None:
            watched = record["watched"]
            if uri not in watched or watched[uri] != former:
                return None
            return {**record, "watched": {**watched, uri: self.node.id}}

        is_kept = False
        self.kept[uri] = None
        try:
            if await self.change(edit):
                is_kept = self.record["watched"].get(uri) == self.node.id
        finally:
            if not is_kept:
                self.kept.pop(uri, None)
        if is_kept:
            server = self.running.server
            with crashes_logged("subscribe of %r failed", server, log=server.crash_log):
                await run_user_code(server.subscribe(uri, self.context()))

    async def tell_reader(self, uri: str, *, is_watched: bool) -> None:
        """Tell the node with the reader, before the answer, that a resource is watched or not."""
        reader = self.record["reader"]
        if reader is not None and (node := node_of(reader)) != self.node.id:
            await self.node.send(WATCHES, self.digest, uri, is_watched, to=node)

    def note_watched(self, uri: str, is_watched: bool) -> None:
        """Watch, or stop watching, a resource as another node has stored it."""
        # At once: a change may follow this message. The record comes with the next request.
        with suppress(McpError):  # no memory: the next request is refused
            if is_watched:
                self.feed.watch(uri)
            elif uri in self.feed.subscriptions.watched:
                self.feed.unwatch(uri)

    def stop_keeping(self, uri: str) -> None:
        """Call `unsubscribe`, if this node keeps a resource."""
        if uri in self.kept:
            del self.kept[uri]
            leave(self.running, [uri], self.context())

    async def hand_over(self, uris: Collection[str]) -> None:
        """Leave watched resources to another node, after the end of this copy."""

        def edit(record: JSONObject) -> JSONObject | None:
            watched = record["watched"]
            mine = {uri: None for uri in uris if watched.get(uri) == self.node.id}
            return {**record, "watched": {**watched, **mine}} if mine else None

        await self.node.records.change(self.key, edit, ttl=self._app.limits.session_idle)

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
            self._app.limits,
            self._table.write_soon,
        )
        return self.event_log.add(CopiedStream(self.event_log, copy))

    def _make_writer(self, http: HttpRequest) -> EventWriter:
        life = time_left(http.principal, self._app.limits.stream_life)
        quota = self._app.quotas.of(http)
        return EventWriter(self._app.streams, quota, trio.current_time() + life)

    async def read_changes(self, http: HttpRequest, position: str | None) -> None:
        """Answer a GET with the GET stream, in place of its reader at any node.

        Args:
            http: The request.
            position: Up to where the client was told; None for the position in the record.

        Raises:
            HttpRefusal: The session has ended (404).
        """
        stream, writer = self.get_stream, self._make_writer(http)
        self._readers += 1
        self._reader = reader = f"{self.node.id}.{os.urandom(2).hex()}{self._readers}"
        stream.attach(writer, http.principal)
        start: str = self.record["position"] if position is None else position
        stream.begin(start)
        writer.on_close = partial(self._end_changes, writer, reader)
        is_reader = False
        try:
            is_reader = await self._attach(reader, position)
        except BackendUnavailable as error:
            self.node.note_failure(error)
            self.spawn(partial(self._attach_later, reader, position))
            is_reader = True
        finally:
            if not is_reader:
                writer.close()
        if not is_reader:
            raise not_found()
        if self._polls and position is None:
            stream.prime(self._app.limits.retry)
        self.spawn(partial(self._catch_up, writer, start))
        await writer.serve(http, may_hand_over=True)

    async def _attach(self, reader: str, position: str | None) -> bool:
        """Become the reader; False if the session has ended."""
        former: str | None = None

        def edit(record: JSONObject) -> JSONObject:
            nonlocal former
            former = record["reader"]
            return {**record, "reader": reader, "position": position or record["position"]}

        if not await self.change(edit):
            return False
        # At this node `EventStream.attach` has ended the former one.
        if former is not None and (node := node_of(former)) != self.node.id:
            self.node.tell(REPLACED, self.digest, former, to=node)
        return True

    async def _attach_later(self, reader: str, position: str | None) -> None:
        while self._reader == reader and self.get_stream.is_read:
            try:
                await self._attach(reader, position)
            except BackendUnavailable:
                await trio.sleep(RETRY)
            else:
                return

    def end_reader(self, reader: str) -> None:
        """End the GET stream in order: another node has become the reader."""
        if reader == self._reader:
            self.get_stream.hang_up()

    def check_reader(self) -> None:
        """End the GET stream if another node has become the reader."""
        reader = self.record["reader"]
        if reader is not None and node_of(reader) != self.node.id:
            self.get_stream.hang_up()

    def _end_changes(self, writer: EventWriter, reader: str) -> None:
        position = self.get_stream.position
        self.get_stream.detach(writer)
        self._table.touch(self)

        def edit(record: JSONObject) -> JSONObject | None:
            if record["reader"] != reader:
                return None
            return {**record, "reader": None, "position": position}

        if self._reader == reader and self._table.has(self):
            # If it fails, the next reader is told of more than it missed.
            self._table.write_soon(partial(self.change, edit))

    async def _catch_up(self, writer: EventWriter, position: str) -> None:
        """Report what has changed since a position."""
        node, is_complete, count = self.node, bool(position), 0
        try:
            while is_complete:
                items = await node.backend.read({ALL: position}, wait=0)
                if not items:
                    break
                count += len(items)
                is_complete = count <= MAX_MISSED
                for item in items:
                    position = item.position
                    messages = [] if isinstance(item, Gap) else node.messages_of(item)
                    is_complete = is_complete and not isinstance(item, Gap)
                    for _, kind, *body in messages[:-1]:
                        self._report_missed(kind, body)
                    # Before the last one, as `Node` does.
                    self.get_stream.advance(writer, position)
                    for _, kind, *body in messages[-1:]:
                        self._report_missed(kind, body)
        except BackendUnavailable as error:
            node.note_failure(error)
            is_complete = False
        if not is_complete:
            self.feed.report_all()
        self.get_stream.note_caught_up(writer)

    def _report_missed(self, kind: str, body: list[JSON]) -> None:
        # A message of a newer version may have another body.
        with crashes_logged("a message of another node failed"):
            if kind == CHANGED and body[0] is None:
                self.feed.report_all()
            elif kind == CHANGED:
                self.feed.report(decode_change(body[0]))
            elif kind == CHANGED_HERE and body[0] == self.digest:
                self.take_change(body[1])
            elif kind == NOTICE and body[0] == self.digest:
                self.take_notice(body[1])

    def take_change(self, kind: str) -> None:
        """Send the reader, if it is here, a list change for this session alone."""
        self.feed.report(kind)

    def take_notice(self, text: str) -> None:
        """Send the reader, if it is here, a notification for this session alone."""
        self.get_stream.offer(text.encode())

    def report_change(self, kind: str) -> None:
        """Notify the client that a list changed, from any thread; see `Session`."""
        self.running.portal.run_soon(partial(self._report_change, kind))

    def _report_change(self, kind: str) -> None:
        self.take_change(kind)
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
        if not self._table.has(self):
            raise not_found()  # it has ended meanwhile, and follows nothing
        if parsed is None or head is None:
            text = "Last-Event-ID is not, or no longer, known"
            raise HttpRefusal(400, text, code=INVALID_REQUEST)
        name, number = parsed
        writer = self._make_writer(http)
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
        self._table.touch(self)

    async def renew(self) -> None:
        """Keep the record, and the logs of open answers, while the session is used.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        for stream in list(self.event_log.streams.values()):
            if isinstance(stream, CopiedStream) and not stream.ended:
                await stream.copy.renew()
        if await self._table.look_up(self):
            self.check_reader()

    # The end

    def stop(self) -> None:
        """End the session at all nodes; see `HttpSession`."""
        self._table.end(self)
        self._table.write_soon(partial(self._table.delete_record, self))

    def evict(self) -> None:
        """Drop this copy; see `HttpSession`."""
        kept = list(self.kept)
        self._table.end(self)
        if kept:
            self._table.write_soon(partial(self.hand_over, kept))


class SharedFeed(WatchedFeed):
    """The changes of a session of many nodes: sent by the node with the reader."""

    @property
    def _shared(self) -> SharedSession:
        session: Any = self.session
        found: SharedSession = session
        return found

    def tell(self, change: Hashable, notice: SubscriptionNotice) -> bool:
        """Send a change, if this node has the reader; see `ChangeFeed`."""
        return self._shared.get_stream.is_read and super().tell(change, notice)

    def set_watched(self, uris: Collection[str]) -> None:
        """Watch what the record says.

        Raises:
            McpError: There is no memory, or the limit is reached.
        """
        for uri in [each for each in self.subscriptions.watched if each not in uris]:
            self.unwatch(uri)
            self._shared.stop_keeping(uri)
        for uri in uris:
            self.watch(uri)

    async def begin_watch(self, uri: str) -> bool:
        """Watch a resource at all nodes; see `ChangeFeed`."""
        session, limit = self._shared, self.running.server.options.limits.subscriptions

        def edit(record: JSONObject) -> JSONObject | None:
            watched = record["watched"]
            if uri in watched:
                return None
            if len(watched) >= limit:
                text = f"More than {limit} subscriptions on this connection"
                raise McpError(INVALID_PARAMS, text)
            return {**record, "watched": {**watched, uri: session.node.id}}

        session.kept[uri] = None
        is_kept = False
        try:
            await session.store(edit, "The subscription")
            is_kept = bool(session.record["watched"].get(uri) == session.node.id)
            await session.tell_reader(uri, is_watched=True)
        finally:
            if not is_kept:
                session.kept.pop(uri, None)
        return is_kept

    async def end_watch(self, uri: str) -> bool:
        """Stop watching a resource at all nodes; see `ChangeFeed`."""
        session, keeper = self._shared, None

        def edit(record: JSONObject) -> JSONObject | None:
            nonlocal keeper
            watched = dict(record["watched"])
            if uri not in watched:
                return None
            keeper = watched.pop(uri)
            return {**record, "watched": watched}

        is_mine = uri in session.kept
        session.kept.pop(uri, None)
        try:
            await session.store(edit, "The end of the subscription")
        except BaseException:
            if is_mine:
                session.kept[uri] = None
            raise
        if keeper and keeper != session.node.id:
            session.node.tell(UNWATCHED, session.digest, uri, to=keeper)
        await session.tell_reader(uri, is_watched=False)
        return is_mine

    def end_watches(self) -> Collection[str]:
        """Stop watching all resources; see `ChangeFeed`."""
        super().end_watches()
        session = self._shared
        kept, session.kept = session.kept, {}
        return kept


def is_record(value: JSON) -> bool:
    """Tell whether a value is the record of a session, as this version writes it."""
    return isinstance(value, dict) and isinstance(value.get("values"), dict)


def offline() -> HttpRefusal:
    """Make the refusal of a request while the backend cannot answer (503)."""
    return unavailable("The session cannot be looked up now", 1)
