"""`--reload`: run a command again whenever a file of the program changes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import trio

from .._util import relative_path
from ..transports import ending_on_signals

#: Seconds between two looks at the files.
PERIOD: Final = 0.5
#: Seconds in which the program must have ended before it is killed.
PATIENCE: Final = 12.0
#: Folders that hold nothing which is written by hand.
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", ".git", ".venv"})

Snapshot = Mapping[str, float]


def run_reloading(words: list[str]) -> int:
    """Run `noizu-mcp` with these words, and again when a file below this folder changes.

    A program that fails is started again with the next change: that may mend it.

    Args:
        words: The arguments.

    Returns:
        The exit status of the last run, once SIGINT or SIGTERM comes.
    """
    return trio.run(partial(_supervise, [sys.executable, "-m", "noizu_mcp", *words]))


async def _supervise(command: list[str]) -> int:
    with trio.CancelScope() as everything, ending_on_signals(everything.cancel):
        while True:
            before = snapshot(Path.cwd())
            process = await trio.lowlevel.open_process(command, stdin=subprocess.DEVNULL)
            try:
                changed = await _wait_for_change(before)
                sys.stderr.write(f"noizu-mcp: {changed} has changed\n")
            finally:
                await _end(process)
    return 0


async def _wait_for_change(before: Snapshot) -> str:
    while True:
        await trio.sleep(PERIOD)
        after = await trio.to_thread.run_sync(snapshot, Path.cwd())
        changed = {path for path, _ in before.items() ^ after.items()}
        if changed:
            return relative_path(min(changed))


async def _end(process: trio.Process) -> None:
    with trio.CancelScope(shield=True):
        process.terminate()
        with trio.move_on_after(PATIENCE):
            await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()


def snapshot(folder: Path) -> Snapshot:
    """Note when each Python file below a folder was changed.

    Args:
        folder: The folder.
    """
    return dict(_stamps(folder))


def _stamps(folder: Path) -> Iterator[tuple[str, float]]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in files:
            if name.endswith(".py"):
                path = Path(root, name)
                try:
                    yield str(path), path.stat().st_mtime
                except OSError:
                    continue  # it is being replaced: the next look sees what became of it
