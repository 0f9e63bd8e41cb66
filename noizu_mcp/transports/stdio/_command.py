"""`Stdio`: a server given by its command, with arguments, environment and folder."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..._errors import TransportError
from ..._util import is_number
from ..._value import Value

#: Variables that a child inherits. Others may be secrets, and must be passed explicitly.
INHERITED: Final = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
    "USER", "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "SYSTEMROOT", "TEMP",
    "USERNAME",
)  # fmt: skip
#: Seconds for a server to exit by itself, and again after SIGTERM (`basic/lifecycle`).
EXIT_TIMEOUT: Final = 2.0


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, got {value!r}")
    return value


@attrs.frozen(init=False, eq=False, repr=False)
class Stdio(Value):
    """A server that runs as a child process and communicates over its stdin and stdout.

    Args:
        command: The program, by name or by path; a relative path starts at `cwd`.
        args: Its arguments; no shell is involved.
        env: Variables to set in addition to the few harmless ones that are inherited.
        cwd: Its working directory; by default the directory of this program.
        stderr: The target of its stderr: a file, a descriptor or `subprocess.DEVNULL`. None for the
            stderr of this program. `subprocess.PIPE` to keep it for error messages.
        exit_timeout: Seconds for the server to exit after the end of its stdin, and again after
            SIGTERM; then it is killed.

    Raises:
        TypeError: An argument is not text.
        ValueError: `stderr` is `subprocess.STDOUT`, which carries the protocol, or `exit_timeout`
            is not a number above 0.
    """

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    stderr: Any
    exit_timeout: float

    def __init__(
        self,
        command: str | os.PathLike[str],
        *args: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stderr: object = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        if stderr == subprocess.STDOUT:
            raise ValueError("stderr=STDOUT would mix the log of the server into the protocol")
        if not is_number(exit_timeout) or exit_timeout <= 0:
            raise ValueError(f"exit_timeout must be seconds above 0, got {exit_timeout!r}")
        for name, value in (env or {}).items():
            _text(name, "a name in env")
            _text(value, f"env[{name!r}]")
        folder = None if cwd is None else _text(os.fspath(cwd), "cwd")
        words = tuple(_text(os.fspath(word), "an argument") for word in args)
        program = _text(os.fspath(command), "command")
        self.__attrs_init__(program, words, dict(env or {}), folder, stderr, exit_timeout)

    def __repr__(self) -> str:
        words = map(repr, (self.command, *self.args))
        # Only the names of `env`: the values are keys and passwords.
        shown = {"env": sorted(self.env), "cwd": self.cwd, "stderr": self.stderr}
        if self.exit_timeout != EXIT_TIMEOUT:
            shown["exit_timeout"] = self.exit_timeout
        more = (f"{name}={value!r}" for name, value in shown.items() if value not in (None, []))
        return f"Stdio({', '.join((*words, *more))})"

    def environment(self) -> dict[str, str]:
        """Make the environment of the child."""
        # Values that begin with () are functions exported by bash: code, not settings.
        inherited = {
            name: os.environ[name]
            for name in INHERITED
            if not os.environ.get(name, "()").startswith("()")
        }
        return {**inherited, **self.env}

    def program(self) -> str:
        """Find the program.

        Returns:
            Its absolute path.

        Raises:
            TransportError: The program does not exist, or cannot be executed.
        """
        if os.path.dirname(self.command):
            # Checked here, since the system's error could also mean that `cwd` does not exist.
            path = os.path.abspath(os.path.join(self.cwd or "", self.command))
            if not os.path.isfile(path):
                raise TransportError(f"command not found: {self.command}")
            if not os.access(path, os.X_OK):
                raise TransportError(f"command is not executable: {self.command}")
            return path
        path_variable = self.environment().get("PATH", os.defpath)
        # The `PATH` of the child, which `env` may have changed.
        found = shutil.which(self.command, path=path_variable)
        if found is None:
            raise TransportError(f"command not found: {self.command}")
        return os.path.abspath(found)
