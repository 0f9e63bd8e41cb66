"""Progress and log messages of a server, shown on stderr while a command waits.

They are shown on a terminal, and log messages also where `--log-level` asks for them. One line, the
bar, is redrawn in place, and erased before anything else is printed; log messages stay above it.
"""

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TextIO

from .._printable import printable
from .._value import JSON
from ..client import Progress
from ..jsonrpc import Batch, Notification, decode
from ..types import LogLevel
from ._output import MIN_WIDTH, columns, cut

#: Columns of a terminal of unknown width.
_WIDTH: Final = 80
#: Cells of a bar.
_CELLS: Final = 24
#: Characters of one log message.
_LOG_WIDTH: Final = 1000
#: Log messages kept during a question; the oldest is dropped.
_MOST_KEPT: Final = 100
#: Characters of a number of a server.
_DIGITS: Final = 12


class Display:
    """Shows what a server reports.

    Args:
        out: The terminal, or a file; None shows nothing.
        level: The least level of log messages that the server is to send.

    Attributes:
        level: See Args.
    """

    def __init__(self, out: TextIO | None, level: LogLevel = "info") -> None:
        self.level: Final = level
        self._out = out
        self._draws = out is not None and out.isatty()
        self._bar = ""
        self._kept: deque[tuple[TextIO, str]] | None = None  # while a person is asked

    @property
    def active(self) -> bool:
        """True if anything is shown."""
        return self._out is not None

    def report(self, progress: Progress) -> None:
        """Draw the bar.

        Args:
            progress: The progress of the call.
        """
        if self._out is not None and self._draws and self._kept is None:
            self._draw(self._out, bar_of(progress))

    def tap(self, direction: str, message: bytes) -> None:
        """Print the log messages among the messages of a connection (`transports.Tap`).

        Not a handler of notifications: those wait in a queue, which may be behind the answer.
        """
        out = self._out
        if out is None or direction == "sent" or b'"notifications/message"' not in message:
            return
        decoded = decode(message)
        for each in decoded.messages if isinstance(decoded, Batch) else (decoded,):
            if isinstance(each, Notification) and each.method == "notifications/message":
                self._print(out, line_of(each.params or {}))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Show nothing while a person is asked; log messages come afterwards."""
        self.clear()
        self._kept = deque(maxlen=_MOST_KEPT)
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            for out, line in kept:
                self._print(out, line)

    def clear(self) -> None:
        """Erase the bar."""
        if self._out is not None:
            self._draw(self._out, "")

    def _print(self, out: TextIO, line: str) -> None:
        if self._kept is not None:
            self._kept.append((out, line))
            return
        bar = self._bar
        self.clear()
        # A message may have megabytes.
        print(printable(line[:_LOG_WIDTH], out), file=out, flush=True)
        self._draw(out, bar)

    def _draw(self, out: TextIO, bar: str) -> None:
        # One column stays free: many terminals begin a new line behind the last one.
        bar = cut(printable(bar[:_LOG_WIDTH], out), max(_width_of(out), MIN_WIDTH) - 1)
        # Only a change is drawn: reports may come by the thousand.
        if bar != self._bar:
            blank = " " * (columns(self._bar) - columns(bar))
            print(f"\r{bar}{blank}" if bar else f"\r{blank}\r", end="", file=out, flush=True)
            self._bar = bar


def _width_of(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or _WIDTH
    except OSError:
        return _WIDTH


def bar_of(progress: Progress) -> str:
    """Draw progress as a bar of fixed width, or as a number where there is no total."""
    done, total = progress.progress, progress.total
    if total is None or total <= 0:
        shown = _number(done)
    else:
        # Compared before the division, which fails for integers of hundreds of digits.
        share = 1.0 if done >= total else 0.0 if done <= 0 else done / total
        cells = int(share * _CELLS)
        shown = f"[{'#' * cells}{'-' * (_CELLS - cells)}] {int(share * 100):3d}%"
    return f"{shown}  {progress.message}" if progress.message else shown


def _number(value: float) -> str:
    # An integer as it came: `:g` fails for one of hundreds of digits.
    return str(value)[:_DIGITS] if type(value) is int else f"{value:g}"


def line_of(params: Mapping[str, JSON]) -> str:
    """Write a log message as one line: `[warning] shop.orders: text`."""
    level, name, data = params.get("level", "log"), params.get("logger"), params.get("data")
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    # In brackets: a message of a server must not look like a line of this program.
    return f"[{level}] {f'{name}: ' if name else ''}{' '.join(text.split())}"
