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
#: Seconds that a list waits for a file that is being loaded.
PATIENCE = 2.0
#: Milliseconds that the watch waits for a report of the system; and such waits after which the
#: folder is read even without one.
WAIT, LOOK = 500, 10

Made = TypeVar("Made")


class Folder(Generic[Made]):
    """Files, and the object that was made of each of them.

    An object is made once for each content of a file. While a file cannot be used, the object of
    its last good content stays, and the log says why.

    Args:
        path: The folder.
        pattern: The names of the files: `*.toml`.
        make: Makes the object of a file; it raises ValueError, or any other exception.
        keeps: False to drop the object of a file that cannot be used.
    """

    def __init__(
        self,
        path: Path,
        pattern: str,
        make: Callable[[Path, bytes], Made],
        *,
        keeps: bool = True,
    ) -> None:
        self.path = path
        self._pattern = pattern
        self._make = make
        self._keeps = keeps
        self._lock = threading.Lock()
        # True if somebody got an old list, because a file was being loaded.
        self._owed = False
        # The files of the first list, which may be older than the watch.
        self._first: dict[Path, bytes] = {}
        self._files: dict[Path, bytes] = {}
        self._made: dict[Path, Made] = {}

    def load(self) -> list[Made]:
        """Read the files; return the objects in the order of the names. It blocks."""
        if not self._lock.acquire(timeout=PATIENCE):
            # The code of a file may take forever, and a thread cannot be ended.
            logger.error("a file in %s is still being loaded; the others stay", self.path.name)
            self._owed = True
            return list(self._made.values())
        try:
            files = self._read()
            made: dict[Path, Made] = {}
            for path, content in files.items():
                before = self._made.get(path)
                if self._files.get(path) != content:
                    before = self._made_of(path, content, before)
                if before is not None:
                    made[path] = before
            self._first = self._first or files
            self._files, self._made = files, made
            return list(made.values())
        finally:
            self._lock.release()

    def _made_of(self, path: Path, content: bytes, before: Made | None) -> Made | None:
        before = before if self._keeps else None
        try:
            if len(content) > MAX_BYTES:
                raise ValueError(f"it has more than {MAX_BYTES} bytes")  # noqa: TRY301
            return self._make(path, content)
        except Exception as error:  # noqa: BLE001 - a skill is code, and may raise anything
            kept = "is not used" if before is None else "stays as it was"
            logger.warning("%s %s: %s", path.name, kept, error)
            return before

    def _read(self) -> dict[Path, bytes]:
        files: dict[Path, bytes] = {}
        for path in sorted(self.path.glob(self._pattern))[:MAX_FILES]:
            try:
                # A named pipe would block: nobody writes to it.
                if path.is_file():
                    with path.open("rb") as file:
                        files[path] = file.read(MAX_BYTES + 1)
            except OSError:  # it has just gone, or may not be read
                continue
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
            told = self._first or self._read()
            reports = watch(
                self.path,
                stop_event=stop,
                rust_timeout=WAIT,
                yield_on_timeout=True,
                raise_interrupt=False,
                recursive=False,
            )
            for number, changes in enumerate(reports):
                # Also after the first wait: what changed before the watch began is not reported.
                if not changes and number % LOOK:
                    continue
                files = self._read()
                if files != told or (self._owed and not self._lock.locked()):
                    told, self._owed = files, False
                    changed()

        try:
            # The thread ends by itself, a moment after the event is set.
            await trio.to_thread.run_sync(follow, abandon_on_cancel=True)
        finally:
            stop.set()
