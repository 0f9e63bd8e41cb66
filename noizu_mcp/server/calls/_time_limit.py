"""Timeouts of calls within a request: a handler calls a tool, an override calls the default.

A request has one deadline, which the engine keeps. A call within the request has a timeout of its
own as well, and the earlier one counts. All of them stop while the client is asked: a person who
thinks for a minute must not use up the seconds of a handler.
"""

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import trio

from ..._util import Unset
from ...engine import is_crash, unwrap_single

if TYPE_CHECKING:
    from .._server import Server

Result = TypeVar("Result")


class Timed(Protocol):
    """A component that may have a timeout of its own."""

    @property
    def timeout(self) -> float | Unset | None:
        """Seconds; None for no limit, UNSET for the server's."""


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


@contextmanager
def clocks_stopped() -> Iterator[None]:
    """Stop the clocks of the enclosing calls while the block runs and a person is asked."""
    # Remembered: the same clocks must resume, whatever the block did to the variable.
    stopped = []
    clock = _CURRENT.get()
    while clock is not None:
        clock.stop()
        stopped.append(clock)
        clock = clock.outer
    try:
        yield
    finally:
        for each in stopped:
            each.resume()
