"""Number and memory of tasks: the limits, and the tasks that may be removed to make room.

Theory of operation. Tasks and bytes are counted in total and for each principal, at every change;
the limits of `Limits` bound both. The quota removes nothing itself: `spare` names a task whose
owner has seen the end, and the store drops it.
"""

from collections import Counter, OrderedDict, defaultdict
from typing import Protocol

from ..._limits import PART, Limits
from ._running_task import RunningTask


class TaskMemory(Protocol):
    """The memory that tasks share with the rest of a transport."""

    def make_room(self, owner: str | None, size: int, /) -> bool:
        """Try to make room for more bytes of an owner; return whether there is room."""

    def count(self, owner: str | None, change: int, /) -> None:
        """Count more bytes of an owner, after `make_room`. A negative number counts fewer."""


class TaskQuota:
    """Counts the tasks of a store, and finds tasks that may be removed to make room.

    Args:
        limits: The limits of number and memory.
        memory: Counts the bytes as well; None if the limits alone apply.
    """

    def __init__(self, limits: Limits, memory: TaskMemory | None = None) -> None:
        self._limits = limits
        self._memory = memory
        self._count = 0
        self._held = 0
        self._owned: Counter[str | None] = Counter()
        self._held_of: Counter[str | None] = Counter()
        # Ended tasks whose owner knows the end, the longest known first. An OrderedDict: a plain
        # dict scans its deleted entries to find the first one.
        self._delivered: OrderedDict[RunningTask, None] = OrderedDict()
        self._delivered_of: defaultdict[str | None, OrderedDict[RunningTask, None]]
        self._delivered_of = defaultdict(OrderedDict)

    def add(self, task: RunningTask) -> None:
        """Count a task."""
        self._count += 1
        self._owned[task.owner] += 1
        self._weigh(task.owner, task.size)

    def remove(self, task: RunningTask) -> None:
        """Remove a task from the counts."""
        self._count -= 1
        owner = task.owner
        self._owned[owner] -= 1
        self._weigh(owner, -task.size)
        self._delivered.pop(task, None)
        self._delivered_of[owner].pop(task, None)
        # Empty entries are removed: principals come and go while the application runs. The read
        # above has made an entry in the defaultdict, too.
        if not self._delivered_of[owner]:
            del self._delivered_of[owner]
        if not self._owned[owner]:
            del self._owned[owner], self._held_of[owner]

    def _weigh(self, owner: str | None, size: int) -> None:
        self._held += size
        self._held_of[owner] += size
        if self._memory is not None:
            self._memory.count(owner, size)

    def resize(self, task: RunningTask, size: int) -> None:
        """Change the bytes of a task. The caller has checked that there is room."""
        self._weigh(task.owner, size - task.size)
        task.size = size

    def note_delivered(self, task: RunningTask) -> None:
        """Record that the owner of a task has seen its end."""
        self._delivered[task] = self._delivered_of[task.owner][task] = None

    def is_full(self, owner: str | None, size: int, tasks: int = 1) -> bool:
        """Tell whether more bytes or tasks of an owner would exceed a limit.

        Args:
            owner: The key of the principal.
            size: Additional bytes.
            tasks: Additional tasks.
        """
        # A task that shrinks always fits, even while the limit is exceeded.
        heavy = size > 0 and self._held + size > self._limits.task_memory
        full = heavy or self._count + tasks > self._limits.tasks
        return full or self.has_all(owner, size, tasks) or not self._has_memory(owner, size)

    def _has_memory(self, owner: str | None, size: int) -> bool:
        # Asked last: it may evict something to make room.
        return self._memory is None or size <= 0 or self._memory.make_room(owner, size)

    def has_all(self, owner: str | None, size: int, tasks: int = 1) -> bool:
        """Tell whether more bytes or tasks would exceed the share of one principal."""
        # Without authentication all callers are one owner: a share would limit the whole server.
        if owner is None:
            return False
        heavy = size > 0 and self._held_of[owner] + size > self._limits.task_memory // PART
        return heavy or self._owned[owner] + tasks > self._limits.tasks_per_principal

    def can_hold(self, owner: str | None, size: int) -> bool:
        """Tell whether one task could use so many bytes if it were the only one."""
        return size <= self._limits.task_memory // (1 if owner is None else PART)

    def spare(self, owner: str | None, size: int, tasks: int = 1) -> RunningTask | None:
        """Find a task that may be removed to make room for an owner, or None.

        Tasks of the owner are preferred.
        """
        own = self._delivered_of.get(owner)
        # If the owner's own share is used up, removing tasks of others does not help.
        if own is None and self.has_all(owner, size, tasks):
            return None
        return next(iter(own or self._delivered), None)
