"""Change notices: from one call on the server to every connection that asked for them."""

import threading
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

import trio

from ..engine import Channel

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


class Merger:
    """Sends the first of a burst at once and merges the rest into one more.

    While the connection has no room everything is merged: a client that does not read costs one
    notice of each change, however much changes.

    Args:
        send: Sends the notices of one change.
        channel: Where they go.
        spawn: Runs the windows; one task while any is open.
    """

    def __init__(
        self,
        send: Callable[[Hashable], None],
        channel: Channel,
        spawn: Callable[[Callable[[], Awaitable[object]]], None],
    ) -> None:
        self._send = send
        self._channel = channel
        self._spawn = spawn
        self._ends: dict[Hashable, float] = {}  # of the open windows, the first one first
        self._again: set[Hashable] = set()  # what is to be sent at the end of its window
        self._closed = False

    def report(self, change: Hashable) -> None:
        """Take one change; in the loop's thread."""
        if self._closed:
            return  # said in another thread while the connection ended
        if change in self._ends or not self._channel.has_room:
            self._again.add(change)
        else:
            self._send(change)
        if change not in self._ends:
            if not self._ends:
                self._spawn(self._run)
            self._open(change)

    def close(self) -> None:
        """Take no more changes."""
        self._closed = True

    def _open(self, change: Hashable) -> None:
        self._ends[change] = trio.current_time() + MERGE_WINDOW

    async def _run(self) -> None:
        """End one window after the other: all are equally long, so the oldest ends first."""
        while self._ends and not self._closed:
            change, end = next(iter(self._ends.items()))
            await trio.sleep_until(end)
            await self._channel.room()
            del self._ends[change]
            if change in self._again:
                self._again.remove(change)
                self._send(change)
                self._open(change)
