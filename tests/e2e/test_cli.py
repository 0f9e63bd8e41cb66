"""`noizu-mcp list` and `noizu-mcp call` as processes, on pipes and on a terminal."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest


@pytest.fixture
def run(command):
    """Run a command until it exits."""

    def run(*words, **options):
        done = subprocess.run(
            command(*words), check=False, capture_output=True, timeout=120, **options
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_what_the_server_prints_is_no_answer(run, app):
    """A server in the same process prints to stderr, and stdout has the answer only."""
    status, out, err = run("call", f"{app}:App", "noise", "--json")
    assert status == 0
    assert json.loads(out)["content"] == [{"type": "text", "text": "quiet"}]
    assert err.startswith(b"imported\nprinted\n")


def test_a_server_as_a_command(run, app, command):
    """Client and server may both be ours."""
    status, out, _ = run("call", "echo", "message=é", "--", *command("run", f"{app}:App"))
    assert (status, out.decode()) == (0, "é\n")


def test_a_table_in_a_file(command, app, tmp_path):
    """The text of a tool arrives unchanged."""
    table = tmp_path / "x.csv"
    text = "a;é\r\nb;2\r\n"
    with table.open("wb") as out:
        words = command("call", f"{app}:App", "echo", f"message={text}")
        subprocess.run(words, check=True, stdout=out, stderr=subprocess.DEVNULL, timeout=20)
    assert table.read_bytes() == text.encode()


def test_on_a_terminal(start, command, app):
    """A table fits the terminal."""
    leader, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 60, 0, 0))
    peer = start(command("list", f"{app}:App"), stdout=terminal, env={"COLUMNS": ""})
    status, _ = peer.end()
    text = os.read(leader, 65536).decode()
    os.close(leader)
    assert status == 0
    lines = text.splitlines()
    assert lines[0].split() == ["NAME", "ARGUMENTS", "DESCRIPTION"]
    assert max(map(len, lines)) <= 60
    assert any(line.endswith("…") for line in lines)


@pytest.mark.parametrize("word", ["--help", "list"])
def test_a_reader_that_is_gone(command, app, word):
    """The command ends silently if its output is not read."""
    out, stdout = os.pipe()
    os.close(out)
    words = (word,) if word == "--help" else (word, f"{app}:App")
    done = subprocess.run(
        command(*words),
        check=False,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        timeout=120,
    )
    os.close(stdout)
    assert (done.returncode, done.stderr) == (1, b"" if word == "--help" else b"imported\n")


def test_ctrl_c(start, command, until, tmp_path):
    """An interruption ends the command, and its server, silently."""
    pid_file = tmp_path / "pid"
    code = f"import os; open({str(pid_file)!r} + '_', 'w').write(str(os.getpid()))"
    code += f"; os.rename({str(pid_file)!r} + '_', {str(pid_file)!r})"
    # It never answers, and exits when its stdin ends, not when the first request comes.
    code += "; open(0).read()"
    peer = start(command("list", "--timeout", "1000", "--", sys.executable, "-c", code))
    until(lambda: pid_file.exists() or peer.process.poll() is not None)
    peer.process.send_signal(signal.SIGINT)
    status, stderr = peer.end()
    assert (status, stderr) == (130, b"")
    assert not Path(f"/proc/{pid_file.read_text()}").exists()
