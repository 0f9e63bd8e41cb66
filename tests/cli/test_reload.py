"""`--reload`: a command runs again when a file changes, and ends on a signal."""

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trio

from noizu_mcp._util import relative_path
from noizu_mcp.cli import _reload
from noizu_mcp.cli._reload import run_reloading, snapshot, watched_folders

STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"ready")
time.sleep(60)
"""


def test_python_files_are_looked_at(tmp_path):
    """Generated files are ignored, and a missing file counts as absent."""
    for name in ("a.py", "b.txt", "deep/c.py", "node_modules/d.py", "deep/__pycache__/e.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "gone.py").symlink_to("nowhere")
    assert set(snapshot([tmp_path])) == {str(tmp_path / "a.py"), str(tmp_path / "deep" / "c.py")}


@pytest.mark.parametrize(
    ("target", "folder"),
    [
        ("app.py", None),
        ("deep/app.py:Docs", None),
        ("{far}/app.py", "."),
        ("{far}/app.py:Docs", "."),
        ("../far/app.py:Docs", "."),
        ("node_modules/app.py", "../here/node_modules"),
        ("package.app:Docs", "package"),
        ("alone:Docs", "."),
        ("alone", "."),
        ("missing:Docs", None),
        ("pytest:Docs", "{pytest}"),
        ("six:Docs", None),
    ],
)
def test_where_the_target_is_is_watched(tmp_path, monkeypatch, target, folder):
    """The folder of the target is watched, unless it is inside this one or installed."""
    far = tmp_path / "far"
    for name in ("far/package/__init__.py", "far/alone.py", "here/app.py", "site-packages/six.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delitem(sys.modules, "six", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages"), str(far), *sys.path])
    here = (tmp_path / "here",)
    watched = watched_folders(target.format(far=far))
    if folder is None:
        assert watched == here
    else:
        installed = Path(pytest.__file__).parent
        assert watched == (*here, (far / folder.format(pytest=installed)).resolve())


class Said(io.StringIO):
    """Replaces stderr, and signals each output."""

    def __init__(self):
        super().__init__()
        self.event = threading.Event()
        self.lines = []

    def write(self, text):
        self.lines.append(text)
        if "changed" in text:
            self.event.set()


def test_a_change_starts_it_again(tmp_path, monkeypatch):
    """It runs until a signal; the watched folders and each change are printed."""
    here, file = tmp_path / "here", tmp_path / "far" / "app.py"
    for each in (here, file.parent):
        each.mkdir()
    file.touch()
    said = Said()
    monkeypatch.chdir(here)
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
    assert run_reloading(["--version"], str(file)) == 0
    changing.join()
    first, second, *_ = "".join(said.lines).splitlines()
    assert first == f"noizu-mcp: watching {here}, {file.parent}"
    assert second == f"noizu-mcp: {relative_path(str(file))} has changed"


async def test_it_looks_until_something_changes(tmp_path, monkeypatch, autojump_clock):
    """The check is repeated until a file has changed."""
    file, looks = tmp_path / "app.py", []
    file.touch()

    def look(folders):
        looks.append(folders)
        if len(looks) == 3:
            os.utime(file, (1, 1))
        return snapshot(folders)

    monkeypatch.setattr(_reload, "snapshot", look)
    before = snapshot([tmp_path])
    assert await _reload.wait_for_change(before, [tmp_path]) == relative_path(str(file))
    assert len(looks) == 3


@pytest.mark.parametrize("code", [STUBBORN, STUBBORN.replace("SIG_IGN", "SIG_DFL")])
async def test_a_program_that_does_not_end_is_killed(monkeypatch, code):
    """It is killed after a timeout; a program that reacts to SIGTERM is not."""
    monkeypatch.setattr(_reload, "PATIENCE", 0.2 if "SIG_IGN" in code else 20)
    command = [sys.executable, "-c", code]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    async with process.stdout:
        assert await process.stdout.receive_some() == b"ready"
        await _reload._end(process)
    ended_by = signal.SIGKILL if "SIG_IGN" in code else signal.SIGTERM
    assert process.returncode == -ended_by
