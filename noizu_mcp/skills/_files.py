"""The files of skills, found and read once; nothing outside of the folder is."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from .._errors import Problem
from .._limits import MIB
from .._util import relative_path

#: The file that makes a folder a skill.
MANIFEST: Final = "SKILL.md"
#: SEP-2640, "Limits": what every host has to take; one may refuse more.
MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * MIB
#: Files and folders below one `SkillFolder`: somebody meant another folder.
MAX_ENTRIES: Final = 20_000
#: Folders that tools leave behind; so are all names that begin with a dot, `.env` among them.
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})

#: Characters of a path that RFC 3986 does not encode; `%` is not among them.
_SAFE: Final = "!$&'()*+,;=:@"
#: The names of a path below the folder.
Parts = tuple[str, ...]


class Files:
    """The files below a folder.

    Args:
        root: The folder, an absolute path.

    Attributes:
        root: See Args.
        problems: The files that cannot be served, and the reasons.
        found: The files, by their names from the root, in order.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []
        self.found: dict[Parts, Path] = {}
        self._said: set[Problem] = set()
        self._links: set[Parts] = set()
        self._data: dict[Path, bytes | None] = {}
        try:
            self._walk()
        except OSError as error:
            self.problem(Path(error.filename or root), f"cannot be read: {error.strerror}")
        if self.problems:
            self.found.clear()

    def problem(self, path: Path, text: str, line: int | None = None) -> None:
        """Note a problem of a file or a folder."""
        shown = relative_path(str(path))
        if not shown.isprintable():
            shown = ascii(shown)  # a problem is one line
        if line is None:
            text = f"{shown} {text}"
        problem = Problem("", text, None if line is None else shown, line)
        if problem not in self._said:  # a file may belong to several skills
            self._said.add(problem)
            self.problems.append(problem)

    def _walk(self) -> None:
        waiting: list[Parts] = [()]
        count = 0
        while waiting:
            parts = waiting.pop()
            for entry in _entries(self.root.joinpath(*parts)):
                count += 1
                if count > MAX_ENTRIES:
                    self.problem(self.root, f"has more than {MAX_ENTRIES} files; name the skill")
                    return
                below = (*parts, entry.name)
                if entry.is_symlink():
                    self._links.add(below)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(below)
                else:
                    self.found[below] = Path(entry.path)
        self.found = dict(sorted(self.found.items()))

    def read(self, homes: Iterable[Parts]) -> dict[Parts, dict[Parts, bytes]]:
        """Read the files of some folders and of the folders in them, and collect the problems.

        Returns:
            For each folder the files by their names from the root; nothing if one of them cannot
            be served.
        """
        paths: dict[Parts, dict[Parts, Path]] = {home: {} for home in homes}
        for parts, path in self.found.items():
            within = [parts[:at] for at in range(len(parts)) if parts[:at] in paths]
            for home in within:
                paths[home][parts] = path
            # The link is there so that the skill is served.
            if not within and parts in self._links and path.joinpath(MANIFEST).is_file():
                self.problem(path, "is a link to a skill; give it a SkillFolder of its own")
        return {home: self._read(home, below) for home, below in paths.items()}

    def _read(self, home: Parts, paths: Mapping[Parts, Path]) -> dict[Parts, bytes]:
        place = self.root.joinpath(*home)
        sizes = [self._size(parts, path) for parts, path in paths.items()]
        total = sum(size for size in sizes if size is not None)
        if len(paths) > MAX_FILES:
            self.problem(place, f"has {len(paths)} files; a skill has at most {MAX_FILES}")
        elif total > MAX_BYTES:
            self.problem(place, f"has {total} bytes; a skill has at most {MAX_BYTES}")
        elif None not in sizes:
            read = {parts: self._bytes(path) for parts, path in paths.items()}
            found = {parts: data for parts, data in read.items() if data is not None}
            return found if len(found) == len(read) else {}
        return {}

    def _size(self, parts: Parts, path: Path) -> int | None:
        try:
            fault = self._fault(parts, path)
            if fault is None:
                return path.stat().st_size
        except OSError as error:  # it is gone already
            fault = f"cannot be read: {error.strerror}"
        self.problem(path, fault)
        return None

    def _bytes(self, path: Path) -> bytes | None:
        if path not in self._data:
            try:
                self._data[path] = path.read_bytes()
            except OSError as error:
                self._data[path] = None
                self.problem(path, f"cannot be read: {error.strerror}")
        return self._data[path]

    def _fault(self, parts: Parts, path: Path) -> str | None:
        if not "".join(parts).isprintable():
            return "has a name that is not printable"
        if parts in self._links:
            return self._link_fault(path)
        # To open a pipe or a device may take forever.
        return None if stat.S_ISREG(path.lstat().st_mode) else "is no file"

    def _link_fault(self, path: Path) -> str | None:
        # Unlike `Path.resolve`, this raises nothing for links that go round in a circle.
        root, target = Path(os.path.realpath(self.root)), Path(os.path.realpath(path))
        if target.is_dir():
            return "is a link to a folder; copy what it needs"
        if not target.is_file():
            return "is a link to nothing that can be read"
        inside = Path(os.path.relpath(target, root)).parts
        if any(map(is_left_out, inside)):  # `..` begins with a dot, too
            return "is a link that leads out of what is served; copy the file"
        return None


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not is_left_out(entry.name))


def quote_path(parts: Iterable[str]) -> str:
    """Write the names of a path as the path of a URI."""
    return "/".join(quote(each, safe=_SAFE) for each in parts)


def is_left_out(name: str) -> bool:
    """Tell whether files and folders of a name are never served."""
    return name.startswith(".") or name in _LEFT_OUT
