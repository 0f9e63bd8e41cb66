"""Names the handler that keeps the loop from running."""

import contextvars
import math
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Any, Final, NamedTuple

import trio

from ..engine import logger
from ..server import Event, Listener, running

#: Seconds that are worth a line in the log: a tenth of what people take for a hang.
THRESHOLD: Final = 1.0
#: How often a threshold is looked whether it has passed.
LOOKS: Final = 4
#: Frames of a stack in the log, the innermost ones.
MAX_FRAMES: Final = 20
#: Seconds that the end of a loop waits for its thread, which only ever sleeps or writes to the log.
JOIN: Final = 1.0

#: The request that a task works on; tasks that its handler starts inherit it.
_request: Final[contextvars.ContextVar[Event | None]] = contextvars.ContextVar(
    "noizu_mcp.watchdog", default=None
)


class Watchdog(Listener):
    """Logs which handler blocks the loop, where, and for how long; a listener.

    A handler that computes or waits without `await` stops every other request. A thread looks at
    the loop, from the first request to the end of the loop; it costs about two microseconds for
    each step of each task. A blocked loop is logged once as a warning with the stack of what blocks
    it, and once more when it runs again. What holds Python's global lock as well, in an extension,
    stops the thread, too, and is not seen.

    Args:
        threshold: Seconds without a turn of the loop.

    Raises:
        ValueError: The threshold is no number above 0, or infinite.
    """

    def __init__(self, threshold: float = THRESHOLD) -> None:
        self._threshold = _seconds(threshold)
        # A server may run in several loops, each with its own thread.
        self._pulse: trio.lowlevel.RunVar[_Pulse | None]
        self._pulse = trio.lowlevel.RunVar("noizu_mcp.watchdog", default=None)

    def __call__(self, event: Event) -> None:
        """Begin to watch the loop with the first request; see `Listener`."""
        if self._pulse.get() is None:
            pulse = _Pulse(self._threshold)
            self._pulse.set(pulse)
            trio.lowlevel.add_instrument(pulse)
            pulse.start()

    @contextmanager
    def around(self, event: Event) -> Iterator[None]:
        """Let tasks know whom they work for; see `Listener`."""
        token = _request.set(event)
        try:
            yield
        finally:
            _request.reset(token)


def _seconds(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return value
    raise ValueError(f"threshold must be seconds above 0, not {value!r}")


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
        self._lock = (
            threading.Lock()
        )  # a report is written either before the end of its step or not
        self._step: _Step | None = None
        self._culprit: str | None = None  # once the step is reported
        self._ended = threading.Event()
        self._loop = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="noizu_mcp watchdog", daemon=True)

    def start(self) -> None:
        """Start, in a step of a task: that one counts from now on."""
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
        """Report the step if it takes too long and is not reported."""
        step = self._step
        if step is None or self._culprit is not None:
            return
        seconds = monotonic() - step.began
        if seconds >= self._threshold:
            frame = sys._current_frames()[self._loop]  # noqa: SLF001 - the documented way to it
            self._culprit = _name(step.task, frame)
            text = "%s has blocked the loop for %.1f s, at %s:%d in %s\n%s"
            logger.warning(text, self._culprit, seconds, *_place(frame), _stack(frame))


def _name(task: trio.lowlevel.Task, frame: FrameType) -> str:
    event = running(frame) or task.context.get(_request)
    if event is None:
        return f"the task {task.name}"
    if event.target is not None:
        return f"{event.method} {event.target}"
    return event.method


def _place(frame: FrameType) -> tuple[str, int, str]:
    code = frame.f_code
    return code.co_filename, frame.f_lineno, code.co_qualname


def _stack(frame: FrameType) -> str:
    """Write the part of a stack that belongs to the task: what is inside of trio's loop."""
    frames = []
    current: FrameType | None = frame
    while current is not None and current.f_globals is not trio.run.__globals__:
        frames.append((current, current.f_lineno))
        current = current.f_back
    summary = traceback.StackSummary.extract(reversed(frames[:MAX_FRAMES]))
    return "".join(traceback.format_list(summary)).rstrip()
