"""The reader of the GET stream of a session of many nodes: one for all nodes, the newest."""

import os
from functools import partial
from typing import Final

import trio

from ...._value import JSON, JSONObject
from ....backends import BackendUnavailable, Gap
from ....engine import crashes_logged
from ....server import ALL, CHANGED, decode_change
from ._asgi import HttpRequest
from ._event_writer import EventWriter
from ._http_session import not_found
from ._shared_contracts import SessionCopy
from ._shared_parts import CHANGED_HERE, NOTICE, REPLACED
from ._shared_streams import RETRY, node_of

#: Entries of the log that are read for a GET stream: a client may name any position.
MAX_MISSED: Final = 1000


class SharedReader:
    """The reader of the GET stream at this node.

    Args:
        session: The copy of the session.
    """

    def __init__(self, session: SessionCopy) -> None:
        self._session = session
        self._count = 0
        self._reader = ""  # the name of the latest one at this node, for the record

    async def serve(self, http: HttpRequest, position: str | None) -> None:
        """Answer a GET with the GET stream, in place of its reader at any node.

        Args:
            http: The request.
            position: Up to where the client was told; None for the position in the record.

        Raises:
            HttpRefusal: The session has ended (404).
        """
        stream, writer = self._session.get_stream, self._session.make_writer(http)
        self._count += 1
        self._reader = reader = f"{self._session.node.id}.{os.urandom(2).hex()}{self._count}"
        stream.attach(writer, http.principal)
        start: str = self._session.record["position"] if position is None else position
        stream.begin(start)
        writer.on_close = partial(self._end_reading, writer, reader)
        is_reader = False
        try:
            is_reader = await self._attach(reader, position)
        except BackendUnavailable as error:
            self._session.node.note_failure(error)
            self._session.spawn(partial(self._attach_later, reader, position))
            is_reader = True
        finally:
            if not is_reader:
                writer.close()
        if not is_reader:
            raise not_found()
        if self._session.polls and position is None:
            stream.prime(self._session.limits.retry)
        self._session.spawn(partial(self._catch_up, writer, start))
        await writer.serve(http, may_hand_over=True)

    async def _attach(self, reader: str, position: str | None) -> bool:
        """Become the reader; False if the session has ended."""
        former: str | None = None

        def edit(record: JSONObject) -> JSONObject:
            nonlocal former
            former = record["reader"]
            return {**record, "reader": reader, "position": position or record["position"]}

        if not await self._session.change(edit):
            return False
        # At this node `EventStream.attach` has ended the former one.
        if former is not None and (node := node_of(former)) != self._session.node.id:
            self._session.node.tell(REPLACED, self._session.digest, former, to=node)
        return True

    async def _attach_later(self, reader: str, position: str | None) -> None:
        while self._reader == reader and self._session.get_stream.is_read:
            try:
                await self._attach(reader, position)
            except BackendUnavailable:
                await trio.sleep(RETRY)
            else:
                return

    def end(self, reader: str) -> None:
        """End the GET stream in order: another node has become the reader."""
        if reader == self._reader:
            self._session.get_stream.hang_up()

    def check(self) -> None:
        """End the GET stream if another node has become the reader."""
        reader = self._session.record["reader"]
        if reader is not None and node_of(reader) != self._session.node.id:
            self._session.get_stream.hang_up()

    def _end_reading(self, writer: EventWriter, reader: str) -> None:
        position = self._session.get_stream.position
        self._session.get_stream.detach(writer)
        self._session.table.touch(self._session)

        def edit(record: JSONObject) -> JSONObject | None:
            if record["reader"] != reader:
                return None
            return {**record, "reader": None, "position": position}

        if self._reader == reader and self._session.table.has(self._session):
            # If it fails, the next reader gets more than it missed.
            self._session.table.write_soon(partial(self._session.change, edit))

    async def _catch_up(self, writer: EventWriter, position: str) -> None:
        """Report what has changed since a position."""
        node, is_complete, count = self._session.node, bool(position), 0
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
                    self._session.get_stream.advance(writer, position)
                    for _, kind, *body in messages[-1:]:
                        self._report_missed(kind, body)
        except BackendUnavailable as error:
            node.note_failure(error)
            is_complete = False
        if not is_complete:
            self._session.feed.report_all()
        self._session.get_stream.note_caught_up(writer)

    def _report_missed(self, kind: str, body: list[JSON]) -> None:
        # A message of a newer version may have another body.
        with crashes_logged("a message of another node failed"):
            if kind == CHANGED and body[0] is None:
                self._session.feed.report_all()
            elif kind == CHANGED:
                self._session.feed.report(decode_change(body[0]))
            elif kind == CHANGED_HERE and body[0] == self._session.digest:
                self.take_change(body[1])
            elif kind == NOTICE and body[0] == self._session.digest:
                self.take_notice(body[1])

    def take_change(self, kind: str) -> None:
        """Send the reader, if it is here, a list change for this session alone."""
        self._session.feed.report(kind)

    def take_notice(self, text: str) -> None:
        """Send the reader, if it is here, a notification for this session alone."""
        self._session.get_stream.offer(text.encode())
