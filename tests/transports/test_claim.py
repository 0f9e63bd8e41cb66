"""Descriptors 0 and 1 while they carry the protocol."""

import io
import os
import subprocess
import sys

import pytest

from noizu_mcp.transports import claimed_stdio, diverted_stdio, take_stdio
from noizu_mcp.transports.stdio import _claimed_stdio as _claim


@pytest.fixture
def piped(piped_descriptors, monkeypatch):
    """Make descriptors 0 to 2 pipes, and print to descriptor 1; return the other ends."""

    def make():
        feed, out, err = piped_descriptors()
        for fd in (out, err):
            os.set_blocking(fd, False)
        text = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", text)
        return feed, out, err

    return make


def _read(fd):
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return b""


def test_everything_but_the_private_descriptors_is_diverted(piped):
    """Output of Python, children and C goes to stderr; stdin is empty; then all is restored."""
    feed, out, err = piped()
    os.write(feed, b"input\n")
    with claimed_stdio() as (stdin, stdout):
        print("printed")
        os.write(1, b"written\n")
        subprocess.run(["echo", "child"], check=True)
        assert os.read(0, 100) == b""
        os.write(stdout, b"protocol\n")
        assert os.read(stdin, 100) == b"input\n"
        assert not os.get_inheritable(stdin)
        assert not os.get_inheritable(stdout)
        for fd in (stdin, stdout):
            os.close(fd)
    print("after", flush=True)
    assert _read(err) == b"printed\nwritten\nchild\n"
    assert _read(out) == b"protocol\nafter\n"
    os.write(feed, b"more")
    assert os.read(0, 100) == b"more"


def test_what_was_printed_before_does_not_reach_the_client(piped):
    """Text in Python's buffer at the start goes to stderr."""
    _, out, err = piped()
    print("starting", end="")
    with diverted_stdio():
        assert _read(err) == b"starting"
    assert _read(out) == b""


def test_stdout_buffers_as_before_afterwards(piped):
    """Text that is printed meanwhile is flushed at once; then the former buffering is restored."""
    piped()
    with diverted_stdio():
        assert sys.stdout.line_buffering
    assert not sys.stdout.line_buffering


def test_text_that_stderr_cannot_take_is_not_kept_for_the_client(piped):
    """Text that cannot be written to stderr is lost, and not written to stdout later."""
    _, out, err = piped()
    print("before", end="")
    os.close(err)
    with diverted_stdio():
        os.dup2(2, 1)
        with pytest.raises(BrokenPipeError):
            print("meanwhile")
    print("after", flush=True)
    assert _read(out) == b"after\n"


def test_a_stdout_that_was_a_file(piped, tmp_path):
    """A stdout that Python treats as a file may become a pipe."""
    code = "import os; from noizu_mcp.transports import take_stdio; take_stdio(); print(1)"
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=out, stderr=subprocess.PIPE, check=True
        )
    assert done.stderr == b"1\n"
    assert (tmp_path / "out").read_bytes() == b""


def test_a_stdout_that_is_closed(piped):
    """A program may have closed its stdout object."""
    _, _, err = piped()
    sys.stdout.close()
    with diverted_stdio():
        os.write(1, b"diverted")
    assert _read(err) == b"diverted"


def test_a_stdout_of_another_kind_is_left_alone(piped, monkeypatch):
    """An object that replaces `sys.stdout` is left alone."""
    _, out, err = piped()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with diverted_stdio():
        print("kept")
        os.write(1, b"diverted")
    assert sys.stdout.getvalue() == "kept\n"
    assert (_read(out), _read(err)) == (b"", b"diverted")


def test_taking_for_good(piped):
    """The descriptors are not restored."""
    _, out, err = piped()
    taken = take_stdio()
    print("late")
    os.write(taken[1], b"protocol")
    assert (_read(out), _read(err)) == (b"protocol", b"late\n")
    _claim.release(*taken)
    for fd in taken:
        os.close(fd)


def test_closed_standard_descriptors_are_filled(piped):
    """Other files of a program without stdin, stdout or stderr do not get their numbers."""
    piped()
    for fd in range(3):
        os.close(fd)
    with claimed_stdio() as taken:
        assert min(taken) > 2
        os.write(2, b"nobody reads this")
        assert os.read(taken[0], 10) == b""
        for fd in range(3):
            assert os.get_inheritable(fd)
        for fd in taken:
            os.close(fd)


def test_a_forked_child_loses_the_protocol(piped):
    """A forked child loses the descriptors, and keeps their numbers in use."""
    _, out, _ = piped()
    with claimed_stdio() as (stdin, stdout):
        child = subprocess.run(
            [sys.executable, "-c", _FORKER], stdin=stdin, stdout=stdout, check=True
        )
        assert child.returncode == 0
        # The same in this process, as if it were the child.
        _claim._leave_to_parent()
        os.write(stdout, b"lost")
        assert os.read(stdin, 10) == b""
        for fd in (stdin, stdout):
            os.close(fd)
    _claim._leave_to_parent()
    assert _read(out) == b"True False\n"


_FORKER = """
import os
from noizu_mcp.transports import take_stdio
name = os.readlink("/proc/self/fd/1")
def held():
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try: links.append(os.readlink("/proc/self/fd/" + fd))
        except OSError: pass
    return name in links
_, out = take_stdio()
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, b"%r" % held())
    os._exit(0)
os.wait()
os.write(out, b"%r " % held() + os.read(read, 10) + b"\\n")
"""


def test_a_c_library_without_a_known_stdout(piped, monkeypatch):
    """If the C library has another name for its stdout, it is not flushed."""
    _, _, err = piped()

    def unknown(*_):
        raise ValueError("undefined symbol")

    monkeypatch.setattr(_claim.ctypes, "c_void_p", type("T", (), {"in_dll": unknown}))
    with diverted_stdio():
        print("still works")
    assert _read(err) == b"still works\n"
