"""An asyncio loop in a thread that trio owns: trio lets it take steps.

Theory of operation. The loop never blocks: its selector only polls. When nothing is left to do it
says for how long, and `run_forever` returns. One step is a call of `run_forever`. Steps are taken
in a hook of trio, between two batches of trio's tasks, so no code of asyncio runs inside of a trio
task: a call of trio in it fails at once, with trio's own error, and can enter no cancel scope.

The hook is called in every turn of the trio loop, and takes a step if one is due. A system task
sees to it that trio has turns: it waits until a descriptor of the loop is ready (an epoll or kqueue
object is a descriptor itself), until the next timer, or until somebody outside of a step schedules
a callback; then a step is due, and the task gives trio one more turn. There is no thread and no
signal handler, and while asyncio has nothing to do it costs trio nothing.

A step ends after `TURNS` turns of the asyncio loop, also if more is to be done: neither of the two
loops can keep the other one waiting.
"""

import asyncio
import contextvars
import math
import selectors
import threading
from collections.abc import Callable
from typing import Final

import sniffio
import trio

from ..._log import throttled_log
from ..._util import Arguments

#: Turns of the asyncio loop in one step. A coroutine that is started, waits once and ends takes
#: three; each turn costs about 5 µs.
TURNS: Final = 8
#: Seconds that tasks get to end when the trio loop ends; then they are abandoned.
PATIENCE: Final = 5.0


class _Selector(selectors.DefaultSelector):
    """A selector that polls, and ends the step when there is nothing to wait for.

    Attributes:
        idle: Seconds until the next timer of the loop; None without a timer. 0 while the loop has
            something to do.
        turns: Turns that are left in this step.
        stop: Makes `run_forever` return after this turn.
    """

    idle: float | None = 0
    turns = 0
    stop: Callable[[], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; see `selectors.BaseSelector.select`."""
        events = super().select(0)
        self.turns -= 1
        self.idle = 0 if events else timeout
        if self.idle != 0 or self.turns <= 0:
            self.stop()
        return events


class SteppedLoop(asyncio.SelectorEventLoop):
    """An asyncio loop that tells when something is scheduled, on the clock of the trio loop.

    Args:
        selector: Polls the descriptors of the loop.
        notice: Called when something has been scheduled, also in another thread.

    Attributes:
        guest_ended: Set once no trio code runs for tasks of the loop; None if none ever ran.
    """

    guest_ended: trio.Event | None = None

    def __init__(self, selector: _Selector, notice: Callable[[], None]) -> None:
        super().__init__(selector)
        self._notice = notice
        # A clock that jumps in tests moves the timers of both loops.
        self._clock = trio.lowlevel.current_clock()

    def time(self) -> float:
        """Return the time of the trio loop."""
        return self._clock.current_time()

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a callback; see `asyncio.AbstractEventLoop.call_soon`."""
        handle = super().call_soon(callback, *args, context=context)
        self._notice()
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a callback; see `asyncio.AbstractEventLoop.call_at`."""
        # asyncio takes any object here, and then each of its turns would fail.
        handle = super().call_at(float(when), callback, *args, context=context)
        self._notice()
        return handle


class OwnLoop(trio.abc.Instrument):
    """The asyncio loop of one trio loop; made and run in that trio loop.

    Attributes:
        loop: The asyncio loop.
    """

    def __init__(self) -> None:
        self._selector = _Selector()
        self.loop = SteppedLoop(self._selector, self._notice)
        self._selector.stop = self.loop.stop
        self._thread = threading.get_ident()
        self._due = True
        self._stepping = False
        self._until = math.inf  # the timer that `_pace` waits for
        self._resting = trio.lowlevel.ParkingLot()  # `_pace`, while no step is due

    async def run(self) -> None:
        """Let the loop take steps until cancelled; then end its tasks, and close it."""
        trio.lowlevel.add_instrument(self)
        try:
            await self._keep_pace()
        finally:
            with trio.CancelScope(shield=True):
                await self._end()
            trio.lowlevel.remove_instrument(self)
            self.loop.close()

    async def _keep_pace(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            nursery.start_soon(self._pace)

    async def _watch(self) -> None:
        """Take a step whenever a descriptor of the loop is ready."""
        while True:
            await trio.lowlevel.wait_readable(self._selector.fileno())
            self._due = True
            # The step that reads it comes first: until then it stays ready.
            while self._due:
                await trio.lowlevel.checkpoint()

    async def _pace(self) -> None:
        """Give trio a turn whenever a step is due, and make one due with each timer."""
        while True:
            if self._due:
                await trio.lowlevel.checkpoint()
            elif self._selector.idle is None:
                self._until = math.inf
                await self._resting.park()
            else:
                self._until = trio.current_time() + self._selector.idle
                with trio.move_on_at(self._until) as timer:
                    await self._resting.park()
                self._due |= timer.cancelled_caught

    def _notice(self) -> None:
        if threading.get_ident() != self._thread:
            # A mistake that asyncio forgives; trio does not.
            self.loop.call_soon_threadsafe(_do_nothing)
            return
        # Also in the last turn of a step, after the selector has found nothing to do: timers run.
        self._selector.idle = 0
        if not self._stepping:
            self._due = True
            self._resting.unpark_all()

    def after_io_wait(self, _timeout: float) -> None:
        """Take a step if one is due; see `trio.abc.Instrument`."""
        if not self._due:
            return
        # For libraries that serve both, such as anyio. Without a name here they find asyncio.
        library, sniffio.thread_local.name = sniffio.thread_local.name, None
        # `trio.run` may itself be called in a callback of an asyncio loop, as in a notebook.
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self._stepping = True
        self._selector.turns = TURNS
        try:
            self.loop.run_forever()
        except BaseException as error:  # noqa: BLE001 - logged; trio removes a hook that raises
            # SystemExit of a task that has no waiter, for example. The loop goes on.
            throttled_log.crash("aio", "a task or callback of asyncio failed", error=error)
            self._selector.idle = 0
        finally:
            self._stepping = False
            asyncio._set_running_loop(outer)
            sniffio.thread_local.name = library
        self._due = self._selector.idle == 0
        idle = math.inf if self._selector.idle is None else self._selector.idle
        # Another turn is to be given, or a timer comes before the awaited one.
        if self._due or self.loop.time() + idle < self._until:
            self._resting.unpark_all()

    async def _end(self) -> None:
        """Cancel the tasks that are left, and let them end, as `asyncio.run` does."""
        ending = self.loop.create_task(self._end_tasks())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_pace)
            ended = trio.Event()
            ending.add_done_callback(lambda _: ended.set())
            if self.loop.guest_ended is not None:  # trio cancels it, too; tasks wait for its end
                await self.loop.guest_ended.wait()
            with trio.move_on_after(PATIENCE):
                await ended.wait()
            nursery.cancel_scope.cancel()

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
        await self.loop.shutdown_default_executor()


def _do_nothing() -> None:
    """Wake the loop."""
