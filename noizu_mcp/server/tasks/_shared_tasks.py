"""Tasks of one node that every node serves: their writes, their end, and their second life.

Theory of operation. A task runs at one node, which owns its record. `create` writes the record
before the client learns of the task. After that each change is written in the background, at most
one in `MERGE` seconds, and an end at once. Peers see an end once it is written. A write replaces
one version of the record. If another version is there, `_reconcile` reads it: only the owner writes
to the record of a task that runs, so another owner or attempt means that this node was taken for
dead. Then the task is given up: its handler is cancelled, and nothing is written. A node whose
lease is nearly over writes nothing until it has renewed it.

Other nodes read the record (`find`), and send cancellations and answers to the owner
(`TaskMessages`). After each write all nodes are told the key of the record; `FollowedTasks` reads
it again where a peer follows the task.

`_look` is the only reader of records. A task whose node is gone, it fails or runs again, here. So
whoever meets such a task first deals with it: the node that finds the death, or any reader. The
call of a task is in its record only once the task has certainly begun, so a call that was refused
never runs again.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ..._errors import McpError
from ..._limits import Limits
from ..._value import JSONObject
from ...backends import BackendUnavailable, Conflict, Full
from ...jsonrpc import memory_of
from ..nodes._node import RETRY, TASK_CHANGED, Node
from ._followed_tasks import FollowedTasks
from ._known_task import KnownTask
from ._running_task import RunningTask
from ._task_messages import TaskMessages
from ._task_records import TaskRecord, TaskRecords, key_of, unreachable
from ._task_store import TaskStore

if TYPE_CHECKING:
    from ...types import RequireScopes

#: Seconds within which changes of a task become one write.
MERGE: Final = 0.05
#: Runs of a task, the first one included.
ATTEMPTS: Final = 3
#: Part of the lease after which a node that cannot renew it gives up tasks that run again.
GIVE_UP: Final = 0.75
#: Bytes of a result. A record has at most 16 MiB.
MAX_RESULT: Final = 15 * 2**20

_GONE: Final = "The node that ran this task is gone; the task may have been executed in part"


class _Own:
    """A task of this node that runs, or whose end is not written yet.

    Args:
        task: The task.

    Attributes:
        task: See Args.
        key: The key of its record.
        version: The version of its record.
        call: The call, if the task may run again.
        is_lost: True once the record belongs to another node or attempt.
        is_changed: True while a change is not written.
        is_writing: True while a task of the node writes changes.
        over: Set at the end.
    """

    def __init__(self, task: RunningTask) -> None:
        self.task = task
        self.key = key_of(task.id)
        self.version = 0
        self.call: JSONObject | None = None
        self.is_lost = False
        self.is_changed = False
        self.is_writing = False
        self.over = trio.Event()

    def owns(self, record: TaskRecord, node: str) -> bool:
        """Tell whether a record is the record of this task at a node."""
        return (record.node, record.attempt) == (node, self.task.attempt)


class SharedTasks:
    """The tasks of all nodes, as one node serves them.

    Args:
        node: The node.
        store: The tasks of the node.
        limits: The limits of all nodes together.
        run_again: Starts the handler of a task again, from its stored call.

    Attributes:
        followed: Tasks of other nodes that a peer of this one follows.
        messages: Cancels and answers tasks of other nodes.
        most: Maximum bytes of one task.
    """

    most = MAX_RESULT

    def __init__(
        self,
        node: Node,
        store: TaskStore,
        limits: Limits,
        run_again: Callable[[JSONObject, RunningTask], object],
    ) -> None:
        self._node = node
        self._records = TaskRecords(node, limits)
        self._store = store
        self._run_again = run_again
        # All by the key of the record.
        self._own: dict[str, _Own] = {}
        self._given_up: dict[str, TaskRecord] = {}
        self._busy: set[str] = set()
        self._written = trio.Event()
        self._is_watching = False
        self._leaves_tasks = False
        self.followed = FollowedTasks(node, self._look_until_done, store.report)
        self.messages = TaskMessages(node, self._records, self._find_run)
        store.share = self
        node.on_emptied.append(self._write_again)
        node.on_death.append(self._settle_tasks_of)
        node.on_declared_dead.append(self._lose_all)
        node.on_flush.append(self._flush)
        node.has_work.append(self._has_work)

    # Tasks of this node

    async def create(
        self,
        owner: str | None,
        size: int,
        requires: "RequireScopes | None",
        call: JSONObject | None,
    ) -> RunningTask:
        """Create a task, as `TaskStore.create` does; `TaskStore.start` runs it.

        Args:
            owner: The key of its principal; None without authentication.
            size: Bytes that it uses while it runs.
            requires: The scopes of its tool.
            call: The call as JSON, if the task may run again.

        Raises:
            McpError: A limit is reached, the server is shutting down, or the task cannot be stored
                now (-32603).
        """
        task = self._store.create(owner, size)
        if requires is not None:
            task.require(requires)
        own = _Own(task)
        self._busy.add(own.key)
        try:
            await self._admit(own)
            self._own[own.key] = own
            if call is not None:
                # In a write of its own: if the first one failed after all, its record can be there,
                # and the call was refused, so no node may run it.
                own.call = call
                self._watch()
                with suppress(BackendUnavailable):
                    await self._write(own)
        except BaseException:
            self._store.drop(task)
            self._node.spawn(
                partial(self._records.until_done, partial(self._records.delete, own.key))
            )
            raise
        finally:
            self._busy.discard(own.key)
        if own.is_changed:
            self.note_change(task)
        return task

    async def _admit(self, own: _Own) -> None:
        try:
            own.version = await self._records.add(self._record_of(own))
        except Full:
            raise self._store.refusal(own.task.owner, own.task.size) from None
        except BackendUnavailable:
            raise unreachable() from None

    def _record_of(self, own: _Own) -> TaskRecord:
        task, now = own.task, self._node.backend.now()
        return TaskRecord(
            task.id,
            task.owner,
            task.required,
            task.to_wire(),
            self._node.id,
            task.attempt,
            born=now - task.age,
            expires=now + task.expires - trio.current_time(),
            call=None if task.ended else own.call,
        )

    # Writes

    def note_change(self, task: RunningTask) -> None:
        """Write the state of a task soon."""
        own = self._own.get(key_of(task.id))
        if own is None or own.task is not task:
            return
        own.is_changed = True
        if task.ended:
            own.over.set()
        if not own.is_writing:
            own.is_writing = True
            self._node.spawn(partial(self._write_changes, own))

    async def _write_changes(self, own: _Own) -> None:
        try:
            while own.is_changed and not own.is_lost:
                with trio.move_on_after(MERGE):
                    await own.over.wait()
                await self._records.until_done(partial(self._write, own))
        finally:
            own.is_writing = False

    async def _write(self, own: _Own) -> None:
        """Write the state of a task once.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        if own.is_lost:
            return
        is_end, own.is_changed = own.task.ended, False
        try:
            self._check_lease()
            own.version = await self._records.replace(self._record_of(own), own.version)
        except Conflict as conflict:
            own.is_changed = True
            await self._reconcile(own, conflict.version)
            return
        except BackendUnavailable:
            own.is_changed = True
            raise
        self._node.tell(TASK_CHANGED, own.key)
        if is_end and not own.is_lost:
            del self._own[own.key]
            own.task.show_end()
            self._store.report(own.task.id)
            self._written.set()

    async def _reconcile(self, own: _Own, version: int) -> None:
        """Find out what stands in the place of the last version of a record."""
        record, _ = await self._records.get(own.key)
        if record is None:
            # The backend has lost it, or it is garbage: this node knows better.
            own.version = version
        elif own.owns(record, self._node.id):
            own.version = version  # a write whose answer was lost
        else:
            self._lose(own)

    async def _write_again(self) -> None:
        """Write what runs here to a backend that has lost its data."""
        for own in list(self._own.values()):
            self.note_change(own.task)

    @property
    def _is_overdue(self) -> bool:
        """True where other nodes may take this one for dead."""
        return self._node.unrenewed >= self._node.backend.lease

    def _check_lease(self) -> None:
        """Check that this node has renewed its lease in time: only then its records are its own.

        Raises:
            BackendUnavailable: It has not.
        """
        if self._node.unrenewed >= GIVE_UP * self._node.backend.lease:
            raise BackendUnavailable("the lease of this node is not renewed")

    async def _wait_for_lease(self) -> None:
        await trio.lowlevel.checkpoint()
        self._check_lease()

    # The end of ownership

    def note_drop(self, task: RunningTask) -> None:
        """Write nothing more of a task."""
        own = self._own.get(key_of(task.id))
        if own is not None and own.task is task:
            own.is_lost = True
            del self._own[own.key]

    def _lose(self, own: _Own) -> None:
        """Give up a task, and write nothing: its record belongs to another node or attempt."""
        self.note_drop(own.task)
        self._store.give_up(own.task)
        if self._store.is_followed(own.task.id):
            self.followed.refresh(own.task.id)

    def _lose_all(self) -> None:
        """Give up all tasks: another node has taken this one for dead."""
        for own in list(self._own.values()):
            self._lose(own)
        self._given_up.clear()
        # The other node stops where it finds this one alive again.
        self._node.spawn(partial(self._settle_tasks_of, self._node.id))

    def hand_over(self, task: RunningTask) -> bool:
        """Leave a task to another node, if that may run it again."""
        own = self._own.get(key_of(task.id))
        if own is None or own.call is None or own.task is not task or task.ended:
            return False
        self._lose(own)
        self._leaves_tasks = True
        return True

    async def _flush(self) -> None:
        """Wait until all ends are written."""
        while any(own.task.ended for own in self._own.values()):
            self._written = trio.Event()
            await self._written.wait()

    def _has_work(self) -> bool:
        """Tell whether tasks are left to other nodes."""
        return bool(self._own or self._given_up or self._leaves_tasks)

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._node.spawn(self._watch_lease)

    async def _watch_lease(self) -> None:
        """Give up tasks that run again, before another node may take this one for dead."""
        most = GIVE_UP * self._node.backend.lease
        while restartable := [own for own in self._own.values() if own.call is not None]:
            left = most - self._node.unrenewed
            if left <= 0:
                for own in restartable:
                    if not own.task.ended:
                        self._given_up[own.key] = self._record_of(own)
                        self._node.spawn(partial(self._resume, own, self._given_up[own.key]))
                        self._lose(own)
            await trio.sleep(max(left, RETRY))
        # No checkpoint since the tasks were counted.
        self._is_watching = False

    async def _resume(self, own: _Own, record: TaskRecord) -> None:
        """Run a task again that was given up, if it is still of this node."""
        await own.task.left.wait()
        await self._records.until_done(self._wait_for_lease)
        if self._given_up.pop(own.key, None) is not record:
            return  # another node has taken this one for dead
        found = await self._look_until_done(own.key)
        if found is None:
            # The backend has lost it.
            await self._records.until_done(partial(self._take_over, own.key, record, 0))

    # Records

    async def _look(self, key: str) -> TaskRecord | None:
        """Read a record. If the node of its task is gone, deal with that first.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        record, version = await self._records.get(key)
        if record is None or record.is_over or key in self._busy:
            return record
        if not await self._is_left(key, record):
            return record
        await self._take_over(key, record, version)
        record, _ = await self._records.get(key)
        return record

    async def _look_until_done(self, key: str) -> TaskRecord | None:
        """Read a record, as `_look` does, once the backend answers."""
        return await self._records.until_done(partial(self._look, key))

    async def _is_left(self, key: str, record: TaskRecord) -> bool:
        """Tell whether no node runs the task of a record."""
        # A node that may be taken for dead must not begin anything.
        if self._is_overdue:
            return False
        if record.node == self._node.id:
            return not (key in self._own or key in self._given_up)
        return await self._node.is_gone(record.node)

    async def _take_over(self, key: str, record: TaskRecord, version: int) -> None:
        """Run a task again whose node is gone, or end it."""
        if key in self._busy:
            return
        self._busy.add(key)
        try:
            if not await self._restart(key, record, version):
                expires = self._node.backend.now() + self._store.ttl
                await self._records.replace(record.failed(_GONE, expires), version)
        except Conflict:
            return  # another node was first
        finally:
            self._busy.discard(key)
        self._node.tell(TASK_CHANGED, key)
        self.followed.note_change(key)

    async def _restart(self, key: str, record: TaskRecord, version: int) -> bool:
        if record.call is None or record.attempt >= ATTEMPTS:
            return False
        try:
            task = self._store.adopt(record, memory_of(record.call))
        except McpError:
            return False
        age = self._node.backend.now() - record.born
        task.resume(record.attempt + 1, record.wire["createdAt"], age)
        own = _Own(task)
        own.call, own.version = record.call, version
        try:
            own.version = await self._records.replace(self._record_of(own), own.version)
        except BaseException:
            self._store.give_up(task)
            raise
        self._own[key] = own
        self._watch()
        self._run_again(record.call, task)
        return True

    async def _settle_tasks_of(self, node: str) -> None:
        """Deal with all tasks of a node that is gone."""
        await self._records.until_done(self._wait_for_lease)
        keys = await self._records.until_done(partial(self._records.keys_at, node))
        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(self._look_until_done, key)

    # Tasks of all nodes

    def is_here(self, id_: str) -> bool:
        """Tell whether a task is certainly of this node."""
        return self._store.get(id_) is not None and not self._is_overdue

    async def find(self, id_: str) -> RunningTask | TaskRecord | None:
        """Return a task of any node and owner; None if it is unknown.

        Raises:
            McpError: The backend cannot answer now (-32603).
        """
        key = key_of(id_)
        try:
            record = await self._look(key)
        except BackendUnavailable:
            record = self._given_up.get(key)
            if record is None and self._store.get(id_) is None:
                raise unreachable() from None
        own = self._own.get(key)
        if own is not None and record is not None and not own.owns(record, self._node.id):
            self._lose(own)
        found = self._store.get(id_) or record
        if found is None and self._node.note_loss():
            raise unreachable()
        return found

    def note_delivered(self, task: KnownTask) -> None:
        """Record that the owner has seen the end of a task: another one may replace it."""
        if isinstance(task, TaskRecord):
            left = task.expires - self._node.backend.now()
        elif isinstance(task, RunningTask) and not task.is_told:
            task.is_told = True
            left = task.expires - trio.current_time()
        else:
            return
        mark = partial(self._records.mark_delivered, task.id, task.owner, left)
        self._node.spawn(partial(self._records.until_done, mark))

    def _find_run(self, key: str, attempt: int) -> RunningTask | None:
        """Return a task that runs at this node; None if this attempt is over."""
        own = self._own.get(key)
        return None if own is None or own.task.attempt != attempt else own.task
