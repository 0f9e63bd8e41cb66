"""trio as the guest of an asyncio loop: both run in the thread of the asyncio program.

Theory of operation. `trio.lowlevel.start_guest_run` makes the asyncio loop call the trio loop in
turns; only its wait for I/O is in another thread, and only while no trio task can run. A thread has
one trio loop at most, so all users of an asyncio loop share one guest: it starts with the first and
ends with the last of them. Where the asyncio loop is itself driven by a trio loop (`_own_loop.py`),
that trio loop is used.
"""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import trio

from .._failure import unwrap_single
from ._crossing import LOOP, TrioSide

Result = TypeVar("Result")


class _Guest:
    """A trio loop that serves the tasks of one asyncio loop.

    Args:
        loop: The asyncio loop, which runs in this thread.

    Attributes:
        side: Runs trio code.
        users: The number of users; with the last one it ends.
        ready: Done once it serves.
        ended: Done once the trio loop has ended.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.side = TrioSide(loop, self._start_task)
        self.users = 0
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._stop = trio.Event()
        self._nursery: trio.Nursery

    def start(self) -> None:
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
            self.ended.set_result(None)

    def _end(self, outcome: Any) -> None:
        try:
            outcome.unwrap()
        except BaseException as error:  # noqa: BLE001 - Ctrl-C; the last user raises it
            self.ended.set_exception(unwrap_single(error))
        else:
            self.ended.set_result(None)

    def _start_task(self, work: Callable[[], Awaitable[None]]) -> None:
        if self._stop.is_set() or self.ended.done():
            raise RuntimeError("the trio side of this program has ended")
        self._nursery.start_soon(work)


_GUESTS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Guest]] = WeakKeyDictionary()


@asynccontextmanager
async def trio_side() -> AsyncIterator[TrioSide]:
    """Have a trio loop beside the running asyncio loop while the block runs.

    Raises:
        RuntimeError: The asyncio loop runs inside of a trio task.
    """
    loop = asyncio.get_running_loop()
    while (guest := _GUESTS.get(loop)) is not None and not guest.users:
        await asyncio.wait([guest.ended])
        # A thread has one trio loop at a time.
        if _GUESTS.get(loop) is guest:
            del _GUESTS[loop]
    if guest is None:
        guest = _Guest(loop)
        guest.start()
        _GUESTS[loop] = guest
    guest.users += 1
    try:
        await asyncio.wait([guest.ready, guest.ended], return_when=asyncio.FIRST_COMPLETED)
        yield guest.side
    finally:
        guest.users -= 1
        if not guest.users:
            guest.stop()
            try:
                await asyncio.wait([guest.ended])
            except asyncio.CancelledError:
                # Waited for all the same: the code of a server must not end in the middle.
                await asyncio.wait([guest.ended])
                raise
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
            if failures:
                raise failures[0]

    holding = asyncio.ensure_future(side.run(hold))
    try:
        await asyncio.wait([entered, holding], return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        holding.cancel()
        await asyncio.wait([holding])
        raise
    if not entered.done():
        await holding
    owner = asyncio.current_task()
    interrupted = False

    def interrupt(_: object) -> None:
        nonlocal interrupted
        if not leave.is_set() and owner is not None:
            interrupted = owner.cancel()

    holding.add_done_callback(interrupt)
    failure: BaseException | None = None
    try:
        yield entered.result()
    except GeneratorExit:  # nobody waits for the end of the block
        leave.set()
        raise
    except BaseException as error:  # noqa: BLE001 - raised below
        failure = error
    if isinstance(failure, Exception):
        failures.append(failure)
    leave.set()
    try:
        await asyncio.wait([holding])
    except asyncio.CancelledError:
        # Waited for all the same; a second cancellation is not.
        await asyncio.wait([holding])
        raise
    if interrupted and owner is not None:
        owner.uncancel()
    # Raises the failure of the block, or what the manager has made of it.
    holding.result()
    if not interrupted and failure is not None and not isinstance(failure, Exception):
        raise failure
