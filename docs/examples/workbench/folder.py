"""The files of a folder, which come, change and go while the program runs."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import trio
from watchfiles import watch

logger = logging.getLogger("workbench")

#: Larger files, and more of them, are mistakes.
MAX_BYTES = 256 * 1024
MAX_FILES = 1000
#: Seconds that a list waits for a file that is being loaded, and for all of them.
PATIENCE, LONGEST = 2.0, 4.0
#: Files that are being loaded at one time. The code of a file may take forever, and nothing can end
#: a thread.
MAX_LOADING = 16
#: Milliseconds that the watch waits for a report of the system; and such waits after which the
#: folder is read even without one.
WAIT, LOOK = 500, 10

Made = TypeVar("Made")


class Loading(threading.Thread, Generic[Made]):
    """Makes the object of a file, in a thread of its own.

    Args:
        make: Makes it.
        path: The file.
        content: Its content.

    Attributes:
        content: See above.
        made: The object; None until it is made.
        error: Why it cannot be made, if it cannot.
        is_told: True once somebody was told that it has ended.
    """

    def __init__(self, make: Callable[[Path, bytes], Made], path: Path, content: bytes) -> None:
        super().__init__(name=f"loads {path.name}", daemon=True)
        self.content = content
        self.made: Made | None = None
        self.error: Exception | None = None
        self.is_told = False
        self._make = make
        self._path = path

    def run(self) -> None:
        try:
            if len(self.content) > MAX_BYTES:
                raise ValueError(f"it has more than {MAX_BYTES} bytes")  # noqa: TRY301
            self.made = self._make(self._path, self.content)
        except Exception as error:  # noqa: BLE001 - a skill is code, and may raise anything
            self.error = error


class Folder(Generic[Made]):
    """Files, and the object that was made of each of them.

    An object is made once for each content of a file. While a file cannot be used, or takes long,
    the object of its last good content stays, and the log says why. The others are not concerned.

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
        # True if somebody got an old list, because the files were being read.
        self._owed = False
        # The last content of each file, while its object is made, and all threads that do so.
        self._loading: dict[Path, Loading[Made]] = {}
        self._threads: list[Loading[Made]] = []
        # True if a file is not loaded yet, since others took too long.
        self._waits = False
        # The files of the first list, which may be older than the watch.
        self._first: dict[Path, bytes] = {}
        self._files: dict[Path, bytes] = {}
        self._made: dict[Path, Made] = {}

    def load(self) -> list[Made]:
        """Read the files; return the objects in the order of the names. It blocks."""
        if not self._lock.acquire(timeout=LONGEST):
            self._owed = True
            return list(self._made.values())
        try:
            files = self._read()
            made: dict[Path, Made] = {}
            end = time.monotonic() + LONGEST
            self._waits = False
            for path, content in files.items():
                found = self._made.get(path)
                if self._files.get(path) != content:
                    found = self._load(path, content, end)
                if found is not None:
                    made[path] = found
            self._first = self._first or files
            self._files = {path: each for path, each in self._files.items() if path in files}
            self._loading = {
                path: each
                for path, each in self._loading.items()
                if files.get(path) == each.content
            }
            self._made = made
            if len(self._threads) >= MAX_LOADING:
                logger.error("too many files of %s are being loaded; others wait", self.path.name)
            return list(made.values())
        finally:
            self._lock.release()

    def _load(self, path: Path, content: bytes, end: float) -> Made | None:
        """Load a file that has changed; return its object, or the one before."""
        before = self._made.get(path) if self._keeps else None
        kept = "is not used" if before is None else "stays as it was"
        loading = self._loading.get(path)
        if loading is None or loading.content != content:
            self._threads = [each for each in self._threads if each.is_alive()]
            if len(self._threads) >= MAX_LOADING or time.monotonic() >= end:
                self._waits = True
                return before
            loading = self._loading[path] = Loading(self._make, path, content)
            self._threads.append(loading)
            loading.start()
            loading.join(PATIENCE)
            if loading.is_alive():
                logger.error("%s %s: it is still being loaded", path.name, kept)
        if loading.is_alive():
            return before
        del self._loading[path]
        self._files[path] = content
        if loading.error is not None:
            logger.warning("%s %s: %s", path.name, kept, loading.error)
            return before
        return loading.made

    def _take_news(self) -> bool:
        """Tell, once, whether the last list has come out of date without a change of a file."""
        if self._lock.locked():
            return False
        ended = [each for each in self._loading.values() if not each.is_alive()]
        has_news = self._owed or not all(each.is_told for each in ended)
        if self._waits and sum(each.is_alive() for each in self._threads) < MAX_LOADING:
            has_news, self._waits = True, False
        self._owed = False
        for each in ended:
            each.is_told = True
        return has_news

    def _read(self) -> dict[Path, bytes]:
        files: dict[Path, bytes] = {}
        for path in sorted(self.path.glob(self._pattern))[:MAX_FILES]:
            try:
                # A named pipe without a writer would block.
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
                if not (has_news := self._take_news()) and not changes and number % LOOK:
                    continue
                files = self._read()
                if files != told or has_news:
                    told = files
                    changed()

        try:
            # The thread ends by itself, a moment after the event is set.
            await trio.to_thread.run_sync(follow, abandon_on_cancel=True)
        finally:
            stop.set()
