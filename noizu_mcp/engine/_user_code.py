"""Running the author's code, which may raise anything at all.

Some exceptions belong to the machinery and pass through every handler: `GeneratorExit`, with which
Python closes a coroutine, `Cancelled`, with which trio ends a cancelled scope, and
`KeyboardInterrupt`, with which the main thread hears of Ctrl-C. A handler can raise them by itself,
too, and then nothing outside waits for them: they would end the connection, or the process. Such
an exception is replaced here by a `RuntimeError`, before a nursery or a scope can swallow it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

import trio

from ._failure import is_being_cancelled

Result = TypeVar("Result")

#: An exception of the machinery, by itself no failure.
Signals = tuple[type[BaseException], ...]

_NEVER_AT_ONCE: Final[Signals] = (GeneratorExit, trio.Cancelled)
_NEVER_IN_A_THREAD: Final[Signals] = (KeyboardInterrupt,)


async def run_user_code(work: Awaitable[Result]) -> Result:
    """Await the author's code.

    Raises:
        RuntimeError: The code raised `GeneratorExit`, and nobody closes this coroutine; or
            `Cancelled`, and no scope around it is cancelled.
        BaseException: Whatever else the code raised.
    """
    task = trio.lowlevel.current_task()
    try:
        return await work
    except BaseException as error:
        # What closes a coroutine stands outside of its task; then anything may pass.
        if _is_running(task):
            _refuse(error, (GeneratorExit,) if is_being_cancelled() else _NEVER_AT_ONCE)
        raise


@asynccontextmanager
async def enter_user_code(manager: AbstractAsyncContextManager[Result]) -> AsyncIterator[Result]:
    """Enter and leave the author's context manager, as `async with` does.

    Args:
        manager: The context manager.

    Raises:
        RuntimeError: It raised `GeneratorExit` or `Cancelled` by itself; see `authored`.
        BaseException: Whatever else it raised.
    """
    value = await run_user_code(manager.__aenter__())
    try:
        yield value
    except BaseException as error:
        if not await run_user_code(manager.__aexit__(type(error), error, error.__traceback__)):
            raise
    else:
        await run_user_code(manager.__aexit__(None, None, None))


def call_user_code(work: Callable[[], Result]) -> Result:
    """Call the author's code in the loop, where it cannot wait: nothing can be cancelled in it.

    Raises:
        RuntimeError: The code raised `GeneratorExit` or `Cancelled`.
        BaseException: Whatever else the code raised.
    """
    try:
        return work()
    except BaseException as error:
        _refuse(error, _NEVER_AT_ONCE)
        raise


def call_in_thread(work: Callable[[], Result]) -> Result:
    """Call the author's code in a worker thread; Ctrl-C reaches the main thread alone.

    Raises:
        RuntimeError: The code raised `KeyboardInterrupt`.
        BaseException: Whatever else the code raised.
    """
    try:
        return work()
    except BaseException as error:
        _refuse(error, _NEVER_IN_A_THREAD)
        raise


def _refuse(error: BaseException, never: Signals) -> None:
    """Raise what is left of an error without some exceptions, or `RuntimeError` in their place."""
    if isinstance(error, BaseExceptionGroup):
        found, others = error.split(never)
        if found is None:
            return
        if others is not None:
            raise others from None  # a cancellation among them goes on
        error = found
    elif not isinstance(error, never):
        return
    kinds = {type(each).__name__ for each in _leaves(error)}
    raise RuntimeError(f"the handler raised {' and '.join(sorted(kinds))}") from error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _is_running(task: trio.lowlevel.Task) -> bool:
    """Tell whether the task goes on; what closes its coroutine stands outside of it."""
    try:
        return trio.lowlevel.current_task() is task
    except RuntimeError:  # the loop is gone
        return False
