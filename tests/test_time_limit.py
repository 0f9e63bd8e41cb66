"""The time limits of tests and runs, in sessions of pytest over a small folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]

CONFTEST = """
from tests import time_limit
from tests.time_limit import pytest_addoption, pytest_configure

time_limit.GRACE = GRACE
time_limit.HEAD_START = 0
"""

HANGING = """
import asyncio, subprocess, threading
import pytest, trio

async def wait_in_a_nursery():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever, name="asleep")

async def test_trio():
    await wait_in_a_nursery()

def test_asyncio():
    asyncio.run(asyncio.Event().wait())

def test_thread():
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            threading.Event().wait()
        finally:
            process.kill()

@pytest.fixture
def slow_setup():
    threading.Event().wait()

def test_setup(slow_setup):
    pass

@pytest.fixture(scope="module")
def outer():
    yield
    print("the outer fixture ends")

@pytest.fixture
def slow_teardown(outer):
    yield
    threading.Event().wait()

@pytest.mark.time_limit(0.25)
def test_teardown(slow_teardown):
    pass

@pytest.mark.xfail
def test_swallowed():
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
"""

STUCK = """
import itertools, threading

def test_stubborn():
    while True:
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass

def test_in_c():
    max(itertools.count())
"""

FINE = """
import signal
import pytest

@pytest.mark.time_limit(60)
def test_fine():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""

RUN_OVER = """
import threading
import pytest

@pytest.mark.time_limit(60)
def test_last(request):
    request.config.pluginmanager.getplugin("time limits").run_end = 0
    threading.Event().wait()
"""


#: Ignores SIGINT, as a background job of a shell does.
SHELL = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]


@pytest.fixture
def session(tmp_path):
    """Run pytest over files; return its status, stdout and stderr."""

    def run(*words, grace=60, **files):
        conftest = CONFTEST.replace("GRACE\n", f"{grace}\n")
        for name, text in {"conftest": conftest, **files}.items():
            (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / "pytest.ini").write_text("[pytest]\ntrio_mode = true\n")
        plugins = ("-p", "pytest_trio.plugin", "-p", "xdist", "-p", "no:cacheprovider")
        done = subprocess.run(
            [*SHELL, sys.executable, "-m", "pytest", "-rA", *plugins, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_hanging_tests_fail(session):
    """Each test that hangs fails with its limit; stderr has all stacks, and others run."""
    status, out, err = session("--time-limit", "0.5", test_a=HANGING, test_b=FINE)
    assert status == 1, out + err
    for name in ("trio", "asyncio", "thread", "swallowed"):
        assert f"FAILED test_a.py::test_{name} - Failed: over its time limit of 0.5 s" in out
    assert "ERROR test_a.py::test_setup - Failed: over its time limit of 0.5 s" in out
    assert "ERROR test_a.py::test_teardown - Failed: over its time limit of 0.25 s" in out
    assert "the outer fixture ends" in out
    assert "PASSED test_b.py::test_fine" in out
    assert "test_a.py::test_trio is over its time limit of 0.5 s" in err
    trio, asyncio, thread = (section(err, name) for name in ("trio", "asyncio", "thread"))
    tree = r"trio loop\n(.*\n)* +task .*test_trio.*\n(.*\n)*( +)nursery\n\3  task asleep\n +File"
    assert re.search(tree, trio), trio
    assert re.search(r"thread MainThread\n(.*\n)*.*in pytest_runtest_call\n", trio), trio
    assert re.search(r"asyncio task Task-1\n(.*\n)*.*in wait\n", asyncio)
    assert re.search(r"thread MainThread\n(.*\n)*.*in test_thread\n", thread)
    assert re.search(r"child processes\n  \d+ sleep 1000\n", thread)
    assert "child processes\n  none\n" in trio


def section(err, name):
    """Return the output about a test."""
    title = f"test_a.py::test_{name} is over its time limit"
    return err.split(title)[1]


def test_stuck_workers_are_replaced(session):
    """A test that cannot be interrupted, or a run over its limit, ends a worker; others run."""
    words = ("-n", "1", "--time-limit", "0.5", "--run-limit", "600")
    status, out, err = session(*words, grace=0.5, test_a=STUCK, test_b=FINE, test_c=RUN_OVER)
    assert status == 1, out + err
    for name in ("a.py::test_stubborn", "a.py::test_in_c", "c.py::test_last"):
        assert f"FAILED test_{name}" in out
    assert "3 failed, 1 passed" in out
    assert "test_a.py::test_stubborn cannot be interrupted: its process ends" in err
    assert "in test_in_c" in err
    assert "The run is over its time limit, in test_c.py::test_last" in err


def test_a_run_ends(session):
    """A run over its limit ends with all stacks and status 2."""
    status, out, err = session("--run-limit", "600", test_a=RUN_OVER, test_b=FINE)
    assert status == 2, out + err
    assert "The run is over its time limit, in test_a.py::test_last" in err
    assert "in test_last" in err
    assert "test_b.py::test_fine" not in out
