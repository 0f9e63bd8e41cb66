"""The tasks of a server while it is served: running ones, and ended ones with their results.

Theory of operation. `create` adds a task, `start` runs it in a nursery of the connection or the
application, `_run` brings it to a final state, and `drop` removes it: when it has expired, or
earlier, to make room for another. Only a task whose owner has seen the end is removed early, so no
unread result is lost. `TaskQuota` counts tasks and bytes at every change. Everything runs in the
loop's thread without a checkpoint between a check and its effect, so there is no lock and no race.
`_sweep` is the only background task of the store, and runs only while there are tasks. At a node of
many, `TaskShare` stores each change. A task that another node has taken over is given up without a
message to anyone.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from ..._errors import McpError
from ...engine import SpawnTask, crashes_logged
from ...events import Telemetry
from ...jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from ..calls._emitters import TaskEmitter
from ..calls._invoke import TIMED_OUT
from ..registry._server_options import ServerOptions
from ._known_task import KnownTask
from ._running_task import RunningTask
from ._task_change import TaskChange
from ._task_quota import TaskMemory, TaskQuota

if TYPE_CHECKING:
    from ...types import RequireScopes
    from ._followed_tasks import FollowedTasks

#: The rest of a call; returns its result in wire format.
Work = Callable[[], Awaitable[Mapping[str, Any]]]

#: Sweeps for expired tasks in one `ttl`: an expired task is kept at most a quarter of its lifetime
#: too long. `get` does not return it; the sweep only frees its memory.
SWEEPS: Final = 4


Follower = Callable[[TaskChange], None]


def unknown_task() -> McpError:
    """Make the error for a task that the caller cannot use."""
    # One error for all cases: another principal must not learn that an id exists.
    return McpError(INVALID_PARAMS, "Unknown task; it never was, or it is no longer kept")


class TaskShare(Protocol):
    """Stores the tasks of a node for the other nodes; see `SharedTasks`."""

    #: Maximum bytes of one task.
    most: int

    @property
    def followed(self) -> "FollowedTasks":
        """The tasks of other nodes that a peer of this one follows."""

    def note_change(self, task: RunningTask, /) -> None:
        """Store the state of a task soon."""

    def note_delivered(self, task: KnownTask, /) -> None:
        """Record for all nodes that the owner has seen the end of a task."""

    def note_drop(self, task: RunningTask, /) -> None:
        """Store nothing more of a task."""

    def hand_over(self, task: RunningTask, /) -> bool:
        """Leave a task to another node, if that may run it again."""


class TaskStore:
    """The tasks of one connection on a pipe, or of a whole HTTP application.

    Tasks outlive the requests that begin them, and over HTTP also their connections.

    Args:
        options: The options of the server.
        spawn: Runs a function in a nursery of the connection or the application.
        telemetry: Counts the store while it has tasks.
        memory: See `TaskQuota`.

    Attributes:
        share: Stores the tasks for other nodes; None for a process alone.
    """

    def __init__(
        self,
        options: ServerOptions,
        spawn: SpawnTask,
        telemetry: Telemetry,
        memory: TaskMemory | None = None,
    ) -> None:
        self._options = options
        self._spawn = spawn
        self._telemetry = telemetry
        self._tasks: dict[str, RunningTask] = {}
        self._quota = TaskQuota(options.limits, memory)
        self._followers: dict[str, dict[Follower, None]] = {}  # by task, without empty entries
        self._running: set[RunningTask] = set()
        self._idle = trio.Event()
        self._sweeping = False
        self._stopping = False
        self.share: TaskShare | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def ttl(self) -> float:
        """Seconds for which an ended task is kept."""
        return self._options.task_ttl

    def __iter__(self) -> Iterator[RunningTask]:
        # A copy: telemetry reads it in other threads, while the loop adds and removes tasks.
        return iter(tuple(self._tasks.values()))

    def create(self, owner: str | None, size: int = 0) -> RunningTask:
        """Create a task that `find` returns at once; `start` runs it.

        The extension requires this order: the id may be sent only once `tasks/get` finds the task.

        Args:
            owner: The key of its principal; None without authentication.
            size: Bytes that it uses while it runs.

        Raises:
            McpError: A limit is reached, or the server is shutting down (-32603).
        """
        task = self._make(owner, size)
        self._add(task)
        return task

    def adopt(self, like: KnownTask, size: int) -> RunningTask:
        """Create a task in the place of one whose node is gone, as `create` does.

        Args:
            like: That task.
            size: Bytes that it uses while it runs.

        Raises:
            McpError: A limit is reached, or the server is shutting down (-32603).
        """
        task = self._make(like.owner, size)
        task.id = like.id
        for each in like.required:
            task.require(each)
        self._add(task)
        return task

    def _make(self, owner: str | None, size: int) -> RunningTask:
        if self._stopping:
            raise McpError(INTERNAL_ERROR, "The server is shutting down")
        if not self.make_room(owner, size):
            raise self.refusal(owner, size)
        options = self._options
        task = RunningTask(
            owner,
            size=size,
            hold=self._hold,
            ttl=options.task_ttl,
            poll_interval=options.task_poll_interval,
            on_change=self._note_change,
        )
        task.hides_end = self.share is not None
        return task

    def _add(self, task: RunningTask) -> None:
        self._tasks[task.id] = task
        self._quota.add(task)
        if not self._sweeping:
            self._sweeping = True
            self._spawn(self._sweep)

    def give_up(self, task: RunningTask) -> None:
        """Forget a task that is not of this node any longer, and cancel its handler.

        Its followers stay: they follow it at another node.
        """
        if self._has(task):
            self._remove(task)
        task.cancel()

    def require(self, task: RunningTask, requires: "RequireScopes") -> None:
        """Add required scopes to a task; see `RunningTask.require`."""
        task.require(requires)
        if self.share is not None:
            self.share.note_change(task)

    def make_room(self, owner: str | None, size: int = 0, tasks: int = 1) -> bool:
        """Try to make room for more bytes or tasks of an owner; return whether there is room.

        If necessary, evicts ended tasks whose owners have seen the end.

        Args:
            owner: The key of the principal.
            size: Additional bytes.
            tasks: Additional tasks.
        """
        # First: a task that can never fit must not evict others.
        if not self._quota.can_hold(owner, size):
            return False
        while self._quota.is_full(owner, size, tasks):
            spare = self._quota.spare(owner, size, tasks)
            if spare is None:
                # Last resort, since it checks every task; the sweep would do it later.
                self._drop_expired()
                return not self._quota.is_full(owner, size, tasks)
            self.drop(spare)
        return True

    def _hold(self, task: RunningTask, size: int) -> bool:
        """Set the bytes that a task uses, if there is room; return False otherwise."""
        if not self._has(task):
            return True  # its handler may still end
        possible = self._quota.can_hold(task.owner, size)
        if self.share is not None and size > self.share.most:
            possible = False
        fits = possible and self.make_room(task.owner, size - task.size, tasks=0)
        if fits:
            self._quota.resize(task, size)
        return fits

    def refusal(self, owner: str | None, size: int) -> McpError:
        """Make the error for a limit. It has the time at which the first task expires."""
        if not self._quota.can_hold(owner, size):
            return McpError(INTERNAL_ERROR, "The request is too large for a task")
        tasks: Iterable[RunningTask] = self._tasks.values()
        if self._quota.has_all(owner, size):
            tasks = (task for task in tasks if task.owner == owner)
        now = trio.current_time()
        # Without a task here, all of them are at other nodes.
        left = min((task.expires - now for task in tasks), default=self._options.task_ttl)
        seconds = max(1, math.ceil(left))
        text = (
            f"Too many tasks; try again in {seconds} s, or once one has ended and tasks/get has"
            " said so"
        )
        return McpError(INTERNAL_ERROR, text, {"retryAfter": seconds})

    def note_delivered(self, task: KnownTask) -> None:
        """Record that the owner has seen a task; an ended task may then be removed."""
        if not task.is_over:
            return
        if isinstance(task, RunningTask):
            self._quota.note_delivered(task)
        if self.share is not None:
            self.share.note_delivered(task)

    def follow(self, id_: str, follower: Follower) -> None:
        """Call a follower with every change of a task, until `unfollow`.

        Args:
            id_: The id of the task, which must exist at this node or another one.
            follower: Must not raise.
        """
        self._followers.setdefault(id_, {})[follower] = None
        if self.share is not None and id_ not in self._tasks:
            self.share.followed.refresh(id_)

    def unfollow(self, id_: str, follower: Follower) -> None:
        """Stop calling a follower. Unknown followers are ignored."""
        followers = self._followers.get(id_, {})
        followers.pop(follower, None)
        if not followers:
            self._followers.pop(id_, None)
            if self.share is not None:
                self.share.followed.unfollow(id_)

    def is_followed(self, id_: str) -> bool:
        """Tell whether a task has followers."""
        return id_ in self._followers

    def find_known(self, id_: str) -> KnownTask | None:
        """Return a task, also one of another node if it is followed; None if it is unknown."""
        found: KnownTask | None = self.get(id_)
        if found is None and self.share is not None:
            found = self.share.followed.get(id_)
        return found

    def get(self, id_: str) -> RunningTask | None:
        """Return a task of any owner; None if it is unknown or has expired."""
        task = self._tasks.get(id_)
        if task is None or task.expires <= trio.current_time():
            return None
        return task

    def find(self, id_: object, owner: str | None) -> RunningTask:
        """Return a task of an owner.

        Args:
            id_: The `taskId` of the request, not validated.
            owner: The key of the principal of the request.

        Raises:
            McpError: The task is unknown, has expired, or belongs to another owner (-32602).
        """
        if not isinstance(id_, str):
            raise McpError(INVALID_PARAMS, "taskId must be a string")
        task = self.get(id_)
        if task is None or task.owner != owner:
            raise unknown_task()
        return task

    def start(
        self,
        task: RunningTask,
        work: Work,
        timeout: float | None,
        record: TaskEmitter | None = None,
    ) -> None:
        """Run a task.

        Args:
            task: The task.
            work: The work. An `McpError` that it raises is sent to the client.
            timeout: Seconds; None for the lifetime of the task.
            record: The emitter for listeners; None without listeners.
        """
        if timeout is not None:
            task.expire_at(trio.current_time() + timeout)
        self._running.add(task)
        run = partial(self._run, task, work)
        self._spawn(run if record is None else partial(record.run, run))

    async def _run(self, task: RunningTask, work: Work) -> None:
        try:
            # The scope is inside: a cancelled or expired task ends without a log entry, and a crash
            # does not end the nursery, which also has the tasks of others.
            with crashes_logged("a task failed"), task.scope:
                try:
                    task.complete(await work())
                except McpError as error:
                    task.fail(error.code, error.message, error.data)
            # After the scope has closed: only then is it known whether the scope or a crash ended
            # the work.
            if not task.ended:
                self._conclude(task)
        finally:
            task.left.set()
            self._running.discard(task)
            if not self._running:
                self._idle.set()

    def _conclude(self, task: RunningTask) -> None:
        """End a task that was cancelled, has crashed, or timed out."""
        if task.cancelling:
            task.end_cancelled()
        elif not task.scope.cancelled_caught:
            task.ending = "crashed"
            task.fail(INTERNAL_ERROR, "Request handler failed")
        else:
            task.ending = "timed_out"
            # The tool's own timeout is a result that the model can read. After `expires` the client
            # knows that the task is gone.
            if task.expires > trio.current_time():
                task.complete(TIMED_OUT.to_wire())
            else:
                self.drop(task)

    def _note_change(self, task: RunningTask) -> None:
        if not self._has(task):
            return  # its state is what another node says
        if self.share is not None:
            self.share.note_change(task)
        # Other nodes, and peers, learn of an end once it is stored.
        if task.is_over or not task.ended:
            self.report(task.id)

    def report(self, id_: str) -> None:
        """Report a change of a task to its followers."""
        followers = self._followers.get(id_)
        if followers is not None:
            # A copy: a follower may unfollow when it is called.
            for follower in list(followers):
                follower(TaskChange(id_))

    def drop(self, task: RunningTask) -> None:
        """Remove a task."""
        self._remove(task)
        self._followers.pop(task.id, None)
        if self.share is not None:
            self.share.note_drop(task)

    def _remove(self, task: RunningTask) -> None:
        del self._tasks[task.id]
        self._quota.remove(task)

    def _has(self, task: RunningTask) -> bool:
        """Tell whether a task is still of this node: it was not given up."""
        return self._tasks.get(task.id) is task

    def _drop_expired(self) -> None:
        """Remove expired tasks that do not run. A running one is cancelled by its scope first."""
        now = trio.current_time()
        for task in list(self._tasks.values()):
            if task.expires <= now and task not in self._running:
                self.drop(task)

    async def _sweep(self) -> None:
        with self._telemetry.counting(self):
            while self._tasks:
                # At a fixed interval, without a heap of deadlines: the expiry of a task changes
                # when it ends, and an exact wake-up gains nothing.
                await trio.sleep(self._options.task_ttl / SWEEPS)
                self._drop_expired()
        # No checkpoint since `_tasks` was found empty: a task created now sees the flag as false
        # and spawns a new sweep.
        self._sweeping = False

    async def settle(self, grace: float) -> None:
        """Accept no new tasks, wait for the running ones, and cancel the rest.

        A task that waits for the client is cancelled at once: no answer can come now.

        Args:
            grace: Seconds to wait.
        """
        self._stopping = True
        for task in self._running:
            if task.status == "input_required":
                self._stop(task)
        with trio.move_on_after(grace):
            while self._running:
                # A new event each time: a trio event cannot be reset.
                self._idle = trio.Event()
                await self._idle.wait()
        for task in self._running:
            self._stop(task)

    def _stop(self, task: RunningTask) -> None:
        if self.share is None or not self.share.hand_over(task):
            task.cancel()
