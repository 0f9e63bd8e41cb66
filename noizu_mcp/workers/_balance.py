"""New connections of several processes that accept from one socket, shared evenly.

Theory of operation. The system wakes all processes that wait for a connection, always in the same
order, so the first one would accept nearly all of them. Here each process notes in shared memory
how many connections it has, and when it accepted the last one. A process with more connections than
another one, or with as many and a later last one, leaves a connection to it for a moment. If it is
still there afterwards, the other one is busy, and the process accepts it: one connection, then two,
and so on, so that a process that hangs slows the others down for a few milliseconds only.
"""

import mmap
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Final

import attrs
import trio

#: Seconds for which a connection is left to another process.
LEFT: Final = 0.002
#: Connections that a process accepts at most in one turn.
MOST: Final = 64
#: The number of connections of a process that accepts none.
_ABSENT: Final = -1
#: Numbers for each process: its connections, and the time of the last one.
_SLOT: Final = 2
_BYTES: Final = 8


def open_balance(count: int) -> IO[bytes]:
    """Make the shared memory of a number of processes, as a file that only they can open."""
    file = _open_file()
    file.write(_ABSENT.to_bytes(_BYTES, sys.byteorder, signed=True) * (_SLOT * count))
    file.flush()
    return file


def _open_file() -> IO[bytes]:
    # A container may have no folder that can be written to.
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("noizu-mcp"), "w+b")
    return tempfile.TemporaryFile()


class Balance:
    """The connections of several processes, as one of them sees it.

    Args:
        descriptor: The file of `open_balance`.
        number: The process, from 0.
    """

    def __init__(self, descriptor: int, number: int) -> None:
        self._slots = memoryview(mmap.mmap(descriptor, 0)).cast("q")
        self._own = number * _SLOT
        self._most = 1

    async def wait_turn(self, connections: int) -> int:
        """Leave a connection to another process, if one should have it.

        Args:
            connections: The number of connections of this process.

        Returns:
            The number of connections to accept now, if there are as many.
        """
        slots, own = self._slots, self._own
        slots[own] = connections
        mine = connections, slots[own + 1]
        for other in range(0, len(slots), _SLOT):
            if slots[other] != _ABSENT and (slots[other], slots[other + 1]) < mine:
                await trio.sleep(LEFT)
                return self._most
        self._most = 1
        return 1

    def note(self, accepted: int) -> None:
        """Note how many connections this process has accepted after its turn."""
        if accepted:
            self._slots[self._own + 1] = time.monotonic_ns()
        self._most = min(self._most * 2, MOST) if accepted else 1

    def leave(self) -> None:
        """Note that this process accepts no more connections."""
        self._slots[self._own] = _ABSENT


@attrs.frozen(eq=False)
class SharedSockets:
    """Listening sockets that several processes accept connections from.

    Attributes:
        descriptors: The sockets; each process closes its own ones at the end.
        balance: The connections of these processes.
    """

    descriptors: Sequence[int]
    balance: Balance
