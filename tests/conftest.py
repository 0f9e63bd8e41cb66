"""Settings of all tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Their tests start processes, many of them programs of other projects.
SLOW_FOLDERS = ("benchmarks", "conformance", "e2e", "interop")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of the slow folders."""
    for item in items:
        if item.path.relative_to(HERE).parts[0] in SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)


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
