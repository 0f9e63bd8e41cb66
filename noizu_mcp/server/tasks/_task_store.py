"""The tasks of a server while it is served: what runs, and what is kept for its result."""

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import attrs
import trio

from ..._errors import McpError
from ..._limits import PART, Limits
from ...engine import crashes_logged
from ...jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from ..calls._invoke import TIMED_OUT
from ..events._recording import TaskRecording
from ..events._telemetry import Telemetry
from ..registry._server_options import ServerOptions
from ._running_task import RunningTask

Spawn = Callable[[Callable[[], Awaitable[object]]], object]
#: The rest of a call; gives its result as it goes over the wire.
Work = Callable[[], Awaitable[Mapping[str, Any]]]

#: How often in the life of a task what has expired is looked for.
SWEEPS: Final = 4


@attrs.frozen
class TaskChange:
    """A task has changed; for who follows it.

    Attributes:
        id: Names it.
    """

    id: str


Follower = Callable[[TaskChange], None]


class TaskQuota:
    """Counts the tasks of a store, and finds those that may make room for others.

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


class TaskStore:
    """The tasks of one connection on a pipe; over HTTP, of the whole application.

    They outlive the requests that begin them, and over HTTP their connections.

    Args:
        options: The options of the server.
        spawn: Runs something for as long as the connection, or the application, lasts.
        telemetry: Where it is counted while it has tasks.
    """

    def __init__(self, options: ServerOptions, spawn: Spawn, telemetry: Telemetry) -> None:
        self._options = options
        self._spawn = spawn
        self._telemetry = telemetry
        self._tasks: dict[str, RunningTask] = {}
        self._quota = TaskQuota(options.limits)
        self._followers: dict[str, dict[Follower, None]] = {}  # by task; no empty ones
        self._running: set[RunningTask] = set()
        self._idle = trio.Event()
        self._sweeping = False
        self._stopping = False

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[RunningTask]:
        return iter(tuple(self._tasks.values()))

    def create(self, owner: str | None, size: int = 0) -> RunningTask:
        """Make a task, which can be found from now on; `start` lets it run.

        Args:
            owner: Names the principal that it belongs to; None where nobody is verified.
            size: Bytes that it holds while it runs.

        Raises:
            McpError: There are too many, or they hold too much, or the server is shutting down
                (-32603).
        """
        if self._stopping:
            raise McpError(INTERNAL_ERROR, "The server is shutting down")
        if not self.make_room(owner, size):
            raise self._refusal(owner, size)
        options = self._options
        task = RunningTask(
            owner,
            size=size,
            hold=self._hold,
            ttl=options.task_ttl,
            poll_interval=options.task_poll_interval,
            on_change=self._report,
        )
        self._tasks[task.id] = task
        self._quota.add(task)
        if not self._sweeping:
            self._sweeping = True
            self._spawn(self._sweep)
        return task

    def make_room(self, owner: str | None, size: int = 0, tasks: int = 1) -> bool:
        """Tell whether an owner may have more; if need be, tasks go that have served their end.

        Those are such that have ended, and their owners were told how.

        Args:
            owner: Names the principal.
            size: So many bytes more.
            tasks: So many tasks more.
        """
        if not self._quota.can_hold(owner, size):
            return False
        while self._quota.is_full(owner, size, tasks):
            spare = self._quota.spare(owner, size, tasks)
            if spare is None:
                self._drop_expired()
                return not self._quota.is_full(owner, size, tasks)
            self._drop(spare)
        return True

    def _hold(self, task: RunningTask, size: int) -> bool:
        """Let a task hold so many bytes instead of those that it holds, if there is room."""
        possible = self._quota.can_hold(task.owner, size)
        fits = possible and self.make_room(task.owner, size - task.size, tasks=0)
        if fits:
            self._quota.resize(task, size)
        return fits

    def _refusal(self, owner: str | None, size: int) -> McpError:
        """Say when there is room again: at the latest when the first one's time is over."""
        if not self._quota.can_hold(owner, size):
            return McpError(INTERNAL_ERROR, "The request is too large for a task")
        tasks: Iterable[RunningTask] = self._tasks.values()
        if self._quota.has_all(owner, size):
            tasks = (task for task in tasks if task.owner == owner)
        left = min(task.expires for task in tasks) - trio.current_time()
        seconds = max(1, math.ceil(left))
        text = (
            f"Too many tasks; try again in {seconds} s, or once one has ended and tasks/get has"
            " said so"
        )
        return McpError(INTERNAL_ERROR, text, {"retryAfter": seconds})

    def note_told(self, task: RunningTask) -> None:
        """Note that the owner has been told how a task is; once it has ended it makes room."""
        if task.ended:
            self._quota.note_told(task)

    def follow(self, id_: str, follower: Follower) -> None:
        """Call a follower with every change of a task, until `unfollow`; there must be the task.

        Args:
            id_: Names the task.
            follower: Must not raise.
        """
        self._followers.setdefault(id_, {})[follower] = None

    def unfollow(self, id_: str, follower: Follower) -> None:
        """Stop calling a follower; one that is none is fine."""
        followers = self._followers.get(id_, {})
        followers.pop(follower, None)
        if not followers:
            self._followers.pop(id_, None)

    def get(self, id_: str) -> RunningTask | None:
        """Find a task, whoever asks; None if there is none, or not any more."""
        task = self._tasks.get(id_)
        if task is None or task.expires <= trio.current_time():
            return None
        return task

    def find(self, id_: Any, owner: str | None) -> RunningTask:
        """Find a task for whom it belongs to.

        Args:
            id_: As sent.
            owner: Names the principal that asks.

        Raises:
            McpError: There is none, or not any more, or it belongs to somebody else (-32602).
        """
        if not isinstance(id_, str):
            raise McpError(INVALID_PARAMS, "taskId must be a string")
        task = self.get(id_)
        if task is None or task.owner != owner:
            raise McpError(INVALID_PARAMS, "Unknown task; it never was, or it is no longer kept")
        return task

    def start(
        self,
        task: RunningTask,
        work: Work,
        timeout: float | None,
        record: TaskRecording | None = None,
    ) -> None:
        """Let a task run.

        Args:
            task: The task.
            work: What it does; of what it raises, `McpError` is for the client.
            timeout: Seconds that it may take; None for its life.
            record: Watches it; None if nobody listens.
        """
        if timeout is not None:
            task.expire_at(trio.current_time() + timeout)
        self._running.add(task)
        run = partial(self._run, task, work)
        self._spawn(run if record is None else partial(record.run, run))

    async def _run(self, task: RunningTask, work: Work) -> None:
        try:
            with crashes_logged("a task failed"), task.scope:
                try:
                    task.complete(await work())
                except McpError as error:
                    task.fail(error.code, error.message, error.data)
            if not task.ended:
                self._conclude(task)
        finally:
            self._running.discard(task)
            if not self._running:
                self._idle.set()

    def _conclude(self, task: RunningTask) -> None:
        """End a task that came to no end by itself."""
        if task.cancelling:
            task.end_cancelled()
        elif not task.scope.cancelled_caught:
            task.ending = "crashed"
            task.fail(INTERNAL_ERROR, "Request handler failed")
        else:
            task.ending = "timed_out"
            if task.expires > trio.current_time():
                task.complete(TIMED_OUT.to_wire())
            else:
                self._drop(task)

    def _report(self, task: RunningTask) -> None:
        followers = self._followers.get(task.id)
        if followers is not None:
            for follower in list(followers):
                follower(TaskChange(task.id))

    def _drop(self, task: RunningTask) -> None:
        del self._tasks[task.id]
        self._quota.remove(task)
        self._followers.pop(task.id, None)

    def _drop_expired(self) -> None:
        """Forget what has expired and does not run; what still runs is cancelled by its scope."""
        now = trio.current_time()
        for task in list(self._tasks.values()):
            if task.expires <= now and task not in self._running:
                self._drop(task)

    async def _sweep(self) -> None:
        with self._telemetry.counting(self):
            while self._tasks:
                await trio.sleep(self._options.task_ttl / SWEEPS)
                self._drop_expired()
        self._sweeping = False

    async def settle(self, grace: float) -> None:
        """Take no new task, wait for those that run, and cancel what is left.

        What waits for the client is cancelled at once: no answer can come any more.

        Args:
            grace: Seconds.
        """
        self._stopping = True
        for task in self._running:
            if task.status == "input_required":
                task.cancel()
        with trio.move_on_after(grace):
            while self._running:
                self._idle = trio.Event()
                await self._idle.wait()
        for task in self._running:
            task.cancel()
