"""A watchdog for blocked event loops, which names the handler that blocks.

Theory of operation. One thread serves all watched loops of the process. `LOOKS` times within a
threshold it looks at each: it leaves a function for the loop to run, the beat, and reads the stack
of the loop's thread. A loop that runs its beat before the next look is well, so a call costs
nothing. If a beat waits while the same function of the user is at work in each look of a whole
threshold, this function blocks the loop: one line in the log names it, and where it stands. A beat
runs in a loop of trio itself and in a guest loop: both are watched.
"""

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from time import monotonic
from types import FrameType
from typing import Final

import trio

from .._util import is_number, relative_path
from ..engine import SHOWN, ThrottledLog, logger
from ..events import MAX_TEXT
from ..server import ServerContext, ServerRequest

#: Default threshold in seconds; people notice a hang after about ten.
THRESHOLD: Final = 1.0
#: Looks of the thread within one threshold.
LOOKS: Final = 2
#: Seconds to wait for the thread at the end of the last loop; it may be writing to the log.
JOIN: Final = 1.0
#: Packages whose code stands between a loop and the code of users.
_BETWEEN: Final = frozenset({"noizu_mcp", "trio", "outcome", "asyncio"})
_ADVICE: Final = "make it a plain def, or call what blocks with trio.to_thread.run_sync"

_pulse: "trio.lowlevel.RunVar[_Pulse | None]"
_pulse = trio.lowlevel.RunVar("noizu_mcp.watchdog", default=None)


@contextmanager
def watching(threshold: float | None = THRESHOLD) -> Iterator[None]:
    """Watch the trio loop of the calling task while the block runs.

    A task that computes for long, or waits without `await`, stops every other one. It is logged
    once as a warning, while it blocks, with the handler and its line. Every serving function and
    `HttpApp` do this, by the option `watchdog` of the server; use it yourself for other loops. A
    loop that is watched already is not watched twice.

    Args:
        threshold: Seconds that one task may run without letting others run; None watches nothing.

    Raises:
        ValueError: The threshold is not a number above 0, or infinite.
        RuntimeError: There is no trio loop.
    """
    if threshold is None:
        yield
        return
    if not is_number(threshold) or threshold <= 0:
        raise ValueError(f"threshold must be seconds above 0, or None, not {threshold!r}")
    pulse = _pulse.get()
    if pulse is None:
        pulse = _Pulse(threshold)
        _pulse.set(pulse)
        _watch.add(pulse)
    pulse.users += 1
    try:
        yield
    finally:
        pulse.users -= 1
        if not pulse.users:
            _pulse.set(None)
            _watch.remove(pulse)


