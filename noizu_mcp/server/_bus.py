"""Change notices: from one call on the server to every connection that asked for them."""

from collections.abc import Callable, Hashable
from typing import Final

import trio

#: Seconds in which further changes of one thing are merged into one more notice.
MERGE_WINDOW: Final = 0.05


class Bus:
    """The connections of one server that want to hear of changes."""

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[Hashable], None], ...] = ()

    def add(self, listener: Callable[[Hashable], None]) -> None:
        """Call `listener` with every change from now on, in the thread that reports it."""
        self._listeners = (*self._listeners, listener)

    def discard(self, listener: Callable[[Hashable], None]) -> None:
        """Stop calling a listener."""
        self._listeners = tuple(each for each in self._listeners if each != listener)

    def publish(self, change: Hashable) -> None:
        """Report a change: a kind of list, or the URI of a resource. From any thread."""
        for listener in self._listeners:
            listener(change)


class Merger:
    """Sends the first of a burst at once and merges the rest into one more.

    Args:
        send: Sends the notices of one change.
        nursery: Where the windows run; one short task for each burst.
    """

    def __init__(self, send: Callable[[Hashable], None], nursery: trio.Nursery) -> None:
        self._send = send
        self._nursery = nursery
        self._open: dict[Hashable, bool] = {}

    def report(self, change: Hashable) -> None:
        """Take one change; in the loop's thread."""
        if change in self._open:
            self._open[change] = True
            return
        self._open[change] = False
        self._send(change)
        self._nursery.start_soon(self._window, change)

    async def _window(self, change: Hashable) -> None:
        while True:
            await trio.sleep(MERGE_WINDOW)
            if not self._open[change]:
                del self._open[change]
                return
            self._open[change] = False
            self._send(change)
