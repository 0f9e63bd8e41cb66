"""How many tasks may be kept, and how large, whose they are, and which make room for others."""

from collections import Counter, OrderedDict, defaultdict

from .._limits import PART, Limits
from ._task import RunningTask


class TaskRoom:
    """Counts the tasks of a store.

    Args:
        limits: How many there may be.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._count = 0
        self._held = 0
        self._owned: Counter[str | None] = Counter()
        self._held_of: Counter[str | None] = Counter()
        # What has ended, and its owner knows how; who has known for longest comes first. A plain
        # dict is slow to give its first one while it loses one after the other.
        self._told: OrderedDict[RunningTask, None] = OrderedDict()
        self._told_of: defaultdict[str | None, OrderedDict[RunningTask, None]]
        self._told_of = defaultdict(OrderedDict)

    def add(self, task: RunningTask) -> None:
        """Count a task."""
        self._count += 1
        self._owned[task.owner] += 1
        self._weigh(task.owner, task.size)

    def remove(self, task: RunningTask) -> None:
        """Count a task no more."""
        self._count -= 1
        owner = task.owner
        self._owned[owner] -= 1
        self._weigh(owner, -task.size)
        self._told.pop(task, None)
        self._told_of[owner].pop(task, None)
        if not self._told_of[owner]:
            del self._told_of[owner]
        if not self._owned[owner]:
            del self._owned[owner], self._held_of[owner]

    def _weigh(self, owner: str | None, size: int) -> None:
        self._held += size
        self._held_of[owner] += size

    def resize(self, task: RunningTask, size: int) -> None:
        """Count other bytes for a task; there must be room for them."""
        self._weigh(task.owner, size - task.size)
        task.size = size

    def note_told(self, task: RunningTask) -> None:
        """Note that the owner of a task has been told how it ended."""
        self._told[task] = self._told_of[task.owner][task] = None

    def is_full(self, owner: str | None, size: int, tasks: int = 1) -> bool:
        """Tell whether there is no room for what an owner would have more.

        Args:
            owner: Names the principal.
            size: So many bytes more.
            tasks: So many tasks more.
        """
        heavy = size > 0 and self._held + size > self._limits.task_memory
        return heavy or self._count + tasks > self._limits.tasks or self.has_all(owner, size, tasks)

    def has_all(self, owner: str | None, size: int, tasks: int = 1) -> bool:
        """Tell whether it would be more than one principal may have."""
        if owner is None:
            return False
        heavy = size > 0 and self._held_of[owner] + size > self._limits.task_memory // PART
        return heavy or self._owned[owner] + tasks > self._limits.tasks_per_principal

    def can_hold(self, owner: str | None, size: int) -> bool:
        """Tell whether there would be room for so many bytes if there were no other task."""
        return size <= self._limits.task_memory // (1 if owner is None else PART)

    def spare(self, owner: str | None, size: int, tasks: int = 1) -> RunningTask | None:
        """Find a task that makes room for what an owner would have more; None: there is none.

        One of the owner's own, if any will do; else one of somebody else.
        """
        own = self._told_of.get(owner)
        if own is None and self.has_all(owner, size, tasks):
            return None
        return next(iter(own or self._told), None)
