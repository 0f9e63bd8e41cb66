"""Calls between the two loops of a thread: asyncio code for trio tasks, and the other way round.

Theory of operation. An `AsyncioCall` is one call of asyncio code from a trio task, for example of a
handler. It owns one asyncio task, and the trio task sleeps until that has ended. Meanwhile code of
the asyncio task may call trio code with `run_trio`: that runs in a child of the waiting trio
task, in a nursery which is opened with the first such call. So everything that the asyncio code
does lies within the cancel scopes of its caller, and ends with it.

Cancellation goes both ways, and is waited for. A cancelled trio task cancels the asyncio task once,
as asyncio does it, and not at every await: cleanup code of asyncio libraries relies on that. A
cancelled asyncio task cancels the scope of its trio code. Exceptions are raised as they are where
the other side waits. Context variables have the values of the caller.

Both loops run in one thread, so no lock is needed, and nothing is handed over between threads.
"""

import abc
import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final

import trio

from ..._groups import single_failure
from ..._util import Returned
from .._failure import KeptFailure
from .._handover import settle
from ._own_loop import OwnLoop, SteppedLoop

#: The asyncio loop that the tasks of a trio loop use.
LOOP: Final = trio.lowlevel.RunVar[asyncio.AbstractEventLoop]("noizu_mcp.aio")
#: Turns that a guest of an asyncio loop gives to short asyncio code before it sleeps. When nothing
#: is left to do, the guest waits in another thread, and to come back costs 100 µs.
SHORT: Final = 3
#: The marker of a context variable without a value.
_MISSING: Final = object()


def loop_of_this_run() -> asyncio.AbstractEventLoop:
    """Return the asyncio loop of the running trio loop; made when it is first asked for."""
    try:
        return LOOP.get()
    except LookupError:
        own = OwnLoop()
        trio.lowlevel.spawn_system_task(own.run, name="noizu_mcp asyncio loop")
        LOOP.set(own.loop)
        return own.loop


async def run_asyncio(work: Callable[[], Awaitable[Returned]]) -> Returned:
    """Run asyncio code from a trio task, and wait for it.

    Context variables that it sets are set for the caller, as after an `await`.

    Args:
        work: The coroutine function.

    Raises:
        BaseException: Raised by the code.
    """
    call = AsyncioCall()
    try:
        return await call.run(work)
    finally:
        call.take_variables()


def from_asyncio(
    function: Callable[..., Awaitable[Returned]],
) -> Callable[..., Awaitable[Returned]]:
    """Make a coroutine function of asyncio callable from trio tasks."""

    def crossed(*args: object) -> Awaitable[Returned]:
        return AsyncioCall().run(partial(function, *args))

    return crossed


class TrioSide(abc.ABC):
    """Runs trio code for tasks of an asyncio loop of the same thread.

    Args:
        loop: The asyncio loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    @abc.abstractmethod
    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start a trio task, which sees the context variables of the caller.

        Raises:
            RuntimeError: It is too late.
        """

    def check(self) -> None:
        """Check that the caller can run trio code.

        Raises:
            RuntimeError: Another loop runs here, or none.
        """
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if not is_here:
            raise RuntimeError(
                "this object belongs to an asyncio loop that does not run here: use it in tasks of"
                " that loop; in another thread call `asyncio.run_coroutine_threadsafe`, or open a"
                " SyncClient"
            )

    async def run_trio(self, work: Callable[[], Awaitable[Returned]]) -> Returned:
        """Run trio code from an asyncio task, and wait for it.

        A cancellation is waited for, too; a second one is not: the code may shield itself.

        Args:
            work: The coroutine function; it sees the context variables of the caller.

        Raises:
            ConnectionClosed: The trio side has ended.
            RuntimeError: It ends meanwhile, or this is not its loop.
            BaseException: Raised by the code.
        """
        self.check()
        scope = trio.CancelScope()
        ended: asyncio.Future[Any] = self._loop.create_future()
        self.start(partial(settle, work, scope, ended, _was_cancelled))
        try:
            # Not awaited itself: a cancellation would cancel it, and it belongs to the other side.
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            scope.cancel()
            await asyncio.wait([ended])
            raise
        result: Returned = ended.result()
        return result


def _was_cancelled() -> Exception:
    return RuntimeError("the trio code was cancelled: its server has ended")


