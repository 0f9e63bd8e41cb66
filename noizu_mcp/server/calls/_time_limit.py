"""Timeouts of calls within a request: nested tool calls, and overrides that call the default.

A request has one deadline, which the engine enforces. A call within the request has its own timeout
as well, and the earlier one ends it. All of them stop while the client is asked: a person who
thinks for a minute must not use up the time of a handler.
"""

import math
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol

import trio

from ..._util import Returned, Unset
from ...engine import is_crash, unwrap_single
from ._concurrency_limit import current_slot

if TYPE_CHECKING:
    from .._contracts import ServedServer


class Timed(Protocol):
    """A component that may have its own timeout."""

    @property
    def timeout(self) -> float | Unset | None:
        """Seconds; None for no limit, UNSET for the server's timeout."""


class Clock(Protocol):
    """A request, a task or a call that has a deadline."""

    @property
    def deadline(self) -> float:
        """The deadline, on trio's clock."""

    def expire_at(self, deadline: float) -> None:
        """Move the deadline."""


class OutOfTime(Exception):
    """A call within a request timed out, and was cancelled."""


class Pause:
    """Stops one clock while its handler asks the client, or is parked.

    Args:
        clock: The clock.

    Attributes:
        waiting: The number of reasons to wait, mostly questions.
    """

    __slots__ = ("_clock", "_left", "waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = math.inf
        self.waiting = 0

    def begin(self) -> None:
        """Stop the clock, until each `begin` has its `end`."""
        # A count, not a flag: several tasks of one handler may ask at the same time, and the clock
        # resumes only after the last answer.
        if self.waiting == 0:
            # Negative if the deadline has passed: the work then ends at `end`.
            self._left = self._clock.deadline - trio.current_time()
            self._clock.expire_at(math.inf)
        self.waiting += 1

    def end(self) -> None:
        """Resume the clock with the remaining time, after the last reason to wait."""
        self.waiting -= 1
        if self.waiting == 0:
            self._clock.expire_at(trio.current_time() + self._left)

    async def around(self, wait: Callable[[], Awaitable[Returned]]) -> Returned:
        """Wait for an answer with all clocks stopped, and the slot released.

        The clocks are this one, and the clock of each call around the question.
        """
        # The same clocks at the end, even if the context variable changed while it waited.
        pauses = [self, *_CURRENT.get()]
        # The order matters: the clocks resume before the slot is acquired again. Waiting for a slot
        # counts as time of the call, as it did the first time.
        slot = current_slot.get()
        if slot is not None:
            slot.ask()
        try:
            for each in pauses:
                each.begin()
            try:
                return await wait()
            finally:
                for each in pauses:
                    each.end()
        finally:
            if slot is not None:
                await slot.answered()


class _CallClock:
    """The timeout of one call.

    Args:
        scope: The cancel scope of the call.
    """

    __slots__ = ("_scope",)

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope

    @property
    def deadline(self) -> float:
        """The deadline of the scope."""
        return self._scope.deadline

    def expire_at(self, deadline: float) -> None:
        """Move the deadline of the scope."""
        self._scope.deadline = deadline


# Context variables: a child task inherits the clocks of the call that started it, so a question of
# that task stops them too. A sibling call has its own clocks, which go on.
_CURRENT: Final[ContextVar[tuple[Pause, ...]]] = ContextVar("clocks", default=())
_IN_TASK: Final[ContextVar[bool]] = ContextVar("in_task", default=False)


def enter_task() -> None:
    """Record that a task of the extension runs here: the server's timeout does not apply."""
    _IN_TASK.set(True)
    # Inherited from the request that began the task; it must not stop clocks of that request.
    _CURRENT.set(())


async def in_time(
    server: "ServedServer", spec: Timed, work: Callable[[], Awaitable[Returned]]
) -> Returned:
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
    scope = trio.CancelScope(deadline=trio.current_time() + timeout)
    token = _CURRENT.set((*_CURRENT.get(), Pause(_CallClock(scope))))
    try:
        with scope:
            return await work()
    except BaseException as error:
        # A scope removes its `Cancelled` from a group and lets the rest pass. The call has timed
        # out anyway: the rest is logged, and the caller gets one exception.
        if not (scope.cancelled_caught and is_crash(error)):
            raise
        text = "a call that ran out of time failed"
        server.crash_log.crash(text, text, error=unwrap_single(error))
    finally:
        _CURRENT.reset(token)
    raise OutOfTime
