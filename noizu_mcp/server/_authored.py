"""Awaiting the author's code, which may raise anything at all."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

Result = TypeVar("Result")

_TEXT: Final = "the handler raised GeneratorExit"


async def authored(work: Awaitable[Result]) -> Result:
    """Await the author's code.

    `GeneratorExit` is how Python closes a coroutine that nobody will resume, so it must pass
    wherever it comes from there. One that a handler raises by itself is a failure like any other.

    Raises:
        RuntimeError: The code raised `GeneratorExit`, and nobody closes this coroutine.
        BaseException: Whatever else the code raised.
    """
    task = trio.lowlevel.current_task()
    try:
        return await work
    except BaseException as error:
        _refuse_exit(error, task)
        raise


def at_once(work: Callable[[], Result]) -> Result:
    """Call the author's code, as `authored` awaits it.

    Raises:
        RuntimeError: The code raised `GeneratorExit`.
        BaseException: Whatever else the code raised.
    """
    try:
        return work()
    except GeneratorExit as error:
        raise RuntimeError(_TEXT) from error


def _refuse_exit(error: BaseException, task: trio.lowlevel.Task) -> None:
    found = isinstance(error, GeneratorExit)
    if isinstance(error, BaseExceptionGroup):
        exits, others = error.split(GeneratorExit)
        found = exits is not None
        if found and others is not None:
            raise others from None  # a cancellation among them goes on
    if found and _is_running(task):
        raise RuntimeError(_TEXT) from error


def _is_running(task: trio.lowlevel.Task) -> bool:
    """Tell whether the task goes on; what closes its coroutine stands outside of it."""
    try:
        return trio.lowlevel.current_task() is task
    except RuntimeError:  # the loop is gone
        return False
