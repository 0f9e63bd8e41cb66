"""A watchdog for blocked event loops, which names the handler that blocks.

A trio instrument notes the beginning and the end of each step of each task. A thread wakes up every
quarter of the threshold, and reports a step that has run for longer, with its stack. A lock covers
the report and the end of a step, so a report is always about the step that runs. The thread ends
with the loop.
"""

import contextvars
import math
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, takewhile
from time import monotonic
from types import FrameType
from typing import Any, Final, NamedTuple

import trio

from ..engine import logger
from ..server import Event, Listener, running

#: Default threshold in seconds; people notice a hang after about ten.
THRESHOLD: Final = 1.0
#: Number of looks of the thread within one threshold.
LOOKS: Final = 4
#: Most frames of a stack in the log; the innermost ones are kept.
MAX_FRAMES: Final = 20
#: Longest wait for the thread at the end of a loop, in seconds; it may be writing to the log.
JOIN: Final = 1.0

#: The request of a task; tasks that its handler starts inherit it.
_request: Final[contextvars.ContextVar[Event | None]] = contextvars.ContextVar(
    "noizu_mcp.watchdog", default=None
)


class Watchdog(Listener):
    """Logs the handler that blocks the loop, with its stack and the time.

    A handler that computes, or waits without `await`, stops every other request. A thread watches
    the loop from the first request to the end of the loop; that costs about two microseconds for
    each step of each task. A blocked loop is logged once as a warning with the stack, and once more
    when it runs again. Code in an extension that holds Python's global lock also stops the thread,
    and is not reported.

    Args:
        threshold: Longest step of a task that is not reported, in seconds.

    Raises:
        ValueError: The threshold is not a number above 0, or infinite.
    """

    def __init__(self, threshold: float = THRESHOLD) -> None:
        given: Any = threshold
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_number or not 0 < given < math.inf:
            raise ValueError(f"threshold must be seconds above 0, not {threshold!r}")
        self._threshold = threshold
        # A server may run in several loops, each with its own thread.
        self._pulse: trio.lowlevel.RunVar[_Pulse | None]
        self._pulse = trio.lowlevel.RunVar("noizu_mcp.watchdog", default=None)

    def __call__(self, event: Event) -> None:
        """Watch the loop from the first request on; see `Listener`."""
        if self._pulse.get() is None:
            pulse = _Pulse(self._threshold)
            self._pulse.set(pulse)
            trio.lowlevel.add_instrument(pulse)
            pulse.start()

    @contextmanager
    def around(self, event: Event) -> Iterator[None]:
        """Note the request for the tasks of its handler; see `Listener`."""
        token = _request.set(event)
        try:
            yield
        finally:
            _request.reset(token)


class _Step(NamedTuple):
    """One step of one task: from one wait to the next."""

    task: trio.lowlevel.Task
    began: float


class _Pulse(trio.abc.Instrument):
    """Watches one loop.

    Args:
        threshold: Seconds.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        # Held for a report and at the end of a step: no report is about a step that has ended.
        self._lock = threading.Lock()
        self._step: _Step | None = None
        self._culprit: str | None = None  # set when the step is reported
        self._ended = threading.Event()
        self._loop = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="noizu_mcp watchdog", daemon=True)

    def start(self) -> None:
        """Start the thread; the running step counts from now on."""
        self._step = _Step(trio.lowlevel.current_task(), monotonic())
        self._thread.start()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note that a step begins."""
        self._step = _Step(task, monotonic())

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note that a step ends."""
        with self._lock:
            step, self._step = self._step, None
            culprit, self._culprit = self._culprit, None
        if step is not None and culprit is not None:
            logger.warning("%s blocked the loop for %.1f s", culprit, monotonic() - step.began)

    def after_run(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(JOIN)

    def _watch(self) -> None:
        while not self._ended.wait(self._threshold / LOOKS):
            with self._lock:
                self._look()

    def _look(self) -> None:
        """Report the running step if it takes too long and is not reported yet."""
        step = self._step
        if step is None or self._culprit is not None:
            return
        seconds = monotonic() - step.began
        if seconds >= self._threshold:
            # The only way to the stack of another thread.
            frame = sys._current_frames()[self._loop]  # noqa: SLF001 - it is documented
            self._culprit = _name(step.task, frame)
            code = frame.f_code
            place = f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"
            text = "%s has blocked the loop for %.1f s, at %s\n%s"
            logger.warning(text, self._culprit, seconds, place, _stack(frame))


def _name(task: trio.lowlevel.Task, frame: FrameType) -> str:
    event = running(frame) or task.context.get(_request)
    if event is None:
        return f"the task {task.name}"
    if event.target is not None:
        return f"{event.method} {event.target}"
    return event.method


def _stack(frame: FrameType) -> str:
    """Write the part of a stack that belongs to the task: the frames inside of trio's loop."""
    inside = takewhile(
        lambda each: each[0].f_globals is not trio.run.__globals__, traceback.walk_stack(frame)
    )
    frames = [*islice(inside, MAX_FRAMES)]
    summary = traceback.StackSummary.extract(reversed(frames))
    return "".join(traceback.format_list(summary)).rstrip()
