"""Settings of all tests."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from .behaviour.not_on_nodes import NOT_ON_NODES
from .time_limit import pytest_addoption, pytest_configure

# pytest calls the hooks that it finds here.
__all__ = ["pytest_addoption", "pytest_configure"]

# Runs sessions of pytest inside of a test.
pytest_plugins = ["pytester"]

# Hypothesis fails a test whose examples take long, which says more about the machine.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

HERE = Path(__file__).parent
STARTER = HERE / "starter.py"
# Their tests start processes, many of them programs of other projects.
SLOW_FOLDERS = ("benchmarks", "conformance", "e2e", "interop")
#: Seconds for each of them: one fixture may start dozens of programs.
SLOW_LIMIT = 360
#: Files in them whose tests reach lines that no quick test reaches.
QUICK_FILES = ("test_reload_stdio.py",)
#: The quick scenarios of `behaviour`: in memory, on the newest revision of each era, or on the
#: newest one of a scenario for older revisions. The slow ones repeat them over pipes, HTTP/1.1 and
#: HTTP/2, and on the other revisions in memory: their messages are the same on every transport.
NEWEST = {"2025-11-25", "2026-07-28"}
#: Files of `behaviour` that are left out over HTTP/2. Most of their scenarios are one request and
#: one answer, with the same messages as over HTTP/1.1. The other files have what HTTP/2 changes:
#: streams and the order on them, cancellation, bodies, notifications, questions, limits, the end.
NOT_OVER_HTTP2 = ("test_overrides.py", "test_prompts.py", "test_resources.py", "test_tools.py")


@cache
def folder_of(path: Path) -> str:
    """Return the folder of the tests in which a file is."""
    return path.relative_to(HERE).parts[0]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Hide the tests and the modules from the garbage collector.

    They exist until the end, and scanning them takes half a second in each test that runs the
    collector.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test of the slow folders, and repetitions of a scenario."""
    scenarios = defaultdict(list)
    for item in items:
        folder = folder_of(item.path)
        if folder in SLOW_FOLDERS:
            item.add_marker(pytest.mark.time_limit(SLOW_LIMIT))
            if item.path.name not in QUICK_FILES:
                item.add_marker(pytest.mark.slow)
        elif folder == "behaviour":
            scenarios[item.nodeid.partition("[")[0]].append(item)
    left_out = set()
    for each in scenarios.values():
        revisions = {param_of(item, "revision") for item in each}
        quick = revisions & NEWEST or {max(revisions)}
        for item in each:
            is_quick = param_of(item, "revision") in quick
            transport = param_of(item, "transport")
            is_elsewhere = transport not in ("", "memory")
            is_repeated = transport == "http2" and item.path.name in NOT_OVER_HTTP2
            is_repeated |= transport == "two nodes" and item.originalname in NOT_ON_NODES
            if (is_elsewhere and not is_quick) or is_repeated:
                left_out.add(item)
            elif is_elsewhere or not is_quick:
                item.add_marker(pytest.mark.slow)
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))


def param_of(item: pytest.Item, name: str) -> str:
    """Return a parameter of a test, or "" without one of that name."""
    callspec = getattr(item, "callspec", None)
    return "" if callspec is None else callspec.params.get(name, "")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Save the coverage before pytest-xdist waits for the end of this process.

    pytest-xdist kills a worker that has not ended after ten seconds, as happens on a busy machine,
    and data that is saved at the very end would be lost.
    """
    if "COVERAGE_PROCESS_CONFIG" in os.environ:
        from coverage import Coverage

        running = Coverage.current()
        if running is not None:
            running.stop()
            running.save()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Restore signal handlers after each test: a program that ends sets the default ones."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    result = yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return result


@pytest.fixture(autouse=True)
def no_server_is_known() -> None:
    """Forget the servers of the last test: another one may get the same port."""
    if "noizu_mcp.client" in sys.modules:
        sys.modules["noizu_mcp.client._negotiate"].HANDSHAKE_SERVERS.clear()


@pytest.fixture(scope="session")
def forked_command() -> Iterator[Callable[..., list[str]]]:
    """Return the command that starts a Python program by forking a process with its imports.

    Called with the path of the program, and the modules to import.
    """
    with ExitStack() as stack:
        yield cache(lambda *words: stack.enter_context(_forking(words)))


@contextmanager
def _forking(words: tuple[str, ...]) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        with subprocess.Popen(
            [sys.executable, str(STARTER), "serve", path, *words],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(HERE.parent)},
            start_new_session=True,
        ) as starter:
            try:
                assert starter.stdout is not None
                assert starter.stdout.readline() == b"ready\n"
                # Without `site`, which takes most of the time of such a start.
                yield [sys.executable, "-I", "-S", str(STARTER), "ask", path]
            finally:
                os.killpg(starter.pid, signal.SIGKILL)
