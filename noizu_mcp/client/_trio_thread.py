"""A trio loop in a separate thread, for callers in other threads."""

import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
    suppress,
)
from functools import partial
from types import TracebackType
from typing import Any

import trio

from .._errors import ConnectionClosed
from .._util import Returned
from ..engine import HeldManager, settle


def _closed() -> ConnectionClosed:
    return ConnectionClosed("the client is closed")


class TrioThread:
    """A trio loop in a thread, for callers in other threads.

    Args:
        nursery: Runs their tasks.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self.stopped = trio.Event()
        self._nursery = nursery
        self._thread = threading.get_ident()
        self._token = trio.lowlevel.current_trio_token()

    @property
    def is_current(self) -> bool:
        """True in the thread of the loop."""
        return threading.get_ident() == self._thread

    def start(
        self, work: Callable[[], Awaitable[Returned]], scope: trio.CancelScope | None = None
    ) -> "Future[Returned]":
        """Start a task with the context variables of the caller.

        Args:
            work: The coroutine function.
            scope: The scope around the task.

        Raises:
            ConnectionClosed: The loop has ended.
            RuntimeError: It is called in the thread of the loop, which cannot wait for itself.
        """
        if self.is_current:
            raise RuntimeError("a SyncClient cannot be used in its own handler or callbacks")
        ended: Future[Returned] = Future()

        def begin() -> None:
            if self.stopped.is_set():  # it ended before the loop ran this
                ended.set_exception(_closed())
            else:
                surrounded = scope or trio.CancelScope()
                self._nursery.start_soon(settle, work, surrounded, ended, _closed)

        try:
            self._token.run_sync_soon(partial(contextvars.copy_context().run, begin))
        except trio.RunFinishedError:
            raise _closed() from None
        return ended

    def soon(self, function: Callable[[], object]) -> None:
        """Call a function in the loop. Does nothing once the loop has ended."""
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(function)

    def run(self, work: Callable[[], Awaitable[Returned]]) -> Returned:
        """Run a task, and wait for it. Ctrl-C cancels it.

        Raises:
            ConnectionClosed: The client was closed in the meantime.
            BaseException: Raised by the task.
        """
        scope = trio.CancelScope()
        ended: Future[Returned] | None = None
        try:
            ended = self.start(work, scope)
            return ended.result()
        finally:
            # Ctrl-C may come before `start` has returned; the task still runs.
            if ended is None or not ended.done():
                self.soon(scope.cancel)


@contextmanager
def trio_thread() -> Iterator[TrioThread]:
    """Run a trio loop in a separate thread while the block runs."""
    started: Future[TrioThread] = Future()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            thread = TrioThread(nursery)
            started.set_result(thread)
            await thread.stopped.wait()
            nursery.cancel_scope.cancel()

    # A daemon: a program that never closes the client can still end.
    thread = threading.Thread(target=trio.run, args=(main,), name="noizu-mcp client", daemon=True)
    thread.start()
    inner = started.result()
    try:
        yield inner
    finally:
        inner.soon(inner.stopped.set)
        thread.join()


class HeldInThread(AbstractContextManager[Returned]):
    """Enters and leaves a context manager of trio in one task of a thread.

    Not a generator: when it is dropped it would wait for its end, and in a forked process there is
    no thread for that.

    Args:
        thread: The thread of the task.
        manager: The context manager.
    """

    def __init__(self, thread: TrioThread, manager: AbstractAsyncContextManager[Returned]) -> None:
        self._thread = thread
        self._entered: Future[Returned] = Future()
        self._held = HeldManager(manager, self._entered)
        self._ended: Future[None]

    def __enter__(self) -> Returned:
        scope = trio.CancelScope()
        self._ended = self._thread.start(self._held.hold, scope)
        try:
            both: list[Future[Any]] = [self._entered, self._ended]
            wait(both, return_when=FIRST_COMPLETED)
        except BaseException:  # Ctrl-C
            self._thread.soon(scope.cancel)
            self._ended.result()
            raise
        if not self._entered.done():
            self._ended.result()
        return self._entered.result()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self._held.fail(error)
        self._thread.soon(self._held.leave.set)
        return self._held.end(self._ended, error)
