"""What holds for all tests."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Let SIGINT reach what tests start, also where they run in the background of a shell.

    Such a shell starts them with SIGINT ignored, and what they start would inherit that.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
