"""Tasks of other nodes that peers of this node follow.

Theory of operation. After each write of a record its node tells all nodes the key. A node that
follows the task reads the record (`refresh`), keeps it for `get`, and reports the change. A change
during the read causes another read. After a gap in the messages all followed tasks are read. The
node that found the death of another one may be dead, too; so while a task is followed,
`_watch_owners` looks for tasks of dead nodes.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from ..nodes._node import RENEWAL, TASK_CHANGED, Node
from ._task_records import TaskRecord, key_of


class FollowedTasks:
    """The followed tasks of one node, without its own.

    Args:
        node: The node.
        look: Reads a record by its key, and repeats that until the backend answers.
        report: Reports a change to the followers of a task, by its id.
    """

    def __init__(
        self,
        node: Node,
        look: Callable[[str], Awaitable[TaskRecord | None]],
        report: Callable[[str], None],
    ) -> None:
        self._node = node
        self._look = look
        self._report = report
        self._ids: dict[str, str] = {}  # by the key of the record
        self._known: dict[str, TaskRecord] = {}  # by id
        self._refreshing: dict[str, bool] = {}  # by id: whether the state changed meanwhile
        self._is_watching = False
        node.receivers[TASK_CHANGED] = self._receive_change
        node.on_gap.append(self._refresh_all)

    def get(self, id_: str) -> TaskRecord | None:
        """Return the last known state of a followed task; None if it is unknown."""
        return self._known.get(id_)

    def refresh(self, id_: str) -> None:
        """Follow a task: fetch its state soon, and report it."""
        self._ids[key_of(id_)] = id_
        if not self._is_watching:
            self._is_watching = True
            self._node.spawn(self._watch_owners)
        if id_ in self._refreshing:
            self._refreshing[id_] = True
        else:
            self._refreshing[id_] = True
            self._node.spawn(partial(self._refresh, id_))

    def unfollow(self, id_: str) -> None:
        """Forget a task: its last follower is gone."""
        self._ids.pop(key_of(id_), None)
        self._known.pop(id_, None)

    def note_change(self, key: str) -> None:
        """Fetch the state of a task soon, if it is followed.

        Args:
            key: The key of its record, which has changed.
        """
        id_ = self._ids.get(key)
        if id_ is not None:
            self.refresh(id_)

    def _receive_change(self, _sender: str, key: str) -> None:
        self.note_change(key)

    async def _refresh(self, id_: str) -> None:
        key = key_of(id_)
        while self._refreshing[id_] and key in self._ids:
            self._refreshing[id_] = False
            record = await self._look(key)
            if key in self._ids:
                if record is None:
                    self._known.pop(id_, None)
                else:
                    self._known[id_] = record
                self._report(id_)
        del self._refreshing[id_]

    async def _watch_owners(self) -> None:
        """Look at followed tasks whose nodes are dead: the node that found it may be dead, too."""
        while self._ids:
            await trio.sleep(RENEWAL)
            for id_, record in list(self._known.items()):
                if not record.is_over and record.node not in self._node.alive:
                    self.refresh(id_)
        # No checkpoint since no task was followed.
        self._is_watching = False

    def _refresh_all(self) -> None:
        """Fetch all states: a change may be missing."""
        for id_ in list(self._ids.values()):
            self.refresh(id_)
