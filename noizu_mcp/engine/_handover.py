"""Results of trio tasks for code of another thread or loop, and context managers entered for it.

A future carries the result: of `concurrent.futures` for a thread, of asyncio for its loop.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Protocol

import trio

from .._util import Returned
from ._failure import KeptFailure


class Future(Protocol):
    """The common part of the futures of threads and of asyncio."""

    def set_result(self, result: Any, /) -> None:
        """Set the result."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Set the failure."""

    def result(self) -> Any:
        """Return the result, or raise the failure."""

    def exception(self) -> BaseException | None:
        """Return the failure."""


async def settle(
    work: Callable[[], Awaitable[Any]],
    scope: trio.CancelScope,
    ended: Future,
    cancelled: Callable[[], Exception],
) -> None:
    """Run trio code, and hand its result or its failure to a future.

    Args:
        work: The coroutine function.
        scope: Surrounds the code; the other side may cancel it.
        ended: The future.
        cancelled: Makes the failure of code that was cancelled from around the scope.

    Raises:
        trio.Cancelled: A scope around this one is cancelled. Other failures go to the future.
    """
    value = None
    kept = KeptFailure()
    try:
        with kept, scope:
            value = await work()
    except BaseException:
        _fail(ended, kept.error or cancelled())
        raise
    if kept.error is None:
        ended.set_result(value)
    else:
        _fail(ended, kept.error)


def _fail(ended: Future, failure: BaseException) -> None:
    if isinstance(failure, StopIteration):  # no future of asyncio takes one
        failure = RuntimeError(f"the trio code raised {failure!r}")
    ended.set_exception(failure)
    # The waiting task may be gone; asyncio would log a failure that is never retrieved.
    ended.exception()


class HeldManager(Generic[Returned]):
    """A context manager of trio that one trio task enters and leaves for code elsewhere.

    Args:
        manager: The context manager.
        entered: The future of its value.

    Attributes:
        leave: An event of trio that lets the task leave the manager.
    """

    def __init__(self, manager: AbstractAsyncContextManager[Returned], entered: Future) -> None:
        self.leave = trio.Event()
        self._manager = manager
        self._entered = entered
        self._failures: list[Exception] = []  # one at most

    async def hold(self) -> None:
        """Enter the manager and leave it after `leave`, with the failure of the block."""
        async with self._manager as value:
            self._entered.set_result(value)
            await self.leave.wait()
            for failure in self._failures:
                raise failure

    def fail(self, error: BaseException | None) -> None:
        """Take the failure of the block, except a cancellation or Ctrl-C, which no manager sees."""
        if isinstance(error, Exception):
            self._failures.append(error)

    def end(self, ended: Future, error: BaseException | None) -> bool:
        """End the block as `__exit__` does.

        Args:
            ended: The result of the task, which is there.
            error: The exception of the block.

        Returns:
            True if the manager has swallowed the failure of the block.

        Raises:
            BaseException: Raised by the manager in place of `error`.
        """
        try:
            ended.result()
        except BaseException as raised:
            if raised is error:
                return False
            raise
        return bool(self._failures)
