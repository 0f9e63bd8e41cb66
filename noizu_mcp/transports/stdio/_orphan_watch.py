"""The end of a server whose client was killed.

A program that is killed with SIGKILL, or by the system for its memory, cannot run any code. Its end
of the pipe closes with it, so a server that reads its stdin notices and exits. A server that hangs,
or that never reads, would stay forever. So a small shell script runs beside each server and reads
from a pipe that only this program holds: a line means that the server has ended gracefully; the end
of the pipe without a line means that this program has ended.

`PR_SET_PDEATHSIG` of Linux would need no process, but it fires when the *thread* ends that started
the server, and does not reach processes that a launcher such as `npx` starts. The shell ends the
whole group, and works on every POSIX system.
"""

import contextlib
import subprocess
from typing import Final

import trio

from ...engine import logger

#: The leader of the group is `$1`, the seconds between the steps are `$2`. The first wait is for
#: servers that exit by themselves when their stdin ends.
_SCRIPT: Final = """
read -r line && exit
sleep "$2"; kill -s TERM -- "-$1" 2>/dev/null || exit
sleep "$2"; kill -s KILL -- "-$1" 2>/dev/null
"""


class OrphanWatch:
    """A process that ends a group of processes when this program is gone.

    Args:
        shell: The process; None if the system has no shell: then the server is not watched.
    """

    def __init__(self, shell: trio.Process | None) -> None:
        self._shell = shell

    async def aclose(self) -> None:
        """Stop the watch, after the group has ended."""
        if self._shell is None or self._shell.stdin is None:
            return
        with contextlib.suppress(trio.BrokenResourceError):  # it was killed
            await self._shell.stdin.send_all(b"\n")
        await self._shell.stdin.aclose()
        await self._shell.wait()


async def watch_orphans(leader: int, seconds: float) -> OrphanWatch:
    """Watch a group of processes while this program runs.

    Args:
        leader: The process that leads the group.
        seconds: The time for the group to exit by itself, and again after SIGTERM.
    """
    command = ["/bin/sh", "-c", _SCRIPT, "noizu-mcp-watch", str(leader), f"{seconds:g}"]
    try:
        shell = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.PIPE,
            # The shell would keep this program's stdout open after its end.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Ctrl-C in the terminal must not reach it.
            start_new_session=True,
        )
    except OSError as error:
        logger.debug("nobody watches the server %d: %s", leader, error)
        return OrphanWatch(None)
    return OrphanWatch(shell)
