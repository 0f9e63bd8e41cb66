"""A process that does not end in time is killed; a process that ends in time is not affected."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import noizu_mcp
from noizu_mcp.transports._process_end import OVERDUE, ending_within

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
