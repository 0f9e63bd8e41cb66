"""The output of commands: nothing that a server, a file or a URL says steers the terminal.

Every line of a command goes through `say` or `note`; `_output` prints what has several lines.
"""

import os
import secrets
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TextIO

from .._printable import printable

#: Bytes that are read together; a longer line is printed in parts.
_CHUNK: Final = 64 * 1024


def say(line: str = "") -> None:
    """Print one line on stdout.

    Args:
        line: The line; control characters in it are escaped.
    """
    print(printable(line.rstrip(), sys.stdout))


def note(text: str) -> None:
    """Print one line of this program on stderr, behind what was printed on stdout.

    Args:
        text: The line; control characters in it are escaped.
    """
    # The order of lines on a terminal, where both streams end.
    sys.stdout.flush()
    print(f"noizu-mcp: {printable(text, sys.stderr)}", file=sys.stderr, flush=True)


@contextmanager
def marked_stderr() -> Iterator[None]:
    """Print what programs write to stderr that this one starts: line by line, each with a mark.

    Descriptor 2, which they inherit, is a pipe to a thread while the block runs. The mark, `| `,
    distinguishes their lines from lines of this program.
    """
    sys.stderr.flush()
    with ExitStack() as stack:
        ours = os.dup(2)
        stack.callback(os.close, ours)
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        stack.callback(setattr, sys, "stderr", sys.stderr)
        if _is_on_descriptor_2(sys.stderr):
            form = sys.stderr.encoding, sys.stderr.errors
            sys.stderr = stack.enter_context(open(ours, "w", 1, *form, closefd=False))
        # A program may live on with its end of the pipe, so the pipe has an end of its own.
        end = secrets.token_bytes(16).replace(b"\n", b" ") + b"\n"
        thread = threading.Thread(target=_print_marked, args=(reading, end, sys.stderr))
        thread.start()
        stack.callback(thread.join)
        stack.callback(os.dup2, ours, 2)
        os.dup2(writing, 2)
        os.close(writing)
        stack.callback(os.write, 2, end)
        yield


def _is_on_descriptor_2(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 2
    except OSError:  # it is in memory
        return False


def _print_marked(reading: int, end: bytes, out: TextIO) -> None:
    rest, found = b"", b""
    while not found:
        rest, found, _ = (rest + os.read(reading, _CHUNK)).partition(end)
        if not found and len(rest) > _CHUNK:
            # A long line is cut, but not where the end may have begun.
            rest = rest[: -len(end)] + b"\n" + rest[-len(end) :]
        *lines, rest = rest.split(b"\n")
        if found and rest:
            lines.append(rest)
        for line in lines:
            text = line.removesuffix(b"\r").decode(errors="replace")
            # Without a reader of stderr, the programs go on all the same.
            with suppress(OSError):
                print(f"| {printable(text, out)}", file=out, flush=True)
