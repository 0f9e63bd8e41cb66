"""Timeouts of calls within a request: nested tool calls, and overrides that call the default.

A request has one deadline, which the engine enforces. A call within the request has its own timeout
as well, and the earlier one ends it. All of them stop while the client is asked: a person who
thinks for a minute must not use up the time of a handler.
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
    from .._contracts import ServedServer

Result = TypeVar("Result")


class Timed(Protocol):
    """A component that may have its own timeout."""

    @property
    def timeout(self) -> float | Unset | None:
        """Seconds; None for no limit, UNSET for the server's timeout."""


class Clock(Protocol):
    """A request or a task, whose deadline can be stopped."""

    def stop_clock(self) -> None:
        """Stop the clock of the deadline, until `resume_clock`."""

    def resume_clock(self) -> None:
        """Resume the clock with the remaining time."""


class OutOfTime(Exception):
    """A call within a request timed out, and was cancelled."""


class _Clock:
    """The timeout of one call.

    Args:
        seconds: The timeout.
        outer: The clock of the enclosing call, if any.

    Attributes:
        scope: The cancel scope of the call.
        outer: See Args.
    """

    __slots__ = ("_left", "_waiting", "outer", "scope")

    def __init__(self, seconds: float, outer: "_Clock | None") -> None:
        self.scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        self.outer = outer
        self._waiting = 0  # several tasks of one handler may ask at the same time
        self._left = math.inf

    def stop(self) -> None:
        """Stop the clock, until each `stop` has its `resume`."""
        if self._waiting == 0:
            # Negative if the deadline has passed: the call then ends at `resume`.
            self._left = self.scope.deadline - trio.current_time()
            self.scope.deadline = math.inf
        self._waiting += 1

    def resume(self) -> None:
        """Resume the clock with the remaining time."""
        self._waiting -= 1
        if self._waiting == 0:
            self.scope.deadline = trio.current_time() + self._left

    def stop_all(self) -> None:
        """Stop this clock and the clocks of the enclosing calls."""
        for clock in self._chain():
            clock.stop()

    def resume_all(self) -> None:
        """Resume this clock and the clocks of the enclosing calls."""
        for clock in self._chain():
            clock.resume()

    def _chain(self) -> "Iterator[_Clock]":
        clock: _Clock | None = self
        while clock is not None:
            yield clock
            clock = clock.outer


# Context variables: a child task inherits the clocks of the call that started it, so a question of
# that task stops them too. A sibling call has its own clocks, which go on.
_CURRENT: Final[ContextVar[_Clock | None]] = ContextVar("clock", default=None)
_IN_TASK: Final[ContextVar[bool]] = ContextVar("in_task", default=False)


def enter_task() -> None:
    """Record that a task of the extension runs here: the server's timeout does not apply."""
    _IN_TASK.set(True)
    # Inherited from the request that began the task; it must not stop clocks of that request.
    _CURRENT.set(None)


async def in_time(
    server: "ServedServer", spec: Timed, work: Callable[[], Awaitable[Result]]
) -> Result:
    """Run a call within a request, with the timeout of its component.

    Args:
        server: The server; its timeout is the default.
        spec: The component.
        work: The work.

    Raises:
        OutOfTime: The call timed out. Errors raised during its cancellation are logged.
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
        # A scope removes its `Cancelled` from a group and lets the rest pass. The call has timed
        # out anyway: the rest is logged, and the caller gets one exception.
        if not (clock.scope.cancelled_caught and is_crash(error)):
            raise
        text = "a call that ran out of time failed"
        server.crash_log.crash(text, text, error=unwrap_single(error))
    finally:
        _CURRENT.reset(token)
    raise OutOfTime


class Pause:
    """Stops the clocks of one handler, and releases its slot, while its client is asked.

    Args:
        clock: The deadline of the request or task.

    Attributes:
        waiting: The number of reasons to wait, mostly questions.
    """

    __slots__ = ("_clock", "waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.waiting = 0

    def begin(self) -> None:
        """Stop the clock, until each `begin` has its `end`."""
        # A count, not a flag: several tasks of one handler may ask at the same time, and the clock
        # resumes only after the last answer.
        if self.waiting == 0:
            self._clock.stop_clock()
        self.waiting += 1

    def end(self) -> None:
        """Resume the clock after the last reason to wait."""
        self.waiting -= 1
        if self.waiting == 0:
            self._clock.resume_clock()

    async def around(self, wait: Callable[[], Awaitable[Result]]) -> Result:
        """Wait for an answer with the clocks stopped."""
        # The order matters: the clocks resume before the slot is acquired again. Waiting for a slot
        # counts as time of the call, as it did the first time.
        slot = current_slot.get()
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
                # The same clocks, even if the context variable changed while it waited.
                if clock is not None:
                    clock.resume_all()
                self.end()
        finally:
            if slot is not None:
                await slot.answered()
