"""The end of a server whose client was killed.

A program that is killed with SIGKILL, or by the system for its memory, runs no code of ours any
more. Its end of the pipe closes with it, so a server that reads its stdin notices and exits. One
that hangs, or that never reads, would be left behind for ever. So a shell of a few lines stands
beside each server and reads from a pipe that only this program holds: a line means that the server
has ended in order, the end of the pipe without one means that this program has.

`PR_SET_PDEATHSIG` of Linux would need no process, but it fires when the *thread* ends that started
the server, and does not reach what a launcher such as `npx` starts. The shell ends the whole group,
and works on every POSIX system.
"""

import contextlib
import subprocess
from typing import Final

import trio

from ...engine import logger

#: The leader of the group is `$1`, the seconds between the steps are `$2`. The first wait is for
#: servers that exit by themselves at the end of their stdin.
_SCRIPT: Final = """
read -r line && exit
sleep "$2"; kill -s TERM -- "-$1" 2>/dev/null || exit
sleep "$2"; kill -s KILL -- "-$1" 2>/dev/null
"""


class OrphanWatch:
    """A process that ends a group of processes when this program is gone.

    Args:
        shell: The process; None where the system has no shell: then the server is not watched.
    """

    def __init__(self, shell: trio.Process | None) -> None:
        self._shell = shell

    async def aclose(self) -> None:
        """Dismiss the watch, once the group has ended."""
        if self._shell is None or self._shell.stdin is None:
            return
        with contextlib.suppress(trio.BrokenResourceError):  # somebody killed it
            await self._shell.stdin.send_all(b"\n")
        await self._shell.stdin.aclose()
        await self._shell.wait()


async def watch_orphans(leader: int, seconds: float) -> OrphanWatch:
    """Watch a group of processes for as long as this program lives.

    Args:
        leader: The process that leads the group.
        seconds: The time that the group gets to exit by itself, and again after SIGTERM.
    """
    command = ["/bin/sh", "-c", _SCRIPT, "noizu-mcp-watch", str(leader), f"{seconds:g}"]
    try:
        shell = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.PIPE,
            # Ours would be held open by it when we are gone.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Ctrl-C on the terminal must not reach it.
            start_new_session=True,
        )
    except OSError as error:
        logger.debug("nobody watches the server %d: %s", leader, error)
        return OrphanWatch(None)
    return OrphanWatch(shell)
