"""`--reload`: run a command again whenever a file of the program changes."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Final

import trio

from .._util import relative_path
from ..transports import ending_on_signals
from ._say import note

#: Seconds between two looks at the files.
PERIOD: Final = 0.5
#: Seconds in which the program must have ended before it is killed.
PATIENCE: Final = 12.0
#: Folders without files that are written by hand.
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", ".git", ".venv"})

Snapshot = Mapping[str, float]
#: No bytecode is written: Python takes that of an older version for current if the file was changed
#: within a second and is as long as before.
PYTHON: Final = (sys.executable, "-B", "-m", "noizu_mcp")


def run_reloading(words: list[str], target: str) -> int:
    """Run `noizu-mcp` with these words, and again when a file that is watched changes.

    A program that fails is started again with the next change: that may mend it.

    Args:
        words: The arguments.
        target: The server; its folder is watched beside the current one.

    Returns:
        The exit status of the last run, once SIGINT or SIGTERM comes.
    """
    folders = watched_folders(target)
    note(f"watching {', '.join(map(str, folders))}")
    # Whatever ends this process, the server must not stay behind and keep its port.
    command = [*PYTHON, *words, "--parent", str(os.getpid())]
    return trio.run(partial(_supervise, command, folders))


async def _supervise(command: list[str], folders: Sequence[Path]) -> int:
    with trio.CancelScope() as everything, ending_on_signals(everything.cancel):
        while True:
            # Before the start: a file that changes while the program loads must start it again.
            before = snapshot(folders)
            process = await trio.lowlevel.open_process(command, stdin=subprocess.DEVNULL)
            try:
                changed = await wait_for_change(before, folders)
                note(f"{changed} has changed")
            finally:
                await _end(process)
    return 0


async def wait_for_change(before: Snapshot, folders: Sequence[Path]) -> str:
    """Wait until files differ from a snapshot.

    Args:
        before: The snapshot.
        folders: The folders that it is of.

    Returns:
        One of the files that differ.
    """
    while True:
        await trio.sleep(PERIOD)
        # In a thread: thousands of files take a while, and signals must be answered meanwhile.
        after = await trio.to_thread.run_sync(snapshot, folders)
        changed = {path for path, _ in before.items() ^ after.items()}
        if changed:
            return relative_path(min(changed))


async def _end(process: trio.Process) -> None:
    with trio.CancelScope(shield=True):
        # First gracefully: the server answers its clients. It limits the time itself.
        process.terminate()
        with trio.move_on_after(PATIENCE):
            await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()


def watched_folders(target: str) -> tuple[Path, ...]:
    """List the watched folders: the current one, and the folder of a target outside of it.

    Args:
        target: As `load_server` takes it.
    """
    here = Path.cwd()
    folder = _folder_of(target)
    # A folder below a skipped one is not reached from here: it is watched on its own.
    if folder is None or (
        folder.is_relative_to(here) and _SKIPPED.isdisjoint(folder.relative_to(here).parts)
    ):
        return (here,)
    return (here, folder)


def _folder_of(target: str) -> Path | None:
    before, colon, after = target.rpartition(":")
    place = before if colon else after
    if place.endswith(".py"):
        return Path(place).resolve().parent
    spec = find_spec(place.partition(".")[0])
    if spec is None:  # it is in this folder, or nowhere; the server will say so
        return None
    if spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0]).resolve()
    folder = Path(str(spec.origin)).resolve().parent
    # A file that is installed alone has hundreds of neighbours, none of them written by hand.
    return None if folder.name in _SKIPPED else folder


def snapshot(folders: Sequence[Path]) -> Snapshot:
    """Note when each Python file below some folders was changed.

    Args:
        folders: The folders.
    """
    found: dict[str, float] = {}
    for root, inside, files in chain.from_iterable(map(os.walk, folders)):
        # In place: `os.walk` then does not enter them at all.
        inside[:] = [name for name in inside if name not in _SKIPPED]
        for path in (Path(root, name) for name in files if name.endswith(".py")):
            # A file that is being replaced is not there for a moment; the next look sees it.
            with suppress(OSError):
                found[str(path)] = path.stat().st_mtime
    return found
