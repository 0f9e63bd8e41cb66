"""The end of a process: it ends with its parent, and is killed if it does not end in time."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trio

import noizu_mcp
from noizu_mcp.transports._process_end import OVERDUE, PARENT_POLL, ending_within, parent_exit

PROGRAM = """
import sys, time
from noizu_mcp.transports._process_end import ending_within

def tell():
    print("too late", flush=True)
    {tell}

with ending_within(0.1, tell) as due:
    due()
    {block}
"""
#: A block that sleeps, a block that computes, and a `tell` that hangs.
STUCK = [
    {"tell": "", "block": "time.sleep(60)"},
    {"tell": "", "block": "while True: pass"},
    {"tell": "time.sleep(60)", "block": "time.sleep(60)"},
]


@pytest.mark.slow
@pytest.mark.parametrize("parts", STUCK)
def test_what_blocks_is_ended(parts):
    """The process ends whatever the main thread does, and even if the log entry hangs."""
    command = [sys.executable, "-c", PROGRAM.format(**parts)]
    root = str(Path(noizu_mcp.__file__).parents[1])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert (done.returncode, done.stdout, done.stderr) == (OVERDUE, "too late\n", "")


@pytest.mark.parametrize("seconds", [60.0, float("inf")])
@pytest.mark.parametrize("started", [True, False])
def test_what_ends_in_time_leaves_nothing_behind(monkeypatch, seconds, started):
    """The process goes on, and no thread remains."""
    ends = []
    monkeypatch.setattr(os, "_exit", ends.append)
    threads = threading.active_count()
    with ending_within(seconds, ends.clear) as due:
        assert threading.active_count() == threads + 1
        if started:
            due()
    assert threading.active_count() == threads
    assert ends == []


def test_the_reason_is_logged_before_the_end(monkeypatch):
    """The reason is logged before the end, and once."""
    said, ended = [], threading.Event()

    def end(status):
        said.append(status)
        ended.set()

    monkeypatch.setattr(os, "_exit", end)
    with ending_within(0.0, lambda: said.append("why")) as due:
        due()
        assert ended.wait(30)
    assert said == ["why", OVERDUE]


async def test_the_parent_is_watched_without_the_help_of_the_kernel(monkeypatch, autojump_clock):
    """Without a pidfd the parent is polled."""
    parents = iter([10, 10, 10, 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.delattr(os, "pidfd_open")
    start = trio.current_time()
    await parent_exit()
    assert trio.current_time() - start == pytest.approx(2 * PARENT_POLL)


async def test_a_parent_that_ended_in_between(monkeypatch):
    """If the parent changes before it is watched, the wait ends at once."""
    parents = iter([os.getpid(), 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    await parent_exit()


async def test_a_parent_that_ended_before():
    """With the id of another process than the parent the wait ends at once."""
    process = await trio.run_process(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_stdout=True
    )
    with trio.fail_after(60):
        await parent_exit(int(process.stdout))


async def test_a_process_without_a_parent(monkeypatch, autojump_clock):
    """Process 1 of a container, and an orphan, have no parent to watch."""
    monkeypatch.setattr(os, "getppid", lambda: 1)
    with trio.move_on_after(1000) as scope:
        await parent_exit()
    assert scope.cancelled_caught
