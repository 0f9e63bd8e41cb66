"""The changes of a session of many nodes, and who keeps its watched resources.

Theory of operation. The record of a session names for each watched resource its keeper: the node
whose `subscribe` was called, and whose `unsubscribe` will be. A keeper that drops its copy of the
session leaves the resource without one, and a dead keeper has left it. Then the next node that
serves the session becomes the keeper, and calls `subscribe` again.
"""

from collections.abc import Collection, Hashable
from contextlib import suppress
from typing import Any

from ...._errors import McpError
from ...._value import JSONObject
from ....backends import BackendUnavailable
from ....engine import crashes_logged, run_user_code
from ....jsonrpc import INVALID_PARAMS
from ....protocol import SubscriptionNotice
from ....server import RunningServer, Session, leave
from ._http_session import WatchedFeed
from ._shared_contracts import SessionCopy
from ._shared_parts import UNWATCHED, WATCHES
from ._shared_streams import node_of


class SharedFeed(WatchedFeed):
    """The changes of a session of many nodes: sent by the node with the reader.

    Args:
        running: See `ChangeFeed`.
        session: The copy of the session.
        limit: See `ChangeFeed`.

    Attributes:
        kept: The watched resources whose `subscribe` ran at this node.
    """

    def __init__(self, running: RunningServer, session: Session, limit: int) -> None:
        super().__init__(running, session, limit)
        self.kept: dict[str, None] = {}
        self._is_finding_keepers = False

    @property
    def _shared(self) -> SessionCopy:
        session: Any = self.session
        found: SessionCopy = session
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
            self.stop_keeping(uri)
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

        self.kept[uri] = None
        is_kept = False
        try:
            await session.store(edit, "The subscription")
            is_kept = bool(session.record["watched"].get(uri) == session.node.id)
            await self._tell_reader(uri, is_watched=True)
        finally:
            if not is_kept:
                self.kept.pop(uri, None)
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

        is_mine = uri in self.kept
        self.kept.pop(uri, None)
        try:
            await session.store(edit, "The end of the subscription")
        except BaseException:
            if is_mine:
                self.kept[uri] = None
            raise
        if keeper and keeper != session.node.id:
            session.node.tell(UNWATCHED, session.digest, uri, to=keeper)
        await self._tell_reader(uri, is_watched=False)
        return is_mine

    async def _tell_reader(self, uri: str, *, is_watched: bool) -> None:
        """Tell the node with the reader, before the answer, that a resource is watched or not."""
        session = self._shared
        reader = session.record["reader"]
        if reader is not None and (node := node_of(reader)) != session.node.id:
            await session.node.send(WATCHES, session.digest, uri, is_watched, to=node)

    def note_watched(self, uri: str, is_watched: bool) -> None:
        """Watch, or stop watching, a resource as another node has stored it."""
        # At once: a change may follow this message. The record comes with the next request.
        others = [each for each in self.subscriptions.watched if each != uri]
        with suppress(McpError):  # no memory: the next request is refused
            self.set_watched([*others, uri] if is_watched else others)

    def end_watches(self) -> Collection[str]:
        """Stop watching all resources; see `ChangeFeed`."""
        super().end_watches()
        kept, self.kept = self.kept, {}
        return kept

    # Keepers

    def find_keepers(self) -> None:
        """Keep the watched resources whose keepers are dead. Does not wait."""
        watched: dict[str, str | None] = self._shared.record["watched"]
        if not self._is_finding_keepers and any(
            uri not in self.kept
            if keeper == self._shared.node.id
            else keeper not in self._shared.node.alive
            for uri, keeper in watched.items()
        ):
            self._is_finding_keepers = True
            self._shared.spawn(self._find_keepers)

    async def _find_keepers(self) -> None:
        try:
            for uri, keeper in list(self._shared.record["watched"].items()):
                is_free = not keeper or (keeper == self._shared.node.id and uri not in self.kept)
                if is_free or await self._shared.node.is_dead(keeper):
                    await self._keep(uri, keeper)
        except BackendUnavailable as error:
            self._shared.node.note_failure(error)
        finally:
            self._is_finding_keepers = False

    async def _keep(self, uri: str, former: str | None) -> None:
        def edit(record: JSONObject) -> JSONObject | None:
            watched = record["watched"]
            if uri not in watched or watched[uri] != former:
                return None
            return {**record, "watched": {**watched, uri: self._shared.node.id}}

        is_kept = False
        self.kept[uri] = None
        try:
            if await self._shared.change(edit):
                is_kept = self._shared.record["watched"].get(uri) == self._shared.node.id
        finally:
            if not is_kept:
                self.kept.pop(uri, None)
        if is_kept:
            server = self.running.server
            with crashes_logged("subscribe of %r failed", server, log=server.crash_log):
                await run_user_code(server.subscribe(uri, self._shared.context()))

    def stop_keeping(self, uri: str) -> None:
        """Call `unsubscribe`, if this node keeps a resource."""
        if uri in self.kept:
            del self.kept[uri]
            leave(self.running, [uri], self._shared.context())

    async def hand_over(self, uris: Collection[str]) -> None:
        """Leave watched resources to another node, after the end of this copy."""

        def edit(record: JSONObject) -> JSONObject | None:
            watched = record["watched"]
            mine = {uri: None for uri in uris if watched.get(uri) == self._shared.node.id}
            return {**record, "watched": {**watched, **mine}} if mine else None

        await self._shared.node.records.change(
            self._shared.key, edit, ttl=self._shared.limits.session_idle
        )
