"""The entry of a server: the command that starts it from any folder, or its URL."""

import argparse
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final, NamedTuple

from ..._util import relative_path
from ...server import missing_requirements, script_requirements
from ...transports import diverted_stdio
from .._arguments import read_texts
from .._errors import USAGE, CommandError
from .._target import load_server
from .._use import read_url
from ._hosts import HostEntry

#: Names that every host accepts; some put them into names of tools.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")


class NamedEntry(NamedTuple):
    """An entry and its name in the settings."""

    name: str
    entry: HostEntry


def read_entry(args: argparse.Namespace) -> NamedEntry:
    """Make the entry of the server on the command line.

    A target in Python is imported, so that a target that cannot start is refused here, not by the
    host.

    Args:
        args: `target` or `process`, `name`, `env` and `header`.

    Raises:
        CommandError: The target cannot be loaded, an option is malformed, or a name is needed.
    """
    env = read_texts(args.env)
    if args.process is None and "://" in args.target:
        if env:
            raise CommandError("--env is for a command; a server at a URL has its own", USAGE)
        http = read_url(args.target, args.header)
        headers = http.headers if isinstance(http.headers, dict) else {}
        return NamedEntry(
            _checked_name(args.name, "a URL"), HostEntry(url=http.url, headers=headers)
        )
    if args.header:
        raise CommandError("--header goes with a URL; a command takes --env", USAGE)
    if args.process is not None:
        command = tuple(_anywhere(args.process, absolute=args.scope == "user"))
        return NamedEntry(
            _checked_name(args.name, "a command"), HostEntry(command=command, env=env)
        )
    return _own_server(args.target, args.name, env)


def _checked_name(name: str | None, what: str) -> str:
    if name is None:
        raise CommandError(f"give --name NAME: {what} has none that a host could show", USAGE)
    if not _NAME.fullmatch(name):
        raise CommandError("--name takes up to 64 letters, digits, - and _", USAGE)
    return name


def _anywhere(process: list[str], *, absolute: bool) -> list[str]:
    """Make the paths in a command absolute: a host starts it in a folder of its own."""
    program, *arguments = process
    found = shutil.which(program)
    if found is None:
        raise CommandError(f"command not found: {program}", USAGE)
    # A project is shared with others, whose programs are elsewhere.
    if absolute or os.path.dirname(program):
        program = os.path.abspath(found)
    relative = (".", "..")
    return [
        program,
        *(
            os.path.abspath(word)
            if os.path.isfile(word) or word in relative or word.startswith(("./", "../"))
            else word
            for word in arguments
        ),
    ]


def _own_server(target: str, name: str | None, env: dict[str, str]) -> NamedEntry:
    place, colon, server = target.rpartition(":") if ".py:" in target else (target, "", "")
    is_file = place.endswith(".py")
    if is_file and os.path.isfile(place):
        place = os.path.abspath(place)
        wanted = script_requirements(place)
        if missing_requirements(wanted):
            command = (*_uv(wanted), "noizu-mcp", "run", f"{place}{colon}{server}")
            stem = _NOT_IN_NAMES.sub("-", Path(place).stem)
            return NamedEntry(
                _checked_name(name or stem, "it"), HostEntry(command=command, env=env)
            )
    # What the module prints must not mix with the output of this command.
    with diverted_stdio():
        loaded = load_server(target)
    if name is None:
        name = _NOT_IN_NAMES.sub("-", loaded.options.name)[:64]
    if is_file:
        target = f"{place}{colon}{server}"
    else:
        env = _importable(target, env)
    return NamedEntry(
        _checked_name(name, "it"), HostEntry(command=(*own_program(), "run", target), env=env)
    )


def own_program() -> tuple[str, ...]:
    """Return the command of this program in its own environment."""
    # Not resolved: Python finds the packages of a virtual environment by this link.
    folder = Path(os.path.abspath(sys.executable)).parent
    script = folder / ("noizu-mcp.exe" if sys.platform == "win32" else "noizu-mcp")
    return (str(script),) if script.is_file() else (sys.executable, "-m", "noizu_mcp")


def _importable(target: str, env: dict[str, str]) -> dict[str, str]:
    """Add the current folder to the path of Python if the module was found in it."""
    place = target.partition(":")[0]
    folder = Path(getattr(sys.modules[place], "__file__", None) or "").parent
    for _ in range(place.count(".") + hasattr(sys.modules[place], "__path__")):
        folder = folder.parent
    if folder != Path.cwd():
        return env
    paths = [str(folder), *filter(None, [env.get("PYTHONPATH")])]
    return {**env, "PYTHONPATH": os.pathsep.join(paths)}


def _uv(wanted: list[str]) -> tuple[str, ...]:
    """Return the command of uv that installs the dependencies of a script (PEP 723)."""
    program = shutil.which("uv")
    if program is None:
        missing = ", ".join(missing_requirements(wanted))
        text = f"the script needs {missing}, not installed here; install them, or uv"
        raise CommandError(text)
    if not any(re.match(r"noizu[-_.]mcp\b", each, re.IGNORECASE) for each in wanted):
        wanted = [*wanted, "noizu-mcp"]
    options = [word for each in wanted for word in ("--with", each)]
    return (os.path.abspath(program), "run", "--no-project", *options)


def shown_path(path: Path) -> str:
    """Shorten a path for messages: relative to the current folder, or to the home folder."""
    text, home = str(path), str(Path.home())
    of_home = f"~{text.removeprefix(home)}" if text.startswith(home + os.sep) else text
    return min(relative_path(text), of_home, key=len)
