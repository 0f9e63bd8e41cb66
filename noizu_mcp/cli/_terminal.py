"""A person at a terminal: shown things on stderr, asked on stdin."""

import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

import trio

from ._output import printable

#: Bytes of one line; the terminal itself ends lines sooner.
_LINE: Final = 4096


class Terminal:
    """Shows and asks.

    Args:
        fd: The terminal, to read from.
        out: Where to show; what is asked is no output of the command.
    """

    def __init__(self, fd: int, out: TextIO) -> None:
        self._fd = fd
        self._out = out

    def say(self, text: str = "") -> None:
        """Print one line of what a server said, safely."""
        print(printable(text, self._out, ""), file=self._out, flush=True)

    def say_with_emphasis(self, text: str, part: str) -> None:
        """Print a text, and let a part of it stand out."""
        safe, part = (printable(each, self._out, "") for each in (text, part))
        print(safe.replace(part, f"\x1b[1;7m{part}\x1b[0m"), file=self._out, flush=True)

    def discard_typed(self) -> None:
        """Forget what was typed before anything was asked: it must not be taken for an answer."""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    async def ask(self, prompt: str) -> str:
        """Ask for one line; other tasks run meanwhile, and cancelling loses no line.

        Raises:
            EOFError: The person ended the input instead.
        """
        print(printable(prompt, self._out, ""), end=" ", file=self._out, flush=True)
        # No thread: one that is abandoned would take the line that answers the next question.
        await trio.lowlevel.wait_readable(self._fd)
        line = os.read(self._fd, _LINE)
        if not line:
            self.say()
            raise EOFError
        return line.decode(errors="replace").strip()


@contextmanager
def open_terminal() -> Iterator[Terminal | None]:
    """Find the person who runs this command.

    Yields:
        The terminal; None if stdin or stderr is none.
    """
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield None
        return
    # A server in this process takes descriptor 0 away.
    fd = os.dup(sys.stdin.fileno())
    try:
        yield Terminal(fd, sys.stderr)
    finally:
        os.close(fd)
