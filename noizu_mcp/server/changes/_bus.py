"""Change notices: from one call on the server to every connection that asked for them."""

import threading
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final

import trio

from ...engine import ReplyChannel, crashes_logged
from ...jsonrpc import Notification

#: Seconds in which further changes of one thing are merged into one more notice.
MERGE_WINDOW: Final = 0.05


class Bus:
    """The connections of one server that want to hear of changes."""

    def __init__(self) -> None:
        self._listeners: dict[Callable[[Hashable], None], None] = {}
        self._lock = threading.Lock()  # one server may serve in several threads

    def add(self, listener: Callable[[Hashable], None]) -> None:
        """Call `listener` with every change from now on, in the thread that reports it."""
        with self._lock:
            self._listeners[listener] = None

    def discard(self, listener: Callable[[Hashable], None]) -> None:
        """Stop calling a listener."""
        with self._lock:
            self._listeners.pop(listener, None)

    def publish(self, change: Hashable) -> None:
        """Report a change: a kind of list, or the URI of a resource. From any thread."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener(change)


class MergeWindows:
    """Ends windows that are all equally long: the oldest first, with one task for all of them.

    Args:
        spawn: Runs the task, while any window is open.

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
        self._open.append((trio.current_time() + MERGE_WINDOW, at_its_end))
        if not self._running:
            self._running = True
            self.spawn(self._run)

    async def _run(self) -> None:
        while self._open:
            end, at_its_end = self._open.popleft()
            await trio.sleep_until(end)
            with crashes_logged("a change could not be told"):
                at_its_end()
        self._running = False


class Merger:
    """Sends the first of a burst at once and merges the rest into one more.

    While the connection has no room everything is merged: a client that does not read costs one
    notice of each change, however much changes.

    Args:
        make: Makes the notices of one change, as it is now.
        send: Sends them.
        channel: Where they go.
        windows: Those of this connection, or of all of them.
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
        self._open: set[Hashable] = set()  # what has a window now
        self._again: set[Hashable] = set()  # what is to be sent at the end of its window
        self._closed = False

    def report(self, change: Hashable) -> None:
        """Take one change; in the loop's thread. One that has no notices is none."""
        if self._closed:
            return  # said in another thread while the connection ended
        if change in self._open:
            self._again.add(change)
            return
        notices = self._make(change)
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
            self._send(change, self._make(change))
            self._windows.open(partial(self._end, change))
        else:
            self._windows.spawn(partial(self._wait, change))

    async def _wait(self, change: Hashable) -> None:
        await self._channel.room()
        self._end(change)
