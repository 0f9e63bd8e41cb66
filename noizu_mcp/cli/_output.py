"""Output of commands: tables for people, JSON for programs, and the messages of a trace."""

import json
import logging
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

from .._printable import LINES, encodable, printable, printable_json
from .._value import JSON
from ..engine import logger
from ..types import Content

#: Below this no terminal can show a table; used when a terminal gives no width.
MIN_WIDTH: Final = 40


def print_json(value: JSON) -> None:
    """Print a JSON value, indented; as it is where stdout can write it, else escaped."""
    print(json_of(value, ascii_only=not _writes_unicode(sys.stdout)))


def json_of(value: JSON, *, ascii_only: bool = False) -> str:
    """Write a JSON value as text, indented; characters that are not seen are escaped."""
    return printable_json(json.dumps(value, ensure_ascii=ascii_only, indent=2))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; on a terminal every column is cut to fit."""
    table = [[printable(cell, sys.stdout) for cell in row] for row in (header, *rows)]
    width = max(shutil.get_terminal_size().columns, MIN_WIDTH) if sys.stdout.isatty() else None
    if width is not None:
        # No column takes more than a third, so that the description keeps room.
        table = [[cut(cell, width // 3) for cell in row[:-1]] + row[-1:] for row in table]
    widths = [max(map(columns, column)) for column in zip(*table, strict=True)]
    left = None if width is None else width - sum(widths[:-1]) - 2 * (len(widths) - 1)
    for *cells, last in table:
        padded = [c + " " * (w - columns(c)) for c, w in zip(cells, widths, strict=False)]
        print("  ".join([*padded, last if left is None else cut(last, left)]).rstrip())


def columns(text: str) -> int:
    """Count the columns that a text takes: some scripts take two a letter, accents none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def cut(text: str, limit: int) -> str:
    """Shorten a text to some columns; an ellipsis shows where."""
    if columns(text) <= limit:
        return text
    while text and columns(text) > limit - 1:
        text = text[:-1]
    return f"{text}…"


def print_text(text: str, out: TextIO) -> None:
    """Print a text with its lines; a missing line end at its end is added.

    Nothing in it steers a terminal. Only a file or a pipe on stdout gets the text unchanged, so
    that a table with CRLF line ends stays one.

    Args:
        text: The text.
        out: Stdout or stderr.
    """
    is_data = out is sys.stdout and not out.isatty()
    safe = encodable(text, out) if is_data else printable(text, out, kept=LINES)
    print(safe, end="" if text.endswith("\n") else "\n", file=out)


def show(block: Content, out: TextIO) -> None:
    """Print a content block: text as `print_text` does, anything else as JSON without its bulk."""
    wire = block.to_wire()
    if wire["type"] == "text":
        print_text(str(wire["text"]), out)
        return
    if "data" in wire:
        # A picture would fill the screen; `--json` prints all of it.
        wire["data"] = f"({len(wire['data'])} characters of base64)"
    text = printable_json(json.dumps(wire, ensure_ascii=not _writes_unicode(out)))
    print(text, file=out)


def _writes_unicode(out: TextIO) -> bool:
    return (out.encoding or "").lower().startswith("utf")


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
        # Bytes that are no text are shown, too: a trace is read when something is wrong.
        text = printable_json(message.decode(errors="replace")).replace("\n", " ")
        print(arrow, encodable(text, self._out), file=self._out, flush=True)


class _OneLineFormatter(logging.Formatter):
    """Formats a record as one line, without the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text = f"{text}: {type(error).__name__}: {error}"
        return f"noizu-mcp: {printable(text)}"


@contextmanager
def one_line_log() -> Iterator[None]:
    """Print the log of the package to stderr, one line for each record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLineFormatter())
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
