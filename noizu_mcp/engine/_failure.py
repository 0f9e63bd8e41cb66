"""Failures: one failure is one exception, and user code may raise anything at all.

trio raises `Cancelled` in a task only while a scope around it is cancelled, and that scope stays
cancelled. A `Cancelled` that arrives where no surrounding scope is cancelled is therefore stray:
somebody caught it, kept it, and raised it later. No scope would catch it, so it would end every
task around it, and `trio.run` itself, without a word. It is a failure of the code that raised it.

Some exceptions belong to the machinery and pass through every handler: `GeneratorExit`, with which
Python closes a coroutine, `Cancelled`, with which trio ends a cancelled scope, and
`KeyboardInterrupt`, with which the main thread hears of Ctrl-C. A handler can raise them by itself,
too, and then nothing outside waits for them: they would end the connection, or the process. Such
an exception is replaced here by a `RuntimeError`, before a nursery or a scope can swallow it.
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

#: Exceptions that pass through code without being its failure; swallowed, they would keep a
#: cancelled task or a closed coroutine alive.
_PASSING: Final = (trio.Cancelled, KeyboardInterrupt, GeneratorExit)
#: `Cancelled` is left out where no surrounding scope is cancelled: there it is stray.
_PASSING_UNCANCELLED: Final = (KeyboardInterrupt, GeneratorExit)


def is_being_cancelled() -> bool:
    """Tell whether a scope around the calling task is cancelled; `Cancelled` must go on then.

    True also where no loop runs: a coroutine is closed there, and nothing can be said about scopes.
    """
    try:
        # trio gives a cancelled scope this effective deadline, and takes shields into account.
        return trio.current_effective_deadline() == -math.inf
    except RuntimeError:
        return True


def _passing() -> tuple[type[BaseException], ...]:
    return _PASSING if is_being_cancelled() else _PASSING_UNCANCELLED


def is_crash(error: BaseException) -> bool:
    """Tell a failure of the author's code from an exception that must go on, alone or in a group.

    `SystemExit` counts as a failure: one handler must not end the sessions of the others. So does
    a stray `Cancelled`. Call it in the task that the error was raised in.
    """
    # By far the most frequent case, decided without a look at the scopes.
    if isinstance(error, Exception) and not isinstance(error, BaseExceptionGroup):
        return True
    passing = _passing()
    if isinstance(error, BaseExceptionGroup):
        # One member that must go on decides, at any depth: a group must not be swallowed with it.
        return error.subgroup(passing) is None
    return not isinstance(error, passing)


def split_cancellation(error: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """Split an exception into the failure and the part that must go on.

    A handler that is cancelled while a task of it fails raises both in one group.

    Returns:
        The failure, and the part that must go on; one of them may be None.
    """
    passing = _passing()
    if isinstance(error, BaseExceptionGroup):
        going_on, crash = error.split(passing)
        return crash, going_on
    return (None, error) if isinstance(error, passing) else (error, None)


class KeptFailure:
    """A block whose failure is kept; cancellation and the like go on.

    Attributes:
        error: The failure of the block, or None. After a block that was cancelled and failed, both:
            the failure is here, and the cancellation is raised.
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
            # It goes on by itself: the failure that came with it is kept.
            raise going_on from None
        return True


def crashes_logged(
    text: str, *args: object, log: ThrottledLog = throttled_log
) -> AbstractContextManager[object]:
    """Let a failure of the author's code end the block and nothing else: it goes to the log.

    Cancellation and the other exceptions of the machinery go on.

    Args:
        text: A format string that names the failed code, for the log.
        args: Arguments of the format string.
        log: The log; a server passes its own.
    """
    return _CrashLog(text, args, log)


class _CrashLog(KeptFailure):
    """The block of `crashes_logged`; a generator would cost each request a microsecond more."""

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
                # Not by the args: a peer may have chosen them, like the URI of a resource.
                self._log.crash(self._text, self._text, *self._args, error=self.error)
                self.error = None  # it refers to the frames that hold this object


# Running user code


#: Exceptions of the machinery; by themselves they are no failures.
Uncatchable = tuple[type[BaseException], ...]

#: Sync code in the loop has no checkpoint that could raise `Cancelled`, and is never closed.
_NEVER_AT_ONCE: Final[Uncatchable] = (GeneratorExit, trio.Cancelled)
#: Signals reach the main thread alone. `Cancelled` may come out of a thread: `trio.from_thread`
#: raises it there once the task is cancelled.
_NEVER_IN_A_THREAD: Final[Uncatchable] = (KeyboardInterrupt,)


async def run_user_code(work: Awaitable[Returned]) -> Returned:
    """Await the author's code.

    Raises:
        RuntimeError: The code raised `GeneratorExit`, and this coroutine is not being closed; or
            `Cancelled`, and no scope around it is cancelled.
        BaseException: Any other exception of the code.
    """
    # Asked before the work: an exception that closes the coroutine arrives in another task, or
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
    """Add the cure to errors that come from code of the other loop, for their tracebacks."""
    for each in leaves(error):
        text = str(each)
        for part, cure in _WRONG_LOOP.items():
            # An error may pass here more than once.
            if part in text and cure not in getattr(each, "__notes__", ()):
                each.add_note(cure)


def check_on_trio(name: str, cure: str) -> None:
    """Check that a public function for trio programs is called in a trio task.

    Args:
        name: The name of the function.
        cure: The text that says what to write instead.

    Raises:
        RuntimeError: It is not.
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
    # Written out, not `async with`: only the exceptions of the manager itself are checked. An
    # exception of the block may be a `Cancelled` that must pass unchanged.
    value = await run_user_code(manager.__aenter__())
    try:
        yield value
    except BaseException as error:
        if not await run_user_code(manager.__aexit__(type(error), error, error.__traceback__)):
            raise
    else:
        await run_user_code(manager.__aexit__(None, None, None))


def call_user_code(work: Callable[[], Returned]) -> Returned:
    """Call the author's code in the loop, where it cannot wait: nothing can be cancelled in it.

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
    """Call the author's code in a worker thread; Ctrl-C reaches the main thread alone.

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
    """Raise an error without some exceptions; raise `RuntimeError` if nothing else is left."""
    if isinstance(error, BaseExceptionGroup):
        found, others = error.split(never)
        if found is None:
            return
        if others is not None:
            raise others from None  # a cancellation among them goes on
        error = found
    elif not isinstance(error, never):
        return
    # `RuntimeError` is an ordinary failure: it is logged, and costs this request alone.
    kinds = {type(each).__name__ for each in leaves(error)}
    raise RuntimeError(f"the handler raised {' and '.join(sorted(kinds))}") from error


def _is_running(task: trio.lowlevel.Task) -> bool:
    """Tell whether the task is running; coroutines are closed from outside of it."""
    try:
        return trio.lowlevel.current_task() is task
    except RuntimeError:  # the loop is gone
        return False
