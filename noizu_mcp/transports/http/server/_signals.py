"""SIGINT and SIGTERM when a third-party ASGI host owns the signal handlers."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

import trio

from ...._util import in_main_thread
from ....engine import logger
from ...stdio._server import SIGNALS


@contextmanager
def hearing_signals(function: Callable[[], object]) -> Iterator[None]:
    """Call a function on each SIGINT and SIGTERM, and then the handler that the host installed.

    A signal without a handler is left to the system, which ends the process.

    Args:
        function: Called in the signal handler.
    """
    if not in_main_thread():
        logger.warning("handle_signals does nothing: the lifespan is not in the main thread")
        yield
        return
    # SIG_DFL and SIG_IGN are no functions: with a handler of ours in their place the signal would
    # neither end the process nor be ignored.
    hosts = {each: got for each in SIGNALS if callable(got := signal.getsignal(each))}
    if not hosts:
        logger.warning("handle_signals does nothing: the host handles no signals in this process")

    def on_signal(number: int, frame: FrameType | None) -> None:
        function()
        hosts[signal.Signals(number)](number, frame)

    for each in hosts:
        signal.signal(each, on_signal)
    try:
        yield
    finally:
        for each, handler in hosts.items():
            # Not if the host has installed another one meanwhile: that one must stay.
            if signal.getsignal(each) is on_signal:
                signal.signal(each, handler)


def soon(function: Callable[[], object]) -> Callable[[], None]:
    """Make a function that runs another one in this loop; a signal handler may call it."""
    return partial(_run_soon, trio.lowlevel.current_trio_token(), function)


def _run_soon(token: trio.lowlevel.TrioToken, function: Callable[[], object]) -> None:
    with suppress(trio.RunFinishedError):
        token.run_sync_soon(function)
