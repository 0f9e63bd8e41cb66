"""Change notices: from one call on the server to every connection that asked for them.

Theory of operation. For a `Merger` each change is in one of four states. Idle: nothing was sent
lately. Open: a notice went out, and its window runs. Again: the window runs, and the change came
once more. Waiting: the window is over, and the channel has no room. The first report of an idle
change is sent at once; each further one only marks it. At the end of the window a marked change is
sent and gets a new window, an unmarked one becomes idle. So a change costs one notice for each
window at most, and memory grows with the number of distinct changes, not of reports. A closed
merger sends nothing; its windows end by themselves.
"""

import threading
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from functools import partial
from typing import Final

import trio

from ...engine import ReplyChannel, crashes_logged
from ...jsonrpc import Notification

#: Seconds in which further reports of a change are merged into one more notice: long enough for a
#: loop that adds a hundred tools, too short for a person to see.
MERGE_WINDOW: Final = 0.05


class Bus:
    """The connections of one server that listen to changes."""

    def __init__(self) -> None:
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


#: Seconds by which a window may end early, together with the one before it.
TOGETHER: Final = MERGE_WINDOW / 10


class MergeWindows:
    """Ends merge windows, the oldest first, with one task for all of them.

    Args:
        spawn: Runs the task while any window is open.

    Attributes:
        spawn: See Args.
    """

    def __init__(self, spawn: Callable[[Callable[[], Awaitable[object]]], object]) -> None:
        self.spawn = spawn
        self._open: deque[tuple[float, Callable[[], None]]] = deque()
        self._running = False

    def open(self, at_its_end: Callable[[], None]) -> None:
        """Open a window; in the loop's thread.

        Args:
            at_its_end: Called `MERGE_WINDOW` seconds later.
        """
        # All windows are equally long, so the deque is sorted by itself: no heap, and no task or
        # timer for each change.
        self._open.append((trio.current_time() + MERGE_WINDOW, at_its_end))
        if not self._running:
            self._running = True
            self.spawn(self._run)

    async def _run(self) -> None:
        while self._open:
            await trio.sleep_until(self._open[0][0])
            # A change that many are told of opens as many windows, one right after the other: to
            # sleep for each of them would cost more than the window.
            due = trio.current_time() + TOGETHER
            while self._open and self._open[0][0] <= due:
                _, at_its_end = self._open.popleft()
                with crashes_logged("a change could not be told"):
                    at_its_end()
        # No checkpoint since the deque was seen empty: a window opened now starts a new task.
        self._running = False


class Merger:
    """Sends the first of a burst at once and merges the rest into one more.

    While the connection has no room everything is merged: a client that does not read costs one
    notice for each distinct change.

    Args:
        make: Makes the notices of one change from the present state.
        send: Sends the notices.
        channel: The channel that they are sent on.
        windows: The merge windows of this connection, or of the application.
    """

    def __init__(
        self,
        make: Callable[[Hashable], list[Notification]],
        send: Callable[[Hashable, list[Notification]], None],
        channel: ReplyChannel,
        windows: MergeWindows,
    ) -> None:
        self._make = make
        self._send = send
        self._channel = channel
        self._windows = windows
        self._open: set[Hashable] = set()  # changes with a window
        self._again: set[Hashable] = set()  # changes to be sent at the end of their windows
        self._closed = False

    def report(self, change: Hashable) -> None:
        """Take one change, in the loop's thread; without notices it is ignored."""
        if self._closed:
            return  # reported by another thread while the connection ended
        if change in self._open:
            self._again.add(change)
            return
        notices = self._make(change)
        # No window either: most connections have not asked for most changes.
        if not notices:
            return
        self._open.add(change)
        if self._channel.has_room:
            self._send(change, notices)
        else:
            self._again.add(change)
        self._windows.open(partial(self._end, change))

    def close(self) -> None:
        """Take no more changes."""
        self._closed = True

    def _end(self, change: Hashable) -> None:
        if self._closed or change not in self._again:
            self._open.discard(change)
        elif self._channel.has_room:
            self._again.remove(change)
            # Made now, not when it was reported: a merged notice shows the latest state.
            self._send(change, self._make(change))
            self._windows.open(partial(self._end, change))
        else:
            self._windows.spawn(partial(self._wait, change))

    async def _wait(self, change: Hashable) -> None:
        # In a task of its own, which sleeps: the windows of other changes must not wait for this
        # client.
        await self._channel.room()
        self._end(change)
