"""What commands print: tables for people, JSON for programs, and the messages of a trace."""

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any, Final, TextIO

#: Below this no terminal can show a table; used when a terminal gives no width.
MIN_WIDTH: Final = 40


def print_json(value: Any) -> None:
    """Print a JSON value, indented, as it is."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; on a terminal its last column is cut to fit."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    limit = _width() - sum(widths[:-1]) - 2 * (len(widths) - 1)
    for row in (header, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        print("  ".join([*cells, _cut(row[-1], limit)]).rstrip())


def _width() -> float:
    if not sys.stdout.isatty():
        return float("inf")
    return max(shutil.get_terminal_size().columns, MIN_WIDTH)


def _cut(text: str, limit: float) -> str:
    return text if len(text) <= limit else f"{text[: max(int(limit) - 1, 1)]}…"


class TracePrinter:
    """Prints every message of a connection, with an arrow for its direction.

    Args:
        out: Where to print.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._colour = out.isatty()

    def __call__(self, direction: str, message: bytes) -> None:
        """Print one message (`transports.Tap`)."""
        arrow, colour = ("-->", "36") if direction == "sent" else ("<--", "32")
        if self._colour:
            arrow = f"\x1b[{colour}m{arrow}\x1b[0m"
        print(arrow, message.decode(errors="replace"), file=self._out, flush=True)
