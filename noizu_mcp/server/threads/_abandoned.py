"""Threads that outlive their calls: they are counted, and bounded for each handler.

Theory of operation. Python cannot stop a thread. A sync handler that ignores its timeout keeps its
thread, and its token of the server's limiter, until it ends; a handler that never ends would thus
take all of them, one call after the other. A call is *running*, then *ended*; its caller may leave
at any time, and if it leaves a running call, the thread counts as abandoned until it ends. `_lock`
guards the counts, which the loop and the threads change.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import trio

from ..._errors import McpException
from ..._log import throttled_log
from ..._util import Returned
from ...engine import call_in_thread


class TooManyAbandoned(McpException):
    """Too many threads of a handler still run after their calls have ended."""


class AbandonedThreads:
    """The abandoned threads of a server.

    Args:
        most: Maximum abandoned threads of one handler; beyond that, its calls are refused.
    """

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._on_end: Callable[[], object] | None = None  # while `settle` waits

    @property
    def count(self) -> int:
        """The number of all abandoned threads. From any thread."""
        with self._lock:
            return self._counts.total()

    async def run(self, handler: str, work: Callable[[], Returned], limiter: Any) -> Returned:
        """Run a sync handler in a thread, which is abandoned if the caller is cancelled.

        Args:
            handler: Names the handler.
            work: The handler.
            limiter: Takes a token for the thread, until it ends.

        Raises:
            TooManyAbandoned: Too many abandoned threads of the handler still run.
        """
        # Read without the lock: most counts are empty, and a thread that ends now does not matter.
        if self._counts and self._counts[handler] >= self._most:
            text = "%s: %d of its threads go on after their calls; its calls are refused meanwhile"
            throttled_log.entry(logging.ERROR, (text, handler), text, handler, self._most)
            raise TooManyAbandoned("Earlier calls have not ended yet; try again later")
        call = _ThreadCall(self, handler, work)
        try:
            return await trio.to_thread.run_sync(call.run, abandon_on_cancel=True, limiter=limiter)
        except BaseException:
            call.leave()
            raise

    async def settle(self, seconds: float) -> None:
        """Wait until every abandoned thread has ended, even in a cancelled task.

        Args:
            seconds: The time after which it gives up.
        """
        ended = trio.Event()
        token = trio.lowlevel.current_trio_token()
        with self._lock:
            if not self._counts:
                return
            self._on_end = partial(token.run_sync_soon, ended.set)
        with trio.move_on_after(seconds, shield=True):
            await ended.wait()
        with self._lock:
            self._on_end = None

    def add(self, handler: str, number: int) -> None:
        """Change the count of a handler; the lock is held."""
        self._counts[handler] += number
        if not self._counts[handler]:
            del self._counts[handler]
            if self._on_end is not None and not self._counts:
                self._on_end()

    @property
    def lock(self) -> threading.Lock:
        """Guards the counts, and the states of calls."""
        return self._lock


class _ThreadCall:
    """One call in a thread."""

    __slots__ = ("_all", "_handler", "_left", "_running", "_work")

    def __init__(self, counts: AbandonedThreads, handler: str, work: Callable[[], Any]) -> None:
        self._all = counts
        self._handler = handler
        self._work = work
        self._running = False
        self._left = False

    def run(self) -> Any:
        with self._all.lock:
            self._running = True
            if self._left:  # before the thread started
                self._all.add(self._handler, 1)
        try:
            return call_in_thread(self._work)
        finally:
            with self._all.lock:
                self._running = False
                if self._left:
                    self._all.add(self._handler, -1)

    def leave(self) -> None:
        with self._all.lock:
            # A thread that waits for a token never starts; a failed thread has ended.
            self._left = True
            if self._running:
                self._all.add(self._handler, 1)