class AsyncioCall(TrioSide):
    """One call of asyncio code from the trio task that makes this object.

    It runs trio code for the asyncio code, for as long as that runs.
    """

    def __init__(self) -> None:
        super().__init__(loop_of_this_run())
        self._turns = 0 if isinstance(self._loop, SteppedLoop) else SHORT
        self._context = contextvars.copy_context()
        self._sleeper: trio.lowlevel.Task | None = None
        self._nursery: trio.Nursery | None = None
        self._begun: list[Callable[[trio.Nursery], None]] = []  # until there is a nursery
        self._raise_cancel: Callable[[], Any] | None = None  # once the trio task is cancelled
        self._task: asyncio.Task[None]
        self._value: Any = None
        self._error: BaseException | None = None

    async def run(self, work: Callable[[], Awaitable[Returned]]) -> Returned:
        """Run asyncio code, and wait for it; once.

        Args:
            work: The coroutine function.

        Raises:
            BaseException: Raised by the code.
        """
        coroutine = self._captured(work)
        # Not `create_task`: a factory of the host may start tasks at once, inside of the trio task.
        self._task = task = asyncio.Task(coroutine, loop=self._loop, context=self._context)
        task.add_done_callback(self._wake)
        for _ in range(self._turns):
            if not task.done() and not self._begun:
                await trio.lowlevel.cancel_shielded_checkpoint()
        if not task.done() and not self._begun:
            await self._sleep()
        if not task.done():  # woken by the first call of trio code
            async with trio.open_nursery() as self._nursery:
                for begin in self._begun:
                    begin(self._nursery)
                while not task.done():
                    await self._sleep()
                # Trio code that is left: the asyncio task that waited for it has outlived the call.
                self._nursery.cancel_scope.cancel()
        if task.cancelled():
            if self._raise_cancel is not None:
                self._raise_cancel()
            raise asyncio.CancelledError
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it refers to this frame
        result: Returned = self._value
        return result

    def take_variables(self) -> None:
        """Set the context variables of the asyncio code for the calling task."""
        for variable, value in self._context.items():
            if variable.get(_MISSING) is not value:
                variable.set(value)

    async def _captured(self, work: Callable[[], Awaitable[Any]]) -> None:
        try:
            self._value = await work()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - `run` raises it; SystemExit would end the loop
            self._error = error

    async def _sleep(self) -> None:
        """Wait until the asyncio task has ended, or calls trio code for the first time."""
        self._sleeper = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
        # Called again for each wait of a cancelled task.
        if self._raise_cancel is None:
            self._raise_cancel = raise_cancel
            self._task.cancel()
        return trio.lowlevel.Abort.FAILED

    def _wake(self, _: object = None) -> None:
        if self._sleeper is not None:
            sleeper, self._sleeper = self._sleeper, None
            trio.lowlevel.reschedule(sleeper)

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start a child of the waiting trio task; see `TrioSide`."""
        if self._task.done():
            raise RuntimeError("the handler has ended; its tasks can no longer use its context")
        context = contextvars.copy_context()

        def begin(nursery: trio.Nursery) -> None:
            context.run(nursery.start_soon, work)

        if self._nursery is None:
            self._begun.append(begin)
            self._wake()
        else:
            begin(self._nursery)


@asynccontextmanager
async def enter_asyncio(manager: AbstractAsyncContextManager[Returned]) -> AsyncIterator[Returned]:
    """Enter and leave a context manager of asyncio from a trio task, as `async with` does.

    One asyncio task enters and leaves it. If that task fails in between, the block is cancelled.

    Args:
        manager: The context manager.

    Raises:
        BaseException: Raised by the manager.
    """
    call = AsyncioCall()
    entered = trio.Event()
    values: list[Returned] = []
    leave: asyncio.Future[None] = loop_of_this_run().create_future()
    # Until the block has ended: what it does when it is cancelled may need the manager.
    shield = trio.CancelScope(shield=True)

    async def hold() -> None:
        async with manager as value:
            values.append(value)
            entered.set()
            await leave  # raises the failure of the block

    async def held() -> None:
        with shield:
            await call.run(hold)

    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(held)
            try:
                await entered.wait()
            except trio.Cancelled:
                shield.shield = False
                raise
            call.take_variables()
            kept = KeptFailure()
            try:
                with kept:
                    yield values[0]
            except BaseException:
                shield.shield = False
                raise
            finally:
                if kept.error is not None:
                    leave.set_exception(kept.error)  # raised by the manager
            if kept.error is None:
                leave.set_result(None)
