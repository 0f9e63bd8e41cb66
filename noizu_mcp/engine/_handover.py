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
    """Run trio code, and set its result or its exception in a future.

    Args:
        work: The coroutine function.
        scope: The scope around the code; the other side may cancel it.
        ended: The future.
        cancelled: Makes the exception for code that was cancelled from outside the scope.

    Raises:
        trio.Cancelled: A scope around this one is cancelled. Other exceptions go to the future.
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
    if isinstance(failure, StopIteration):  # asyncio futures do not accept it
        failure = RuntimeError(f"the trio code raised {failure!r}")
    ended.set_exception(failure)
    # The waiting task may be gone; asyncio would log an exception that is never retrieved.
    ended.exception()


class HeldManager(Generic[Returned]):
    """A context manager of trio that one trio task enters and exits for code elsewhere.

    Args:
        manager: The context manager.
        entered: The future of its value.

    Attributes:
        leave: A trio event that lets the task exit the manager.
    """

    def __init__(self, manager: AbstractAsyncContextManager[Returned], entered: Future) -> None:
        self.leave = trio.Event()
        self._manager = manager
        self._entered = entered
        self._failures: list[Exception] = []  # at most one

    async def hold(self) -> None:
        """Enter the manager, and exit it after `leave`, with the exception of the block."""
        async with self._manager as value:
            self._entered.set_result(value)
            await self.leave.wait()
            for failure in self._failures:
                raise failure

    def fail(self, error: BaseException | None) -> None:
        """Store the exception of the block, except cancellation and Ctrl-C."""
        if isinstance(error, Exception):
            self._failures.append(error)

    def end(self, ended: Future, error: BaseException | None) -> bool:
        """End the block like `__exit__`.

        Args:
            ended: The result of the task, which is complete.
            error: The exception of the block.

        Returns:
            True if the manager has swallowed the exception of the block.

        Raises:
            BaseException: Raised by the manager instead of `error`.
        """
        try:
            ended.result()
        except BaseException as raised:
            if raised is error:
                return False
            raise
        return bool(self._failures)
