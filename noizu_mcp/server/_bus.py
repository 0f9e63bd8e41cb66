"""Change notices: from one call on the server to every connection that asked for them."""

import threading
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
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
        spawn: Runs the windows; one short task for each burst.
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
        self._open: dict[Hashable, bool] = {}
        self._closed = False

    def report(self, change: Hashable) -> None:
        """Take one change; in the loop's thread."""
        if self._closed:
            return  # said in another thread while the connection ended
        if change in self._open:
            self._open[change] = True
            return
        at_once = self._channel.has_room
        self._open[change] = not at_once
        if at_once:
            self._send(change)
        self._spawn(partial(self._window, change))

    def close(self) -> None:
        """Take no more changes."""
        self._closed = True

    async def _window(self, change: Hashable) -> None:
        while True:
            await trio.sleep(MERGE_WINDOW)
            await self._channel.room()
            if self._closed or not self._open[change]:
                del self._open[change]
                return
            self._open[change] = False
            self._send(change)
