"""How many tasks may be kept, whose they are, and which of them make room for others."""

from collections import Counter, OrderedDict, defaultdict

from .._limits import Limits
from ._task import RunningTask


class TaskRoom:
    """Counts the tasks of a store.

    Args:
        limits: How many there may be.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._count = 0
        self._owned: Counter[str | None] = Counter()
        # What has ended, and its owner knows how; who has known for longest comes first. A plain
        # dict is slow to give its first one while it loses one after the other.
        self._told: OrderedDict[RunningTask, None] = OrderedDict()
        self._told_of: defaultdict[str | None, OrderedDict[RunningTask, None]]
        self._told_of = defaultdict(OrderedDict)

    def add(self, task: RunningTask) -> None:
        """Count a task."""
        self._count += 1
        self._owned[task.owner] += 1

    def remove(self, task: RunningTask) -> None:
        """Count a task no more."""
        self._count -= 1
        owner = task.owner
        self._owned[owner] -= 1
        self._told.pop(task, None)
        self._told_of[owner].pop(task, None)
        if not self._told_of[owner]:
            del self._told_of[owner]
        if not self._owned[owner]:
            del self._owned[owner]

    def note_told(self, task: RunningTask) -> None:
        """Note that the owner of a task has been told how it ended."""
        self._told[task] = self._told_of[task.owner][task] = None

    def is_full(self, owner: str | None) -> bool:
        """Tell whether an owner may have no further task."""
        return self._count >= self._limits.tasks or self.has_all(owner)

    def has_all(self, owner: str | None) -> bool:
        """Tell whether an owner has as many as one principal may have."""
        return owner is not None and self._owned[owner] >= self._limits.tasks_per_principal

    def spare(self, owner: str | None) -> RunningTask | None:
        """Find the task that makes room for another one of an owner; None: there is none.

        One of the owner's own, if any will do; else one of somebody else.
        """
        own = self._told_of.get(owner)
        if own is None and self.has_all(owner):
            return None
        return next(iter(own or self._told), None)
