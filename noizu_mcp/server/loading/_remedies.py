"""Advice for user files that cannot be imported."""

import importlib.metadata
import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..._util import relative_path

#: A block of inline metadata (PEP 723).
_BLOCK: Final = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
#: The name at the start of a requirement (PEP 508).
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def remedy_of(error: BaseException | None, place: str, name: str) -> str | None:
    """Explain how to fix a file that cannot be imported.

    Args:
        error: The failure.
        place: The file.
        name: The rest of the target, from its colon.

    Returns:
        The cause and the remedy, or None if they are unknown.
    """
    # A file that is run has no package. Packages that it imports do, and fail differently.
    if isinstance(error, ImportError) and "no known parent package" in str(error):
        module, folder = _as_module(Path(place).resolve())
        where = "" if folder == Path.cwd() else f" in the folder {relative_path(str(folder))}"
        return f"it is a part of a package; use {module}{name}{where}"
    if isinstance(error, ModuleNotFoundError) and (wanted := script_requirements(place)):
        missing = missing_requirements(wanted)
        if missing:
            options = " ".join(f"--with {shlex.quote(each)}" for each in wanted)
            start = f"start it with: uv run {options} noizu-mcp run {shlex.quote(place + name)}"
            return f"the script needs {', '.join(missing)}, not installed here; {start}"
    return None


def _as_module(path: Path) -> tuple[str, Path]:
    """Find the name by which a file is imported, and the folder to import it from."""
    folder = path.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    if folder == path.parent:
        # A package without `__init__.py` may begin at any folder: use the current one if possible.
        folder = Path.cwd() if path.is_relative_to(Path.cwd()) else folder.parent
    return ".".join(path.relative_to(folder).with_suffix("").parts), folder


def script_requirements(place: str) -> list[str]:
    """Read the dependencies of a script (PEP 723); empty without a valid block."""
    text = Path(place).read_text(encoding="utf-8", errors="replace")
    found = _BLOCK.search(text)
    if found is None:
        return []
    lines = found["content"].splitlines()
    try:
        block = tomllib.loads("\n".join(line.removeprefix("#").removeprefix(" ") for line in lines))
    except tomllib.TOMLDecodeError:
        return []
    wanted = block.get("dependencies")
    return [each for each in wanted if isinstance(each, str)] if isinstance(wanted, list) else []


def missing_requirements(wanted: Sequence[str]) -> list[str]:
    """Return the requirements whose packages are not installed. Versions are not compared."""
    return [each for each in wanted if not _is_installed(each)]


def _is_installed(requirement: str) -> bool:
    name = _NAME.match(requirement)
    try:
        importlib.metadata.distribution(name[0] if name else requirement)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
    return True
