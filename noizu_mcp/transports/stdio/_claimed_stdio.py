"""Descriptors 0 and 1, reserved for the protocol."""

import contextlib
import ctypes
import io
import os
import sys
from collections.abc import Iterator

#: Descriptors that a child made by `fork` alone must not keep: otherwise the client would not see
#: the end of the server while the child runs.
_private: set[int] = set()


def take_stdio() -> tuple[int, int]:
    """Reserve stdin and stdout for the protocol, for the rest of the program.

    Afterwards descriptor 0 reads nothing and descriptor 1 writes to stderr, for Python, C code and
    child processes alike, so that none of them can disturb the protocol. Printed text that is still
    buffered goes to stderr, too.

    Returns:
        Private duplicates of the original descriptors 0 and 1, to be closed by the caller. Child
        processes do not inherit them.
    """
    open_standard_descriptors()
    taken = _duplicate_stdio()
    _divert()
    return taken


@contextlib.contextmanager
def claimed_stdio() -> Iterator[tuple[int, int]]:
    """Reserve stdin and stdout for the protocol, and restore them at the end.

    Yields:
        Private duplicates of the original descriptors 0 and 1; see `take_stdio`.
    """
    open_standard_descriptors()
    taken = _duplicate_stdio()
    try:
        with diverted_stdio():
            yield taken
    finally:
        release(*taken)


@contextlib.contextmanager
def diverted_stdio() -> Iterator[None]:
    """Let stdin read nothing and stdout write to stderr; restore both at the end."""
    out = sys.stdout
    line_buffering = isinstance(out, io.TextIOWrapper) and out.line_buffering
    open_standard_descriptors()
    saved = _duplicate_stdio()
    _divert()
    try:
        yield
    finally:
        # Text printed in the meantime belongs to stderr: the buffers are flushed before the
        # descriptors change back.
        _flush_c()
        _write_out(out, line_buffering=line_buffering)
        for fd, copy in enumerate(saved):
            os.dup2(copy, fd)
            os.close(copy)
        release(*saved)


def open_standard_descriptors() -> None:
    """Open closed ones among the descriptors 0 to 2, on `/dev/null`.

    Otherwise the next opened file gets the number, and text for stderr is written to it.
    """
    fd = os.open(os.devnull, os.O_RDWR)  # the lowest free number
    while fd <= 2:
        os.set_inheritable(fd, True)
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)


def release(*descriptors: int) -> None:
    """Forget private descriptors once they are closed: their numbers will be reused."""
    _private.difference_update(descriptors)


def _duplicate_stdio() -> tuple[int, int]:
    # `os.dup` makes them non-inheritable (PEP 446): a child after `exec` does not have them.
    copies = os.dup(0), os.dup(1)
    _private.update(copies)
    return copies


def _divert() -> None:
    _point_at_nothing(0)
    os.dup2(2, 1)
    # Line-buffered like stderr: printed text appears at once, even if the process is killed later.
    _write_out(sys.stdout, line_buffering=True)


def _write_out(out: object, *, line_buffering: bool) -> None:
    """Flush the text that Python still buffers, and set the buffering from now on."""
    if isinstance(out, io.TextIOWrapper) and not out.closed:
        try:
            out.reconfigure(line_buffering=line_buffering)
        except OSError:  # stderr has no reader, so its copy has none
            _point_at_nothing(1)
            out.reconfigure(line_buffering=line_buffering)


def _point_at_nothing(*descriptors: int, inheritable: bool = True) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in descriptors:
        os.dup2(nothing, fd, inheritable)
    os.close(nothing)


def _flush_c() -> None:
    """Flush the text that C code has printed."""
    # C has a separate buffer for stdout, which Python does not flush.
    with contextlib.suppress(ValueError):  # a C library with another name for its stdout
        library = ctypes.CDLL(None)
        library.fflush(ctypes.c_void_p.in_dll(library, "stdout"))


def _leave_to_parent() -> None:
    """In a forked child: close the protocol, but keep the numbers, which may still be closed."""
    _point_at_nothing(*_private, inheritable=False)


os.register_at_fork(after_in_child=_leave_to_parent)
