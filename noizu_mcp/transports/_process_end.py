"""The end of a serving process: signals, the end of the parent process, and a watchdog.

The first signal calls a function in the loop, which ends the server gracefully. A handler that
blocks the loop would block every timeout in it, so the watchdog is a thread.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Final

import trio

from .._util import in_main_thread
from ..engine import logger

#: Signals that end a server gracefully.
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
#: Seconds between checks of the parent process, if the kernel cannot report its end.
PARENT_POLL: Final = 2.0
#: The exit status of a process that did not end in time.
OVERDUE: Final = 1
#: Maximum seconds for the last log entry: if nothing reads the log, writing may block, which may be
#: the reason why the server hangs.
LAST_WORDS: Final = 1.0


def do_nothing(*_: object) -> None:
    """Do nothing in the signal handler."""


@contextmanager
def ending_on_signals(
    end: Callable[[], object],
    at_once: Callable[[], object] = do_nothing,
    *,
    again: Any = signal.SIG_DFL,
) -> Iterator[None]:
    """Call a function in the loop on the first SIGINT or SIGTERM.

    From then on both have their default action: the next one ends the process at once, even if
    its loop is blocked. A signal that the process was started to ignore stays ignored.

    Args:
        end: The function.
        at_once: A second function, called in the signal handler, without waiting for the loop.
        again: Handles the next signals, in the place of the default action.
    """
    token = trio.lowlevel.current_trio_token()
    ours = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        for each in ours:
            # In the signal handler, not in the loop, which may be blocked.
            signal.signal(each, again)
        at_once()
        token.run_sync_soon(end)

    with _handling(ours, on_signal):
        yield


@contextmanager
def handling_signals(function: Callable[[], object]) -> Iterator[None]:
    """Call a function on each SIGINT and SIGTERM, and then the handler that the host installed.

    For other hosts, which own the signals. A signal without a handler is left to the system, which
    ends the process.

    Args:
        function: Called in the signal handler.
    """
    if not in_main_thread():
        logger.warning("handle_signals does nothing: the lifespan is not in the main thread")
        yield
        return
    # SIG_DFL and SIG_IGN are not functions: if a handler replaced them, the signal would neither
    # end the process nor be ignored.
    hosts = {each: got for each in SIGNALS if callable(got := signal.getsignal(each))}
    if not hosts:
        logger.warning("handle_signals does nothing: the host handles no signals in this process")

    def on_signal(number: int, frame: FrameType | None) -> None:
        function()
        hosts[signal.Signals(number)](number, frame)

    with _handling(hosts, on_signal):
        yield


@contextmanager
def _handling(signals: Iterable[signal.Signals], handler: Any) -> Iterator[None]:
    """Handle signals while the block runs, and restore the previous handlers."""
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, former in before.items():
            # Not if another handler was installed in the meantime.
            if signal.getsignal(each) is handler:
                signal.signal(each, former)


@contextmanager
def calling_on_hangup(function: Callable[[], object]) -> Iterator[None]:
    """Call a function in the loop on each SIGHUP, which then does not end the process."""
    call = soon(function)
    with _handling([signal.SIGHUP], lambda *_: call()):
        yield


def soon(function: Callable[[], object]) -> Callable[[], None]:
    """Make a function that runs another one in this loop. A signal handler may call it."""
    token = trio.lowlevel.current_trio_token()

    def run_soon() -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(function)

    return run_soon


async def parent_exit(parent: int | None = None) -> None:
    """Wait until the parent process has ended; forever without a parent to wait for.

    If a client is killed, usually the stdin of its servers ends, but not if a sibling process
    inherited the other end of the pipe.

    Args:
        parent: Its process id, if known: it may have ended by now.
    """
    parent = os.getppid() if parent is None else parent
    # Process 1 adopts orphans, and is the parent of a container's first process. It never ends.
    if parent <= 1:
        await trio.sleep_forever()
    try:
        fd = os.pidfd_open(parent)
    except (AttributeError, OSError):
        while os.getppid() == parent:  # noqa: ASYNC110 - without a pidfd nothing tells of the end
            await trio.sleep(PARENT_POLL)
        return
    try:
        if os.getppid() == parent:  # else it ended, and its id was reused in between
            await trio.lowlevel.wait_readable(fd)
    finally:
        os.close(fd)


@contextmanager
def ending_within(seconds: float, tell: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """End the process if the block does not end in time.

    Args:
        seconds: The time after the call of the function that the block gets.
        tell: Logs the reason in a separate thread, within `LAST_WORDS`.

    Yields:
        A function that starts the time, once. A signal handler may call it.
    """
    # `put` of this queue is reentrant: a signal may interrupt code that holds a lock or an event.
    news: SimpleQueue[bool] = SimpleQueue()
    watch = partial(_watch, news, min(seconds, threading.TIMEOUT_MAX), tell)
    # Started now, since a signal handler must not start threads.
    thread = threading.Thread(target=watch, name="noizu-mcp deadline", daemon=True)
    thread.start()
    try:
        yield partial(news.put, True)
    finally:
        news.put(False)
        thread.join()


def _watch(news: "SimpleQueue[bool]", seconds: float, tell: Callable[[], object]) -> None:
    if not news.get():
        return
    try:
        news.get(timeout=seconds)
    except Empty:
        telling = threading.Thread(target=tell, name="noizu-mcp last words", daemon=True)
        telling.start()
        telling.join(LAST_WORDS)
        os._exit(OVERDUE)  # only this ends a process with a thread that does not return
