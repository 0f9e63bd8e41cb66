"""trio as the guest of an asyncio loop: both run in the thread of the asyncio program.

Theory of operation. `trio.lowlevel.start_guest_run` makes the asyncio loop call the trio loop in
turns; only its wait for I/O is in another thread, and only while no trio task can run. A thread has
one trio loop at most, so all users of an asyncio loop share one guest: it starts with the first and
ends with the last of them. Where the asyncio loop is itself driven by a trio loop (`_own_loop.py`),
that trio loop is used.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Generic

import trio

from ..._errors import ConnectionClosed
from ..._groups import unwrap_single
from ..._util import Returned
from .._handover import HeldManager
from ._crossing import LOOP, TrioSide
from ._own_loop import SteppedLoop


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
        """Start the trio loop, or take the running one.

        Raises:
            RuntimeError: It cannot run while this code runs.
        """
        if trio.lowlevel.in_trio_task():
            raise RuntimeError(
                "asyncio.run inside of a trio task stops the trio loop: write"
                " await noizu_mcp.aio.run(function) instead"
            )
        if trio.lowlevel.in_trio_run():
            ended = trio.Event()
            if isinstance(self._loop, SteppedLoop):
                self._loop.guest_ended = ended
            name = "noizu_mcp for asyncio tasks"
            trio.lowlevel.spawn_system_task(self._main_of_other, ended, name=name)
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

    async def _main_of_other(self, ended: trio.Event) -> None:
        try:
            await self._main()
        finally:
            del _GUESTS[self._loop]
            self.ended.set_result(None)
            ended.set()

    def _end(self, outcome: Any) -> None:
        del _GUESTS[self._loop]
        # Only an `outcome.Error` has one: Ctrl-C, for example. The last user raises it.
        error = getattr(outcome, "error", None)
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(unwrap_single(error))

    def check(self) -> None:
        """Check that the caller can run trio code; see `TrioSide`.

        Raises:
            ConnectionClosed: The trio loop has ended.
        """
        if self._stop.is_set() or self.ended.done():
            raise ConnectionClosed("the block of the client or of the application has ended")
        super().check()

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start a trio task; see `TrioSide`."""
        self._nursery.start_soon(work)


#: The guest of each loop that has one.
_GUESTS: Final[dict[asyncio.AbstractEventLoop, _Guest]] = {}


class _GuestUse:
    """One use of the guest of the running asyncio loop; see `trio_side`."""

    # No async generator, here and below: at its end asyncio closes all of them side by side, while
    # the one of a caller closes those that it waits for.

    async def __aenter__(self) -> TrioSide:
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
        self._guest = guest
        try:
            await asyncio.wait([guest.ready, guest.ended], return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await self.__aexit__()
            raise
        return guest

    async def __aexit__(self, *_: object) -> None:
        guest = self._guest
        guest.users -= 1
        if not guest.users:
            guest.stop()
            await _wait_for_end(guest.ended)
            guest.ended.result()


def trio_side() -> AbstractAsyncContextManager[TrioSide]:
    """Have a trio loop beside the running asyncio loop while the block runs.

    Raises:
        RuntimeError: The asyncio loop runs inside of a trio task; when the block is entered.
    """
    return _GuestUse()


class _TrioBlock(Generic[Returned]):
    """A context manager of trio in an asyncio task; see `enter_trio`."""

    def __init__(self, side: TrioSide, manager: AbstractAsyncContextManager[Returned]) -> None:
        self._side = side
        self._manager = manager
        self._held: HeldManager[Returned]
        self._holding: asyncio.Task[None]

    async def __aenter__(self) -> Returned:
        self._side.check()
        entered: asyncio.Future[Returned] = asyncio.get_running_loop().create_future()
        self._held = HeldManager(self._manager, entered)
        self._holding = holding = asyncio.ensure_future(self._side.run_trio(self._held.hold))
        try:
            both: list[asyncio.Future[Any]] = [entered, holding]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            holding.cancel()
            await asyncio.wait([holding])
            raise
        if not entered.done():
            await holding
        self._interruption = _Interruption(holding, self._held.leave)
        return entered.result()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self._held.fail(error)
        self._held.leave.set()
        if isinstance(error, GeneratorExit):  # no task waits for the end of the block
            self._holding.add_done_callback(_retrieve)
            return False
        await _wait_for_end(self._holding)
        self._interruption.take_back()
        return self._held.end(self._holding, error)


def enter_trio(
    side: TrioSide, manager: AbstractAsyncContextManager[Returned]
) -> AbstractAsyncContextManager[Returned]:
    """Enter and leave a context manager of trio from asyncio tasks, as `async with` does.

    One trio task enters and leaves it. If that task fails in between, the asyncio task that
    entered the block is cancelled, and the block raises the failure.

    Args:
        side: Runs trio code.
        manager: The context manager.

    Raises:
        BaseException: Raised by the manager.
    """
    return _TrioBlock(side, manager)


def _retrieve(task: "asyncio.Task[None]") -> None:
    """Retrieve the exception of a task that is never awaited: asyncio would log it."""
    if not task.cancelled():
        task.exception()


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
        """Let the task go on: an exception informs it."""
        if self._owner is not None and self._happened:
            self._owner.uncancel()


async def _wait_for_end(future: "asyncio.Future[Any]") -> None:
    """Wait for code of the trio side to end, also when the caller is cancelled, once."""
    try:
        await asyncio.wait([future])
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise
