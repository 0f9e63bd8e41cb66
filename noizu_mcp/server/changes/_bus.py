"""Change notices: from one call on the server to every peer that asked for them.

Theory of operation. The `Bus` of a server passes each change to every loop that serves it. There
one `Merger` tells all peers. For it a change is in one of three states. Idle: nothing was told
lately. Open: somebody was told, and the window of the change runs. Again: the window runs, and the
change came once more. The first report of an idle change is told at once; each further one only
marks it. At the end of its window a marked change is told and gets a new window, an unmarked one
becomes idle. So a change costs each peer one notice for each window at most, and memory grows with
the number of distinct changes, not of reports. A change of which nobody was told has no window.

A client answers the notice of a list by asking for all of it. So each further window of a list is
twice as long: a storm of a second is six notices.
"""

import itertools
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from ...engine import crashes_logged
from ...protocol import LIST_CHANGED, RESOURCE_UPDATED, TASK_CHANGED, SubscriptionNotice
from ..tasks._task_change import TaskChange

if TYPE_CHECKING:
    from ..tasks._running_task import RunningTask

#: Seconds in which further reports of a change are merged into one more notice: long enough for a
#: loop that adds a hundred tools, too short for a person to see.
MERGE_WINDOW: Final = 0.05
#: Seconds of the longest window of a list; after a storm a client waits for its end.
LONGEST_WINDOW: Final = 16 * MERGE_WINDOW
#: Seconds by which a window may end early, together with the one before it.
TOGETHER: Final = MERGE_WINDOW / 10


class Bus:
    """The loops in which one server is served, and hears of changes.

    Attributes:
        running: Where the server is served now.
    """

    def __init__(self) -> None:
        self.running: dict[Any, None] = {}  # of `RunningServer`
        self._listeners: dict[Callable[[Hashable], None], None] = {}
        # One server may serve in several threads, each with a trio loop of its own.
        self._lock = threading.Lock()

    def add(self, listener: Callable[[Hashable], None]) -> None:
        """Call `listener` with every change from now on, in the thread that reports it."""
        with self._lock:
            self._listeners[listener] = None

    def discard(self, listener: Callable[[Hashable], None]) -> None:
        """Stop calling a listener."""
        with self._lock:
            self._listeners.pop(listener, None)

    def __iter__(self) -> Iterator[Callable[[Hashable], None]]:
        # A copy: a listener may add or discard one.
        with self._lock:
            return iter(list(self._listeners))

    def publish(self, change: Hashable) -> None:
        """Report a change: a kind of list, or the URI of a resource. From any thread."""
        for listener in self:
            listener(change)


class Hearer(Protocol):
    """A peer, as the merger sees it."""

    def tell(self, change: Hashable, notice: SubscriptionNotice, /) -> bool:
        """Tell it of a change; False if it has not asked for that. Must not raise."""


#: A change, and the only peer that is told of it; None: all are.
_Key = tuple[Hashable, Hearer | None]


class Merger:
    """Tells the peers of one loop of changes: the first of a burst at once, the rest merged.

    Args:
        find_task: Finds a task by its id; None if it is gone.
        spawn: Runs a task while any window is open.

    Attributes:
        hearers: Those that are told of every change.
    """

    def __init__(
        self,
        find_task: "Callable[[str], RunningTask | None]",
        spawn: Callable[[Callable[[], Awaitable[object]]], object],
    ) -> None:
        self.hearers: dict[Hearer, None] = {}
        self._find_task = find_task
        self._spawn = spawn
        # The changes with a window: whether they came again. And the windows, a heap by their ends;
        # the number keeps it from comparing changes.
        self._again: dict[_Key, bool] = {}
        self._windows: list[tuple[float, int, _Key, float]] = []
        self._numbers = itertools.count()
        self._running = False

    def report(self, change: Hashable, only: Hearer | None = None) -> None:
        """Take one change, in the loop's thread.

        Args:
            change: The change.
            only: The only one that is told of it; None: all are.
        """
        if (change, only) in self._again:
            self._again[change, only] = True
        else:
            self._tell(change, only, MERGE_WINDOW)

    def _make_notice(self, change: Hashable) -> SubscriptionNotice | None:
        """Make the notice of a change from the present state; None if there is none any more.

        Args:
            change: The change of a task; the URI of a resource, alone in a tuple; the name of a
                list.
        """
        if isinstance(change, TaskChange):
            task = self._find_task(change.id)
            return None if task is None else SubscriptionNotice(TASK_CHANGED, task.to_wire())
        if isinstance(change, tuple):
            return SubscriptionNotice(RESOURCE_UPDATED, {"uri": change[0]})
        return LIST_CHANGED[str(change)]

    def _tell(self, change: Hashable, only: Hearer | None, seconds: float) -> None:
        # Made now, not when it was reported: a merged notice shows the latest state.
        notice = self._make_notice(change)
        if notice is None:
            return
        told = False
        # A copy: one of them may leave.
        for hearer in list(self.hearers) if only is None else (only,):
            told = hearer.tell(change, notice) or told
        if told:
            self._again[change, only] = False
            end = trio.current_time() + seconds
            heappush(self._windows, (end, next(self._numbers), (change, only), seconds))
            if not self._running:
                self._running = True
                self._spawn(self._end_windows)

    async def _end_windows(self) -> None:
        while self._windows:
            await trio.sleep_until(self._windows[0][0])
            # Many changes open as many windows, one right after the other: to sleep for each of
            # them would cost more than the window.
            due = trio.current_time() + TOGETHER
            while self._windows and self._windows[0][0] <= due:
                _, _, key, seconds = heappop(self._windows)
                if self._again.pop(key):
                    if isinstance(key[0], str):
                        seconds = min(2 * seconds, LONGEST_WINDOW)
                    with crashes_logged("a change could not be told"):
                        self._tell(*key, seconds)
        # No checkpoint since the heap was seen empty: a window opened now starts a new task.
        self._running = False
