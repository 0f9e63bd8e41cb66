"""The timeouts of calls within a request: a handler calls a tool, an override calls what it wraps.

A request has one deadline, which the engine keeps. What is called within the request has a timeout
of its own as well, and whichever ends first counts. All of them stop while the client is asked.
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
    """A call within a request has not ended in its time, and was cancelled."""


class _Clock:
    """The timeout of one call.

    Args:
        seconds: How long it may take.
        outer: The clock of the call around it; None: it has none.

    Attributes:
        scope: Cancels the call.
        outer: See Args.
    """

    __slots__ = ("_left", "_waiting", "outer", "scope")

    def __init__(self, seconds: float, outer: "_Clock | None") -> None:
        self.scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        self.outer = outer
        self._waiting = 0  # several tasks of one handler may ask at once
        self._left = math.inf

    def stop(self) -> None:
        """Stop the clock, until as many calls of `resume`."""
        if self._waiting == 0:
            self._left = self.scope.deadline - trio.current_time()
            self.scope.deadline = math.inf
        self._waiting += 1

    def resume(self) -> None:
        """Let the clock go on with the time that was left."""
        self._waiting -= 1
        if self._waiting == 0:
            self.scope.deadline = trio.current_time() + self._left


# Variables of the task: where one task of a handler asks, the clocks of the others go on.
_CURRENT: Final[ContextVar[_Clock | None]] = ContextVar("clock", default=None)
_IN_TASK: Final[ContextVar[bool]] = ContextVar("in_task", default=False)


def enter_task() -> None:
    """Note that a task of the extension runs here: the server's timeout is for requests only."""
    _IN_TASK.set(True)
    _CURRENT.set(None)  # a clock of the request that began the task


async def in_time(server: "Server", spec: Timed, work: Callable[[], Awaitable[Result]]) -> Result:
    """Do the work on a call within a request, in the time that its component has.

    Args:
        server: The server; its timeout is that of components without one of their own.
        spec: The component.
        work: The work.

    Raises:
        OutOfTime: The time is over. Errors that the work raised on its way out go to the log.
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
        # A scope takes `Cancelled` out of a group and lets the rest pass.
        if not (clock.scope.cancelled_caught and is_crash(error)):
            raise
        text = "a call that ran out of time failed"
        server.crash_log.crash(text, text, error=unwrap_single(error))
    finally:
        _CURRENT.reset(token)
    raise OutOfTime


@contextmanager
def clocks_stopped() -> Iterator[None]:
    """Stop the clocks of the calls around this task while the block runs: a person is asked."""
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
