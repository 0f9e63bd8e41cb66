"""`--reload`: a command runs again when a file changes, and ends when it should."""

import os
import signal
import subprocess
import sys
import threading

import pytest
import trio

from noizu_mcp.cli import _reload
from noizu_mcp.cli._reload import run_reloading, snapshot

STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"ready")
time.sleep(60)
"""


def test_python_files_are_looked_at(tmp_path):
    """Those that are written by hand; one that is not there any more counts as none."""
    for name in ("a.py", "b.txt", "deep/c.py", "node_modules/d.py", "deep/__pycache__/e.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "gone.py").symlink_to("nowhere")
    assert set(snapshot(tmp_path)) == {str(tmp_path / "a.py"), str(tmp_path / "deep" / "c.py")}


class Said:
    """Stands in for stderr, and knows when something was said."""

    def __init__(self):
        self.event = threading.Event()
        self.lines = []

    def write(self, text):
        self.lines.append(text)
        self.event.set()


def test_a_change_starts_it_again(tmp_path, monkeypatch):
    """Until a signal comes; each change is said."""
    file = tmp_path / "app.py"
    file.touch()
    said = Said()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_reload, "PERIOD", 0.01)
    monkeypatch.setattr(sys, "stderr", said)

    def change():
        for number in range(1000):
            os.utime(file, (number, number))
            if said.event.wait(0.05):
                break
        os.kill(os.getpid(), signal.SIGINT)

    changing = threading.Thread(target=change)
    changing.start()
    assert run_reloading(["--version"]) == 0
    changing.join()
    assert said.lines[0] == "noizu-mcp: app.py has changed\n"


@pytest.mark.parametrize("code", [STUBBORN, STUBBORN.replace("SIG_IGN", "SIG_DFL")])
async def test_a_program_that_does_not_end_is_killed(monkeypatch, code):
    """It has its time; one that obeys is not killed."""
    monkeypatch.setattr(_reload, "PATIENCE", 0.2 if "SIG_IGN" in code else 20)
    command = [sys.executable, "-c", code]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    async with process.stdout:
        assert await process.stdout.receive_some() == b"ready"
        await _reload._end(process)
    ended_by = signal.SIGKILL if "SIG_IGN" in code else signal.SIGTERM
    assert process.returncode == -ended_by
