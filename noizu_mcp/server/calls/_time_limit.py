"""Timeouts of calls within a request: a handler calls a tool, an override calls the default.

A request has one deadline, which the engine keeps. A call within the request has a timeout of its
own as well, and the earlier one counts. All of them stop while the client is asked: a person who
thinks for a minute must not use up the seconds of a handler.
"""

import math
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import trio

from ..._util import Unset
from ...engine import is_crash, unwrap_single
from ._concurrency_limit import current_slot

if TYPE_CHECKING:
    from .._server import Server

Result = TypeVar("Result")


class Timed(Protocol):
    """A component that may have a timeout of its own."""

    @property
    def timeout(self) -> float | Unset | None:
        """Seconds; None for no limit, UNSET for the server's."""


class Clock(Protocol):
    """Something with a deadline: a request or a task."""

    def stop_clock(self) -> None:
        """Stop the clock of the deadline, until `resume_clock`."""

    def resume_clock(self) -> None:
        """Resume the clock with the time that was left."""


class OutOfTime(Exception):
    """The timeout of a call within a request: the call was cancelled."""


class _Clock:
    """The timeout of one call.

    Args:
        seconds: The timeout.
        outer: The clock of the enclosing call; None if there is none.

    Attributes:
        scope: The cancel scope of the call.
        outer: See Args.
    """

    __slots__ = ("_left", "_waiting", "outer", "scope")

    def __init__(self, seconds: float, outer: "_Clock | None") -> None:
        self.scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        self.outer = outer
        self._waiting = 0  # several tasks of one handler may ask at once
        self._left = math.inf

    def stop(self) -> None:
        """Stop the clock, until each `stop` has its `resume`."""
        if self._waiting == 0:
            # Once it has passed, the rest is negative: the call then ends at `resume`, as it would
            # have.
            self._left = self.scope.deadline - trio.current_time()
            self.scope.deadline = math.inf
        self._waiting += 1

    def resume(self) -> None:
        """Resume the clock with the time that was left."""
        self._waiting -= 1
        if self._waiting == 0:
            self.scope.deadline = trio.current_time() + self._left

    def stop_all(self) -> None:
        """Stop this clock and those of the enclosing calls."""
        for clock in self._chain():
            clock.stop()

    def resume_all(self) -> None:
        """Resume this clock and those of the enclosing calls."""
        for clock in self._chain():
            clock.resume()

    def _chain(self) -> "Iterator[_Clock]":
        clock: _Clock | None = self
        while clock is not None:
            yield clock
            clock = clock.outer


# Context variables: a child task inherits the clocks of the call that started it, so a question
# from there stops them too; a sibling call has clocks of its own, which go on.
_CURRENT: Final[ContextVar[_Clock | None]] = ContextVar("clock", default=None)
_IN_TASK: Final[ContextVar[bool]] = ContextVar("in_task", default=False)


def enter_task() -> None:
    """Note that a task of the extension runs here: the server's timeout does not apply."""
    _IN_TASK.set(True)
    # Inherited from the request that began the task; stopping it would reach into another request.
    _CURRENT.set(None)


async def in_time(server: "Server", spec: Timed, work: Callable[[], Awaitable[Result]]) -> Result:
    """Run a call within a request, within the timeout of its component.

    Args:
        server: The server; its timeout is the default.
        spec: The component.
        work: The work.

    Raises:
        OutOfTime: The time is over. Errors that the work raised while it was cancelled go to the
            log.
    """
    timeout = spec.timeout
    if isinstance(timeout, Unset):
        timeout = None if _IN_TASK.get() else server.options.tool_timeout
    if timeout is None:
        return await work()
    clock = _Clock(timeout, _CURRENT.get())
    token = _CURRENT.set(clock)
    try:
        with clock.scope:
            return await work()
    except BaseException as error:
        # A scope takes its `Cancelled` out of a group and lets the rest pass. The call is over by
        # its timeout all the same: the rest goes to the log, and the caller gets one exception.
        if not (clock.scope.cancelled_caught and is_crash(error)):
            raise
        text = "a call that ran out of time failed"
        server.crash_log.crash(text, text, error=unwrap_single(error))
    finally:
        _CURRENT.reset(token)
    raise OutOfTime


class Pause:
    """Stops the clocks of one handler, and gives its slot back, while its client is asked.

    Args:
        clock: The deadline of its request or task.

    Attributes:
        waiting: The number of reasons to wait; most are questions.
    """

    __slots__ = ("_clock", "waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.waiting = 0

    def begin(self) -> None:
        """Stop the clock, until each `begin` has its `end`."""
        # Counted, not a flag: several tasks of one handler may ask at once, and the clock resumes
        # with the last answer only.
        if self.waiting == 0:
            self._clock.stop_clock()
        self.waiting += 1

    def end(self) -> None:
        """Let the clock go on after the last reason to wait."""
        self.waiting -= 1
        if self.waiting == 0:
            self._clock.resume_clock()

    async def around(self, wait: Callable[[], Awaitable[Result]]) -> Result:
        """Wait for an answer: a person who thinks must not use up the time of the handler."""
        # The order matters: the clocks resume before the slot is taken again. The second wait for a
        # slot is time of the call, as the first one was.
        slot = current_slot()
        if slot is not None:
            slot.ask()
        try:
            self.begin()
            clock = _CURRENT.get()
            if clock is not None:
                clock.stop_all()
            try:
                return await wait()
            finally:
                # The same clocks, whatever the wait did to the variable.
                if clock is not None:
                    clock.resume_all()
                self.end()
        finally:
            if slot is not None:
                await slot.answered()