class _Pulse:
    """Watches one loop; made in it.

    Args:
        threshold: Seconds.

    Attributes:
        threshold: See Args.
        users: The blocks that want the loop to be watched.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.users = 0
        self._thread = threading.get_ident()
        self._token = trio.lowlevel.current_trio_token()
        self._left = self._run = 0  # the beats that were sent, and the last one run
        self._seen: tuple[int, int] | None = None  # the beat that waits, and the id of a frame
        self._since = 0.0
        self._reported = False
        self._log = ThrottledLog(shown=SHOWN)

    def _beat(self) -> None:
        self._run = self._left

    def look(self) -> None:
        """Report the function at work, if it has been at it for a whole threshold."""
        if self._run == self._left:
            self._left += 1
            # The loop may end at any time; then there is nothing to watch.
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._beat)
        beat, now = self._left, monotonic()
        # The only way to the stack of another thread.
        frames = _frames_of(sys._current_frames().get(self._thread))  # noqa: SLF001 - documented
        seen = (beat, id(_handler_in(frames))) if frames else None
        if seen is None or seen != self._seen:
            self._seen, self._since, self._reported = seen, now, False
        elif not self._reported and now - self._since >= self.threshold:
            self._reported = True
            text = _describe(frames, now - self._since)
            stack = "".join(traceback.StackSummary.extract(_lines(frames)).format())
            code = _handler_in(frames).f_code
            # The loop may have gone on: then what was read is of another moment.
            if self._run < beat:
                self._log.warning((code.co_filename, code.co_firstlineno), "%s", text)
                for line in stack.splitlines():
                    logger.debug("%s", line)


def _frames_of(frame: FrameType | None) -> list[FrameType]:
    """List the frames that a loop runs, the innermost first; empty while it waits."""
    frames: list[FrameType] = []
    if frame is None or _module_of(frame).startswith(("trio.", "selectors")):
        return frames
    while frame is not None and frame.f_globals is not trio.run.__globals__:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _lines(frames: list[FrameType]) -> Iterator[tuple[FrameType, int]]:
    return ((frame, frame.f_lineno) for frame in reversed(frames))


def _handler_in(frames: list[FrameType]) -> FrameType:
    """Find the running function of the user: the outermost after the last of this package."""
    # A handler may have called a function of this package, or of a library.
    inner = next((n for n, frame in enumerate(frames) if not _is_between(frame)), 0)
    handler = [*takewhile(lambda frame: not _is_between(frame), frames[inner:])]
    return handler[-1] if handler else frames[0]


def _describe(frames: list[FrameType], seconds: float) -> str:
    """Name the handler, its line, and what it is at."""
    handler = _handler_in(frames)
    within = f", in {_place(frames[0])} {frames[0].f_code.co_qualname}"
    return (
        f"{_request_of(frames)}{handler.f_code.co_qualname} ({_place(handler)}) has blocked the"
        f" event loop for {seconds:.1f} s{'' if handler is frames[0] else within}; {_ADVICE}"
    )


def _is_between(frame: FrameType) -> bool:
    # Functions that we write for handlers, to call them faster, have no file.
    is_generated = frame.f_code.co_filename == "<string>"
    return is_generated or _module_of(frame).partition(".")[0] in _BETWEEN


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _place(frame: FrameType) -> str:
    return f"{relative_path(frame.f_code.co_filename)}:{frame.f_lineno}"


def _request_of(frames: list[FrameType]) -> str:
    """Name the request of a task: `tools/call export: `; empty if it serves none."""
    for frame in frames:
        for value in tuple(frame.f_locals.values()):
            # A task that a handler has started has the context only.
            request = value.request if isinstance(value, ServerContext) else value
            if isinstance(request, ServerRequest):
                # The registered name, and not the one of the client, which may be anything.
                registry = request.running.server.registry
                _, spec = registry.subject_of(request.request, request.context, usable=False)
                name = "" if spec is None else f" {spec.definition[spec.key]}"[:MAX_TEXT]
                return f"{request.request.method}{name}: "
    return ""


class _WatchThread:
    """The thread that looks at all watched loops of this process; it lives while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulses: set[_Pulse] = set()
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, pulse: _Pulse) -> None:
        """Watch a loop from now on."""
        with self._lock:
            self._pulses.add(pulse)
            self._changed.set()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="noizu_mcp watchdog", daemon=True
                )
                self._thread.start()

    def remove(self, pulse: _Pulse) -> None:
        """Stop watching a loop; wait for the thread if it was the last loop."""
        with self._lock:
            self._pulses.discard(pulse)
            self._changed.set()
            ending = None if self._pulses else self._thread
        if ending is not None:
            ending.join(JOIN)

    def _run(self) -> None:
        while True:
            with self._lock:
                pulses = tuple(self._pulses)
                if not pulses:
                    self._thread = None
                    return
                self._changed.clear()
            for pulse in pulses:
                pulse.look()
            self._changed.wait(min(pulse.threshold for pulse in pulses) / LOOKS)


_watch = _WatchThread()


def _forget() -> None:
    # A child that was forked has neither the thread nor the loops, and maybe a lock that is held.
    global _watch  # noqa: PLW0603 - the one of this process
    _watch = _WatchThread()


os.register_at_fork(after_in_child=_forget)
