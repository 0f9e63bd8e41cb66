"""The client's side of stdio: a server as a child process."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import trio

from .._errors import TransportError
from .._limits import Limits
from ._lines import LineStream

#: Seconds that a server gets to exit by itself, and again after SIGTERM (`basic/lifecycle`).
EXIT_TIMEOUT: Final = 2.0

#: What a child inherits unless told otherwise: no secrets that happen to be in the environment.
INHERITED: Final = (
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "SYSTEMROOT", "TEMP", "USERNAME",
)  # fmt: skip


@attrs.frozen(init=False)
class Stdio:
    """A server that is started as a child process and spoken to over its stdin and stdout.

    Args:
        command: The program, by path or by name.
        args: Its arguments; no shell is involved.
        env: Variables set beside the few harmless ones that are inherited.
        cwd: Its working directory; that of this program by default.
        stderr: Where its stderr goes, as `subprocess.Popen` takes it; None: where ours goes.
    """

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    stderr: Any

    def __init__(
        self,
        command: str,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stderr: Any = None,
    ) -> None:
        self.__attrs_init__(command, args, dict(env or {}), cwd, stderr)

    def environment(self) -> dict[str, str]:
        """Make the environment of the child."""
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        return {**inherited, **self.env}


@asynccontextmanager
async def open_process(
    target: Stdio, limit: int = Limits().message_size
) -> AsyncIterator[tuple[LineStream, trio.Process]]:
    """Start a server; on the way out end it: close its stdin, wait, SIGTERM, wait, SIGKILL.

    Args:
        target: The command.
        limit: The longest message taken, in bytes.

    Yields:
        The stream of its messages, and the process.

    Raises:
        TransportError: It could not be started.
    """
    environment = target.environment()
    program = shutil.which(target.command, path=environment.get("PATH"))
    if program is None:
        raise TransportError(f"command not found: {target.command}")
    child_in, our_out = os.pipe()
    our_in, child_out = os.pipe()
    try:
        process = await trio.lowlevel.open_process(
            [program, *target.args],
            stdin=child_in,
            stdout=child_out,
            stderr=target.stderr,
            env=environment,
            cwd=target.cwd,
        )
    except OSError as error:
        os.close(our_in)
        os.close(our_out)
        raise TransportError(f"cannot start {target.command}: {error}") from error
    finally:
        os.close(child_in)
        os.close(child_out)
    stream = LineStream(our_in, our_out, limit)
    try:
        yield stream, process
    finally:
        with trio.CancelScope(shield=True):
            await stream.aclose()
            await _end(process)


async def _end(process: trio.Process) -> None:
    for escalate in (process.terminate, process.kill):
        with trio.move_on_after(EXIT_TIMEOUT):
            await process.wait()
            return
        escalate()
    await process.wait()
