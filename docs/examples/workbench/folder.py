"""The files of a folder, which come, change and go while the program runs."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import trio
from watchfiles import watch

logger = logging.getLogger("workbench")

#: Larger files, and more of them, are mistakes.
MAX_BYTES = 256 * 1024
MAX_FILES = 1000
#: Milliseconds after which the folder is read even if the system reports nothing.
LOOK = 5_000

Made = TypeVar("Made")


class Folder(Generic[Made]):
    """Files, and the object that was made of each of them.

    An object is made once for each content of a file. While a file cannot be used, the object of
    its last good content stays, and the log says why.

    Args:
        path: The folder.
        pattern: The names of the files: `*.toml`.
        make: Makes the object of a file; it raises ValueError, or anything else.
    """

    def __init__(self, path: Path, pattern: str, make: Callable[[Path, bytes], Made]) -> None:
        self.path = path
        self._pattern = pattern
        self._make = make
        self._lock = threading.Lock()
        self._files: dict[Path, bytes] = {}
        self._made: dict[Path, Made] = {}

    def load(self) -> list[Made]:
        """Read the files; return the objects in the order of the names. It blocks."""
        with self._lock:
            files = self._read()
            made: dict[Path, Made] = {}
            for path, content in files.items():
                before = self._made.get(path)
                if self._files.get(path) != content:
                    before = self._made_of(path, content, before)
                if before is not None:
                    made[path] = before
            self._files, self._made = files, made
            return list(made.values())

    def _made_of(self, path: Path, content: bytes, before: Made | None) -> Made | None:
        try:
            return self._make(path, content)
        except Exception as error:  # noqa: BLE001 - a skill is code, and may raise anything
            kept = "is not used" if before is None else "stays as it was"
            logger.warning("%s %s: %s", path.name, kept, error)
            return before

    def _read(self) -> dict[Path, bytes]:
        files: dict[Path, bytes] = {}
        for path in sorted(self.path.glob(self._pattern))[:MAX_FILES]:
            try:
                with path.open("rb") as file:
                    content = file.read(MAX_BYTES + 1)
            except OSError:  # a folder, or a file that has just gone
                continue
            if len(content) <= MAX_BYTES:
                files[path] = content
            else:
                logger.error("%s is not used: it has more than %d bytes", path.name, MAX_BYTES)
        return files

    async def watch(self, changed: Callable[[], object]) -> None:
        """Report changes until it is cancelled.

        Args:
            changed: Called in a thread after each change.
        """
        stop = threading.Event()

        def follow() -> None:
            # Compared with what was told, and not with what was loaded: whoever loads a change
            # before it is noticed here must not keep it from the others.
            told = self._files or self._read()
            for _ in watch(
                self.path,
                stop_event=stop,
                rust_timeout=LOOK,
                yield_on_timeout=True,
                raise_interrupt=False,
                recursive=False,
            ):
                files = self._read()
                if files != told:
                    told = files
                    changed()

        try:
            # The thread ends by itself, a moment after the event is set.
            await trio.to_thread.run_sync(follow, abandon_on_cancel=True)
        finally:
            stop.set()
