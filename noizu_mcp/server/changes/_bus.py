"""Change notifications: from one call on the server to every subscribed peer.

Theory of operation. The `Bus` of a server passes each change to every loop that serves it. There
one `Merger` notifies all peers. For the merger a change is in one of three states. Idle: no recent
notification. Open: a notification was sent, and the window of the change runs. Again: the window
runs, and the change was reported again. The first report of an idle change is sent at once; each
later report only marks it. At the end of its window a marked change is sent and gets a new window;
an unmarked one becomes idle. So a change causes at most one notification per window and peer, and
memory grows with the number of distinct changes, not of reports. A change that no peer subscribed
to has no window.

A client answers a list change by fetching the whole list. So each further window of a list is twice
as long: a burst of a second causes six notifications.
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
    from ..tasks._known_task import KnownTask

#: Seconds in which further reports of a change are merged into one notification: long enough for a
#: loop that adds a hundred tools, too short for a person to notice.
MERGE_WINDOW: Final = 0.05
#: Seconds of the longest window of a list. After a burst a client waits until it ends.
LONGEST_WINDOW: Final = 16 * MERGE_WINDOW
#: Seconds by which a window may end early, together with the previous one.
TOGETHER: Final = MERGE_WINDOW / 10


class Bus:
    """The loops that serve one server and receive its changes.

    Attributes:
        running: The running servers.
    """

    def __init__(self) -> None:
        self.running: dict[Any, None] = {}  # keys are of type `RunningServer`
        self._listeners: dict[Callable[[Hashable], None], None] = {}
        # One server may be served in several threads, each with a trio loop.
        self._lock = threading.Lock()

    def add(self, listener: Callable[[Hashable], None]) -> None:
        """Call `listener` with every change from now on, in the thread that reports the change."""
        with self._lock:
            self._listeners[listener] = None

    def discard(self, listener: Callable[[Hashable], None]) -> None:
        """Stop calling a listener."""
        with self._lock:
            self._listeners.pop(listener, None)

    def __iter__(self) -> Iterator[Callable[[Hashable], None]]:
        # A copy: a listener may add or discard listeners.
        with self._lock:
            return iter(list(self._listeners))

    def publish(self, change: Hashable) -> None:
        """Report a change from any thread: the kind of a list, or the URI of a resource."""
        for listener in self:
            listener(change)


class Subscriber(Protocol):
    """A peer, as the merger uses it."""

    def tell(self, change: Hashable, notice: SubscriptionNotice, /) -> bool:
        """Send a change; False if the peer has not subscribed to it. Must not raise."""

    def report_all(self) -> None:
        """Report every change that the peer has subscribed to."""


#: A change, and the only peer to notify; None for all peers.
_Key = tuple[Hashable, Subscriber | None]


class Merger:
    """Notifies the peers of one loop of changes: the first of a burst at once, the rest merged.

    Args:
        find_task: Finds a task by its id; None if it is gone.
        spawn: Runs a task while any window is open.

    Attributes:
        subscribers: The peers that are notified of every change.
        marked: Number of changes that wait for the end of their window.
    """

    def __init__(
        self,
        find_task: "Callable[[str], KnownTask | None]",
        spawn: Callable[[Callable[[], Awaitable[object]]], object],
    ) -> None:
        self.subscribers: dict[Subscriber, None] = {}
        self.marked = 0
        self._find_task = find_task
        self._spawn = spawn
        # Changes with a window, and whether they were reported again. The windows are a heap,
        # sorted by end; the number avoids comparing changes.
        self._again: dict[_Key, bool] = {}
        self._windows: list[tuple[float, int, _Key, float]] = []
        self._numbers = itertools.count()
        self._running = False

    def report(self, change: Hashable, only: Subscriber | None = None) -> None:
        """Handle one change, in the loop's thread.

        Args:
            change: The change.
            only: The only peer to notify; None for all peers.
        """
        is_marked = self._again.get((change, only))
        if is_marked is False:
            self._again[change, only] = True
            self.marked += 1
        elif is_marked is None:
            self._tell(change, only, MERGE_WINDOW)

    def _make_notice(self, change: Hashable) -> SubscriptionNotice | None:
        """Make the notification of a change from the current state; None if the task is gone.

        Args:
            change: The change of a task; the URI of a resource, alone in a tuple; or the name of a
                list.
        """
        if isinstance(change, TaskChange):
            task = self._find_task(change.id)
            return None if task is None else SubscriptionNotice(TASK_CHANGED, task.shown)
        if isinstance(change, tuple):
            return SubscriptionNotice(RESOURCE_UPDATED, {"uri": change[0]})
        return LIST_CHANGED[str(change)]

    def _tell(self, change: Hashable, only: Subscriber | None, seconds: float) -> None:
        # Made now, not when it was reported: a merged notification shows the latest state.
        notice = self._make_notice(change)
        if notice is None:
            return
        notified = False
        # A copy: a peer may unsubscribe.
        for subscriber in list(self.subscribers) if only is None else (only,):
            notified = subscriber.tell(change, notice) or notified
        if notified:
            self._again[change, only] = False
            end = trio.current_time() + seconds
            heappush(self._windows, (end, next(self._numbers), (change, only), seconds))
            if not self._running:
                self._running = True
                self._spawn(self._end_windows)

    async def _end_windows(self) -> None:
        while self._windows:
            await trio.sleep_until(self._windows[0][0])
            # Many changes open many windows shortly after each other: sleeping for each of them
            # would take longer than the window.
            due = trio.current_time() + TOGETHER
            while self._windows and self._windows[0][0] <= due:
                _, _, key, seconds = heappop(self._windows)
                if self._again.pop(key):
                    self.marked -= 1
                    if isinstance(key[0], str):
                        seconds = min(2 * seconds, LONGEST_WINDOW)
                    with crashes_logged("a change could not be sent"):
                        self._tell(*key, seconds)
        # No checkpoint since the heap was found empty: a window opened now starts a new task.
        self._running = False
