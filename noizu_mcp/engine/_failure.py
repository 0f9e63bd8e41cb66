"""Failures: one failure is one exception, and user code may raise anything.

trio raises `Cancelled` in a task only while a scope around it is cancelled, and that scope stays
cancelled. A `Cancelled` outside of any cancelled scope is therefore stray: it was caught, stored,
and raised later. No scope would catch it, so it would silently end every task around it, and
`trio.run` itself. It is a failure of the code that raised it.

Some exceptions belong to the runtime and pass through every handler: `GeneratorExit`, with which
Python closes a coroutine, `Cancelled`, with which trio ends a cancelled scope, and
`KeyboardInterrupt`, raised in the main thread by Ctrl-C. If a handler raises them itself, nothing
outside expects them: they would end the connection, or the process. Such an exception is replaced
here by a `RuntimeError`, before a nursery or a scope can swallow it.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
)
from types import TracebackType
from typing import Final, Self

import trio

from .._groups import leaves
from .._log import ThrottledLog, throttled_log
from .._util import Returned

#: Exceptions that pass through code without being its failure. If they were swallowed, a cancelled
#: task or a closed coroutine would stay alive.
_PASSING: Final = (trio.Cancelled, KeyboardInterrupt, GeneratorExit)
#: Without `Cancelled`, which is stray outside of cancelled scopes.
_PASSING_UNCANCELLED: Final = (KeyboardInterrupt, GeneratorExit)


def is_being_cancelled() -> bool:
    """Tell whether a scope around the calling task is cancelled; then `Cancelled` must pass.

    True also without a running loop: a coroutine is being closed, and there are no scopes.
    """
    try:
        # trio gives a cancelled scope this effective deadline, and respects shields.
        return trio.current_effective_deadline() == -math.inf
    except RuntimeError:
        return True


def _passing() -> tuple[type[BaseException], ...]:
    return _PASSING if is_being_cancelled() else _PASSING_UNCANCELLED


def is_crash(error: BaseException) -> bool:
    """Distinguish a failure of the author's code from an exception that must pass, or its group.

    `SystemExit` counts as a failure: one handler must not end the sessions of others. So does a
    stray `Cancelled`. Call it in the task in which the error was raised.
    """
    # By far the most frequent case, decided without checking the scopes.
    if isinstance(error, Exception) and not isinstance(error, BaseExceptionGroup):
        return True
    passing = _passing()
    if isinstance(error, BaseExceptionGroup):
        # One member that must pass is enough, at any depth: a group with it must not be swallowed.
        return error.subgroup(passing) is None
    return not isinstance(error, passing)


def split_cancellation(error: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """Split an exception into the failure and the part that must pass.

    If a handler is cancelled while one of its tasks fails, both are raised in one group.

    Returns:
        The failure, and the part that must pass; one of them may be None.
    """
    passing = _passing()
    if isinstance(error, BaseExceptionGroup):
        going_on, crash = error.split(passing)
        return crash, going_on
    return (None, error) if isinstance(error, passing) else (error, None)


class KeptFailure:
    """A block whose failure is stored. Cancellation and the like pass.

    Attributes:
        error: The failure of the block, or None. If a block was cancelled and failed, the failure
            is stored here, and the cancellation is raised.
    """

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> bool:
        if error is None:
            return False
        self.error, going_on = split_cancellation(error)
        if self.error is None:
            return False
        if going_on is not None:
            # Raised alone: the failure that came with it is stored.
            raise going_on from None
        return True


def crashes_logged(
    text: str, *args: object, log: ThrottledLog = throttled_log
) -> AbstractContextManager[object]:
    """Log a failure of the author's code, so that it ends only the block.

    Cancellation and other exceptions of the runtime pass.

    Args:
        text: A format string that names the failed code, for the log.
        args: Arguments of the format string.
        log: The log; a server passes its own.
    """
    return _CrashLog(text, args, log)


class _CrashLog(KeptFailure):
    """The block of `crashes_logged`; a generator would take a microsecond more per request."""

    __slots__ = ("_args", "_log", "_text")

    def __init__(self, text: str, args: tuple[object, ...], log: ThrottledLog) -> None:
        super().__init__()
        self._text = text
        self._args = args
        self._log = log

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            return False
        try:
            return super().__exit__(kind, error, traceback)
        finally:
            if self.error is not None:
                # Not by the args, such as the URI of a resource: a peer may have chosen them.
                self._log.crash(self._text, self._text, *self._args, error=self.error)
                self.error = None  # it refers to the frames that hold this object


# Running user code


#: Exceptions of the runtime, which are no failures by themselves.
Uncatchable = tuple[type[BaseException], ...]

#: Sync code in the loop has no checkpoint that could raise `Cancelled`, and is never closed.
_NEVER_AT_ONCE: Final[Uncatchable] = (GeneratorExit, trio.Cancelled)
#: Signals reach only the main thread. `Cancelled` may be raised in a thread: by `trio.from_thread`,
#: once the task is cancelled.
_NEVER_IN_A_THREAD: Final[Uncatchable] = (KeyboardInterrupt,)


async def run_user_code(work: Awaitable[Returned]) -> Returned:
    """Await the author's code.

    Raises:
        RuntimeError: The code raised `GeneratorExit`, and this coroutine is not being closed; or
            `Cancelled`, and no scope around it is cancelled.
        BaseException: Any other exception of the code.
    """
    # Stored before the work: an exception that closes the coroutine arrives in another task, or
    # after the loop has ended.
    task = trio.lowlevel.current_task()
    try:
        return await work
    except BaseException as error:
        if isinstance(error, RuntimeError | TypeError | BaseExceptionGroup):
            _explain(error)
        # A coroutine is closed from outside of its task; then every exception may pass.
        if _is_running(task):
            _refuse(error, (GeneratorExit,) if is_being_cancelled() else _NEVER_AT_ONCE)
        raise


_CALLS_ASYNCIO: Final = (
    'The code calls asyncio, and runs on trio: write loop="asyncio" in the options of the handler'
    " or of its server, or call it with `await noizu_mcp.aio.run(function, …)`."
)
_CALLS_TRIO: Final = (
    'The code calls trio where no trio task runs: in a handler with loop="asyncio" use asyncio, or'
    ' write loop="trio".'
)
#: Texts of the errors that a loop raises for code of the other one.
_WRONG_LOOP: Final = {
    "no running event loop": _CALLS_ASYNCIO,
    "There is no current event loop": _CALLS_ASYNCIO,
    "trio.run received unrecognized yield message": _CALLS_ASYNCIO,
    "imeout should be used inside a task": _CALLS_ASYNCIO,  # of asyncio, and of async-timeout
    "imeout context manager should be used inside a task": _CALLS_ASYNCIO,
    "must be called from async context": _CALLS_TRIO,
    "Task got bad yield: <class 'trio.": _CALLS_TRIO,
    "Task got bad yield: WaitTaskRescheduled": _CALLS_TRIO,
}


def _explain(error: BaseException) -> None:
    """Add advice to errors that come from code for the other loop, for their tracebacks."""
    for each in leaves(error):
        text = str(each)
        for part, cure in _WRONG_LOOP.items():
            # An error may be processed more than once.
            if part in text and cure not in getattr(each, "__notes__", ()):
                each.add_note(cure)


def check_on_trio(name: str, cure: str) -> None:
    """Check that a public function for trio programs is called in a trio task.

    Args:
        name: The name of the function.
        cure: The text that says what to write instead.

    Raises:
        RuntimeError: The caller is not a trio task.
    """
    if not trio.lowlevel.in_trio_task():
        raise RuntimeError(f"{name} is for trio programs, and no trio task runs here; {cure}")


@asynccontextmanager
async def enter_user_code(
    manager: AbstractAsyncContextManager[Returned],
) -> AsyncIterator[Returned]:
    """Enter and leave the author's context manager, as `async with` does.

    Args:
        manager: The context manager.

    Raises:
        RuntimeError: It raised `GeneratorExit` or `Cancelled` by itself; see `run_user_code`.
        BaseException: Any other exception of the manager.
    """
    # Not `async with`: only the exceptions of the manager itself are checked. An exception of the
    # block may be a `Cancelled` that must pass unchanged.
    value = await run_user_code(manager.__aenter__())
    try:
        yield value
    except BaseException as error:
        if not await run_user_code(manager.__aexit__(type(error), error, error.__traceback__)):
            raise
    else:
        await run_user_code(manager.__aexit__(None, None, None))


def call_user_code(work: Callable[[], Returned]) -> Returned:
    """Call the author's code in the loop, where it cannot wait and cannot be cancelled.

    Raises:
        RuntimeError: The code raised `GeneratorExit` or `Cancelled`.
        BaseException: Any other exception of the code.
    """
    try:
        return work()
    except BaseException as error:
        _refuse(error, _NEVER_AT_ONCE)
        raise


def call_in_thread(work: Callable[[], Returned]) -> Returned:
    """Call the author's code in a worker thread. Ctrl-C reaches only the main thread.

    Raises:
        RuntimeError: The code raised `KeyboardInterrupt`.
        BaseException: Any other exception of the code.
    """
    try:
        return work()
    except BaseException as error:
        _refuse(error, _NEVER_IN_A_THREAD)
        raise


def _refuse(error: BaseException, never: Uncatchable) -> None:
    """Raise an error without some exceptions; `RuntimeError` if nothing is left."""
    if isinstance(error, BaseExceptionGroup):
        found, others = error.split(never)
        if found is None:
            return
        if others is not None:
            raise others from None  # a cancellation among them passes
        error = found
    elif not isinstance(error, never):
        return
    # `RuntimeError` is an ordinary failure: it is logged, and affects only this request.
    kinds = {type(each).__name__ for each in leaves(error)}
    raise RuntimeError(f"the handler raised {' and '.join(sorted(kinds))}") from error


def _is_running(task: trio.lowlevel.Task) -> bool:
    """Tell whether the task is running; coroutines are closed from outside of it."""
    try:
        return trio.lowlevel.current_task() is task
    except RuntimeError:  # the loop is gone
        return False
