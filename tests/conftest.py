"""Settings of all tests."""

import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Their tests start processes, many of them programs of other projects.
SLOW_FOLDERS = ("benchmarks", "conformance", "e2e", "interop")
#: The scenarios of `behaviour` that are not slow: the newest revision of each era, in memory. Every
#: other revision and transport repeats them, and the whole of the checks runs them all.
QUICK = {"transport": {"memory"}, "revision": {"2025-11-25", "2026-07-28"}}
# What their processes do is what other tests do too: tracing them shows no other line.
UNTRACED_FOLDERS = ("benchmarks", "conformance", "docs", "interop")


@cache
def folder_of(path: Path) -> str:
    """Return the folder of the tests in which a file is."""
    return path.relative_to(HERE).parts[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of the slow folders, and what repeats a scenario."""
    for item in items:
        folder = folder_of(item.path)
        if folder in SLOW_FOLDERS or (folder == "behaviour" and repeats(item)):
            item.add_marker(pytest.mark.slow)


def repeats(item: pytest.Item) -> bool:
    """Tell whether a test runs a scenario on a revision or a transport that is not quick."""
    callspec = getattr(item, "callspec", None)
    params = {} if callspec is None else callspec.params
    return any(name in params and params[name] not in quick for name, quick in QUICK.items())


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


@pytest.fixture(scope="module", autouse=True)
def untraced(request: pytest.FixtureRequest) -> Iterator[None]:
    """Start processes without coverage where it would take time and show nothing."""
    with pytest.MonkeyPatch.context() as patch:
        if folder_of(request.path) in UNTRACED_FOLDERS:
            patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield
