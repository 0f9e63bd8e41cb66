"""trio as the guest of an asyncio loop: both run in the thread of the asyncio program.

Theory of operation. `trio.lowlevel.start_guest_run` makes the asyncio loop call the trio loop in
turns; only its wait for I/O is in another thread, and only while no trio task can run. A thread has
one trio loop at most, so all users of an asyncio loop share one guest: it starts with the first and
ends with the last of them. Where the asyncio loop is itself driven by a trio loop (`_own_loop.py`),
that trio loop is used.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeVar

import trio

from .._failure import unwrap_single
from ._crossing import LOOP, TrioSide

Result = TypeVar("Result")


class _Guest(TrioSide):
    """A trio loop that serves the tasks of one asyncio loop.

    Args:
        loop: The asyncio loop, which runs in this thread.

    Attributes:
        users: The number of users; with the last one it ends.
        ready: Done once it serves.
        ended: Done once the trio loop has ended.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.users = 0
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._stop = trio.Event()
        self._nursery: trio.Nursery

    def open(self) -> None:
        """Start the trio loop, or take the one that runs already.

        Raises:
            RuntimeError: It cannot run while this code runs.
        """
        if trio.lowlevel.in_trio_task():
            raise RuntimeError(
                "asyncio.run inside of a trio task stops the trio loop: write"
                " await noizu_mcp.aio.run(function) instead"
            )
        if trio.lowlevel.in_trio_run():
            task = self._main_of_other
            trio.lowlevel.spawn_system_task(task, name="noizu_mcp for asyncio tasks")
            return
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=self._loop.call_soon,
            done_callback=self._end,
            # The wake-up descriptor of signals belongs to the asyncio loop.
            host_uses_signal_set_wakeup_fd=True,
        )

    def stop(self) -> None:
        """End the trio loop in order, or leave that of somebody else; `ended` tells when."""
        self._stop.set()

    async def _main(self) -> None:
        LOOP.set(self._loop)
        async with trio.open_nursery() as self._nursery:
            self.ready.set_result(None)
            await self._stop.wait()
            self._nursery.cancel_scope.cancel()

    async def _main_of_other(self) -> None:
        try:
            await self._main()
        finally:
            del _GUESTS[self._loop]
            self.ended.set_result(None)

    def _end(self, outcome: Any) -> None:
        del _GUESTS[self._loop]
        try:
            outcome.unwrap()
        except BaseException as error:  # noqa: BLE001 - Ctrl-C; the last user raises it
            self.ended.set_exception(unwrap_single(error))
        else:
            self.ended.set_result(None)

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start a trio task; see `TrioSide`."""
        if self._stop.is_set() or self.ended.done():
            raise RuntimeError("the trio side of this program has ended")
        self._nursery.start_soon(work)


#: The guest of each loop that has one.
_GUESTS: Final[dict[asyncio.AbstractEventLoop, _Guest]] = {}


@asynccontextmanager
async def trio_side() -> AsyncIterator[TrioSide]:
    """Have a trio loop beside the running asyncio loop while the block runs.

    Raises:
        RuntimeError: The asyncio loop runs inside of a trio task.
    """
    loop = asyncio.get_running_loop()
    while (guest := _GUESTS.get(loop)) is not None and not guest.users:
        await asyncio.wait([guest.ended])  # a thread has one trio loop at a time
    if guest is None:
        guest = _GUESTS[loop] = _Guest(loop)
        try:
            guest.open()
        except BaseException:
            del _GUESTS[loop]
            raise
    guest.users += 1
    try:
        await asyncio.wait([guest.ready, guest.ended], return_when=asyncio.FIRST_COMPLETED)
        yield guest
    finally:
        guest.users -= 1
        if not guest.users:
            guest.stop()
            await _wait_for_end(guest.ended)
            guest.ended.result()


@asynccontextmanager
async def enter_trio(
    side: TrioSide, manager: AbstractAsyncContextManager[Result]
) -> AsyncIterator[Result]:
    """Enter and leave a context manager of trio from asyncio tasks, as `async with` does.

    One trio task enters and leaves it. If that task fails in between, the asyncio task that
    entered the block is cancelled, and the block raises the failure.

    Args:
        side: Runs trio code.
        manager: The context manager.

    Raises:
        BaseException: Raised by the manager.
    """
    leave = trio.Event()
    failures: list[BaseException] = []
    entered: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        async with manager as value:
            entered.set_result(value)
            await leave.wait()
            for failure in failures:
                raise failure

    holding = asyncio.ensure_future(side.run_trio(hold))
    try:
        both: list[asyncio.Future[Any]] = [entered, holding]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        holding.cancel()
        await asyncio.wait([holding])
        raise
    if not entered.done():
        await holding
    interruption = _Interruption(holding, leave)
    left_with: BaseException | None = None
    try:
        yield entered.result()
    except GeneratorExit:  # nobody waits for the end of the block
        leave.set()
        raise
    except BaseException as error:  # noqa: BLE001 - raised below
        left_with = error
    if isinstance(left_with, Exception):
        failures.append(left_with)
    leave.set()
    await _wait_for_end(holding)
    interruption.take_back()
    # Raises the failure of the block, or what the manager has made of it.
    holding.result()
    if left_with is not None and not failures:  # a cancellation, or Ctrl-C
        raise left_with


class _Interruption:
    """Cancels the calling task when the trio side of its block ends too early.

    Args:
        holding: The trio side.
        leave: Set once the block has ended.
    """

    def __init__(self, holding: "asyncio.Task[None]", leave: trio.Event) -> None:
        self._owner = asyncio.current_task()
        self._leave = leave
        self._happened = False
        holding.add_done_callback(self._interrupt)

    def _interrupt(self, _: object) -> None:
        if self._owner is not None and not self._leave.is_set():
            self._happened = self._owner.cancel()

    def take_back(self) -> None:
        """Let the task go on: it is told by an exception."""
        if self._owner is not None and self._happened:
            self._owner.uncancel()


async def _wait_for_end(future: "asyncio.Future[Any]") -> None:
    """Wait for code of the trio side to end, also when the caller is cancelled, once."""
    try:
        await asyncio.wait([future])
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise
