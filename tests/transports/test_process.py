"""Servers as child processes."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
import trio

from noizu_mcp import ConnectionClosed, Limits, Stdio, TransportError
from noizu_mcp.transports import open_process

MESSAGE = b'{"jsonrpc":"2.0","method":"m"}'


def _shell(script, **options):
    return Stdio("/bin/sh", "-c", script, **options)


def _descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


async def taken(stream):
    """Receive once; return the bytes of each message."""
    return [received.data for received in await stream.receive()]


async def _lines(target, limit=1000):
    """Receive all lines of a server."""
    lines = []
    with trio.fail_after(60):
        async with open_process(target, Limits(message_size=limit)) as (stream, _):
            while received := await taken(stream):
                lines += received
    return lines


async def _exchange(target):
    with trio.fail_after(60):
        async with open_process(target) as (stream, process):
            await stream.send([MESSAGE])
            answer = await taken(stream)
    return answer, process.returncode


async def test_a_conversation():
    """Messages go to its stdin and come from its stdout; it exits when stdin is closed."""
    assert await _exchange(Stdio("cat")) == ([MESSAGE], 0)


async def test_environment(monkeypatch):
    """The child gets the named variables, and only harmless ones of this process."""
    monkeypatch.setenv("SECRET", "hidden")
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("TERM", "() { :;}")
    monkeypatch.delenv("TZ", raising=False)
    script = """printf '{"id":"%s"}\\n' "$SECRET,$LANG,$TERM,$TZ,$KEY" """
    found = await _lines(_shell(script, env={"KEY": "v"}))
    # A shell without TERM may set it to dumb.
    assert found in ([b'{"id":",C,dumb,,v"}'], [b'{"id":",C,,,v"}'])
    assert "SECRET" not in Stdio("cat").environment()
    assert "TERM" not in Stdio("cat").environment()


async def test_working_directory(tmp_path):
    """The process runs in `cwd`, and relative paths of the command start there."""
    script = tmp_path / "serve"
    script.write_text('#!/bin/sh\nprintf \'{"id":"%s"}\\n\' "$PWD"\n')
    script.chmod(0o755)
    expected = [f'{{"id":"{tmp_path}"}}'.encode()]
    assert await _lines(Stdio("./serve", cwd=tmp_path)) == expected
    assert await _lines(_shell("./serve", cwd=str(tmp_path))) == expected


async def test_stderr_goes_where_it_is_sent(tmp_path):
    """Output on stderr goes to a file, or is kept without blocking the server."""
    with (tmp_path / "log").open("wb") as log:
        await _lines(_shell("echo oops >&2", stderr=log))
    assert (tmp_path / "log").read_bytes() == b"oops\n"
    much = f"head -c 500000 /dev/zero >&2; echo '{MESSAGE.decode()}'"
    assert await _lines(_shell(much, stderr=subprocess.PIPE)) == [MESSAGE]


async def test_lines_that_are_no_messages_do_not_wake_the_receiver():
    """Skipped lines do not wake the receiver; EOF still arrives as an empty list."""
    async with open_process(_shell("echo noise; read line; echo noise")) as (stream, _):
        with trio.move_on_after(0.1) as scope:
            await stream.receive()
        assert scope.cancelled_caught
        await stream.send([MESSAGE])
        assert not await stream.receive()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Stdio("no-such-command"), "command not found: no-such-command"),
        (Stdio("./no-such-command"), "command not found: ./no-such-command"),
        (Stdio("/etc/passwd"), "command is not executable: /etc/passwd"),
        (Stdio("cat", cwd="/nowhere"), "cannot start cat: .*/nowhere"),
        (Stdio("cat", "a\0b"), "cannot start cat: embedded null byte"),
    ],
)
async def test_a_command_that_cannot_be_started(target, message):
    """The error has the command and the reason."""
    before = _descriptors()
    with pytest.raises(TransportError, match=message):
        async with open_process(target):
            pytest.fail("started")
    assert _descriptors() == before


#: The end of a program for Node.js.
NODE = "throw err;\\n^\\n\\nError: Cannot find module 7\\n  at Module._load\\n\\nNode.js v20.1.0\\n"


@pytest.mark.parametrize(
    ("script", "stderr", "message"),
    [
        ("exit 3", None, "it ended: /bin/sh exited with status 3$"),
        ("echo a >&2; echo b >&2; exit 1", subprocess.PIPE, "exited with status 1; it said: b$"),
        ("exit 1", subprocess.PIPE, "exited with status 1$"),
        (f"printf '{NODE}' >&2; exit 1", subprocess.PIPE, "it said: Error: Cannot find module 7$"),
        ("echo Node.js v20.1.0 >&2; exit 1", subprocess.PIPE, "it said: Node.js v20.1.0$"),
        ("kill -9 $$", None, "/bin/sh was ended by SIGKILL$"),
        ("kill -40 $$", None, "/bin/sh was ended by signal 40$"),
    ],
)
async def test_a_server_that_ends_too_early(script, stderr, message):
    """The error of a closed connection has the exit status and the last lines of stderr."""
    with pytest.raises(ConnectionClosed, match=message):
        await _end_with(_shell(script, stderr=stderr), "it ended")


async def test_only_the_last_words_are_kept():
    """The last 64 KiB of stderr are kept."""
    script = "printf 'Error: lost\\n%065536d\\nNode.js v20.1.0\\n' 0 >&2"
    with pytest.raises(ConnectionClosed, match=r"it said: Node.js v20.1.0$"):
        await _end_with(_shell(script, stderr=subprocess.PIPE), "it ended")


async def test_a_server_that_closes_its_stdout():
    """The error of a server that goes on without stdout says so."""
    target = _shell("exec >&-; read line", exit_timeout=0.1)
    with pytest.raises(ConnectionClosed, match=r"^gone: /bin/sh closed its stdout$"):
        await _end_with(target, "gone")


async def test_the_end_of_another_connection_passes():
    """An unrelated exception of the block is raised unchanged."""
    with pytest.raises(ConnectionClosed, match=r"^another$"):
        async with open_process(Stdio("cat")):
            raise ConnectionClosed("another")
    with pytest.raises(LookupError):
        async with open_process(Stdio("cat")), trio.open_nursery():
            raise LookupError


async def test_lines_that_are_no_messages_are_skipped(caplog):
    """Other output on stdout is skipped, with a warning for each line."""
    noise = ["Listening…", "[INFO] started", '{"level":"info"}', "{"]
    script = "".join(f"echo '{line}';" for line in [*noise, MESSAGE.decode(), "bye"])
    with caplog.at_level(logging.WARNING, "noizu_mcp"):
        lines = await _lines(_shell(script))
    assert lines == [MESSAGE]
    assert len(caplog.messages) == 5
    assert caplog.messages[1] == "skipped a line that is no message: b'[INFO] started'"


async def test_what_may_be_a_message_passes():
    """Arrays, a byte order mark, leading blanks, and answers without `jsonrpc` pass."""
    lines = [b"[" + MESSAGE + b"]", b"\xef\xbb\xbf" + MESSAGE, b"  " + MESSAGE, b'{"id":1}']
    async with open_process(Stdio("cat")) as (stream, _):
        await stream.send(lines)
        assert await taken(stream) == lines
    assert await _lines(_shell("echo 0123456789X"), 10) == [b"0123456789"]


async def test_a_server_that_ignores_the_end_of_stdin():
    """The server and its children get SIGTERM."""
    # This includes the time until SIGKILL: a shell on a busy machine must have run its trap.
    script = "sleep 1000 & echo '{\"id\":'$!'}'; trap 'echo done >&2; exit 7' TERM; wait; wait"
    target = _shell(script, stderr=subprocess.DEVNULL, exit_timeout=1)
    async with open_process(target) as (stream, process):
        (line,) = await taken(stream)
    assert process.returncode == 7
    child = int(line.removeprefix(b'{"id":').removesuffix(b"}"))
    with trio.fail_after(60):
        while _alive(child):
            await trio.lowlevel.checkpoint()


def _alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_server_that_ignores_everything():
    """It is killed in the end, within a bounded time."""
    code = "import signal,os; signal.signal(15, 1); os.write(1, b'{\"id\":1}\\n'); signal.pause()"
    with trio.fail_after(60):
        target = Stdio(sys.executable, "-c", code, exit_timeout=0.1)
        async with open_process(target) as (stream, process):
            assert await taken(stream) == [b'{"id":1}']
    assert process.returncode == -signal.SIGKILL


async def test_cancellation_ends_the_server():
    """A cancelled block leaves no process."""
    with trio.CancelScope() as scope:
        async with open_process(Stdio("cat")) as (_, process):
            scope.cancel()
            await trio.sleep_forever()
    assert process.returncode == 0


async def test_a_process_that_ends_just_when_it_is_signalled(monkeypatch):
    """A process that has already ended is not an error."""

    def too_late(pid, number):
        os.kill(pid, number)
        raise ProcessLookupError

    monkeypatch.setattr(os, "killpg", too_late)
    async with open_process(Stdio("sleep", "1000", exit_timeout=1)) as (_, process):
        pass
    assert process.returncode == -signal.SIGTERM


def _children():
    """Return the child processes of this one; other tests may have started some of them."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


async def _end_with(target, text):
    async with open_process(target) as (stream, _):
        assert not await stream.receive()
        raise ConnectionClosed(text)


async def test_nothing_is_left_of_many_servers():
    """After fifty servers no descriptor and no zombie remains."""
    await _exchange(Stdio("cat"))
    before, children = _descriptors(), _children()
    for _ in range(50):
        await _exchange(Stdio("cat", stderr=subprocess.PIPE))
    assert _descriptors() == before
    assert _children() <= children


def test_a_target_is_checked_when_it_is_made():
    """Values that no process can be given are refused when the target is made."""
    with pytest.raises(TypeError, match=r"env\['KEY'\] must be text, got 5"):
        Stdio("cat", env={"KEY": 5})
    with pytest.raises(TypeError, match="int"):
        Stdio("cat", 5)
    for make in (lambda: Stdio(b"cat"), lambda: Stdio("cat", b"x"), lambda: Stdio("cat", cwd=b"/")):
        with pytest.raises(TypeError, match="must be text, got b'"):
            make()
    with pytest.raises(TypeError, match="a name in env must be text, got 5"):
        Stdio("cat", env={5: "x"})
    with pytest.raises(ValueError, match="stderr=STDOUT would mix"):
        Stdio("cat", stderr=subprocess.STDOUT)
    for seconds in (0, -1, True, "2", float("nan")):
        with pytest.raises(
            ValueError, match=f"exit_timeout must be seconds above 0, got {seconds!r}"
        ):
            Stdio("cat", exit_timeout=seconds)
    assert repr(Stdio("cat", exit_timeout=5)) == "Stdio('cat', exit_timeout=5)"
    target = Stdio(Path("/bin/cat"), Path("x"))
    assert target.exit_timeout == 2.0
    assert (target.command, target.args, target.env) == ("/bin/cat", ("x",), {})
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        target.cwd = "/"
