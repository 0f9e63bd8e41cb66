"""Servers as processes, with a client for lines."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

APP = Path(__file__).with_name("app.py")
# Seconds; a process that ends in half a second may take many times as long on a busy machine.
PATIENCE = 60.0


class Peer:
    """A client that sends what a test wants, and waits for a bounded time."""

    def __init__(self, process, stdin, stdout):
        self.process = process
        self.stdin = stdin
        self.stdout = stdout
        self._rest = b""

    def write(self, *messages):
        """Send messages, or raw bytes."""
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            os.write(self.stdin, data)

    def read(self):
        """Read one message; return None at EOF."""
        while b"\n" not in self._rest:
            assert select.select([self.stdout], [], [], PATIENCE)[0], "no answer"
            try:
                data = os.read(self.stdout, 65536)
            except OSError:  # a terminal whose other end is closed
                data = b""
            if not data:
                assert not self._rest, f"half a line: {self._rest!r}"
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def initialize(self):
        """Do the handshake."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        self.write(request(0, "initialize", params))
        answer = self.read()
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def start(self, tool, id_=1):
        """Start a call and wait until it reports that it runs."""
        self.write(call(tool, id_))
        assert self.read()["method"] == "notifications/progress"

    def call(self, tool, **arguments):
        """Call a tool; return its text."""
        self.write(call(tool, 9, arguments))
        answer = self.read()
        assert answer["id"] == 9
        return answer["result"]["content"][0]["text"]

    def close(self):
        """Close stdin."""
        os.close(self.stdin)

    def end(self):
        """Wait for the exit; return the status and stderr."""
        stderr = self.process.communicate(timeout=PATIENCE)[1]
        return self.process.returncode, stderr


def request(id_, method, params):
    """Make a request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def call(tool, id_, arguments=None):
    """Make a call that reports progress."""
    params = {"name": tool, "arguments": arguments or {}, "_meta": {"progressToken": id_}}
    return request(id_, "tools/call", params)


@pytest.fixture
def until():
    """Wait for a condition without events; a timeout is a failure."""

    def wait(condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "it never came"

    return wait


@pytest.fixture
def app():
    """Return the path of the server."""
    return APP


@pytest.fixture
def make_call():
    """Make a call that reports progress."""
    return call


@pytest.fixture
def run_app(request_stack):
    """Start the server under `noizu-mcp run`."""

    def run(**options):
        return spawn(request_stack, cli("run", f"{APP}:App"), **options)

    return run


@pytest.fixture
def serve_app(request_stack):
    """Start the server as a trio program that calls `serve_stdio`."""

    def run(grace, **options):
        return spawn(request_stack, [sys.executable, str(APP), str(grace)], **options)

    return run


@pytest.fixture
def unmeasured():
    """Return the variables that start coverage in a process, each without a value.

    At exit coverage writes its data, and often releases the interpreter lock for that. A thread
    that spins keeps the lock for 5 ms each time, and on a busy machine until it is scheduled again.
    """
    return dict.fromkeys(["COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"])


@pytest.fixture
def start(request_stack):
    """Start a command."""
    return lambda command, **options: spawn(request_stack, command, **options)


@pytest.fixture
def request_stack():
    """Clean-up after the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def command():
    """Make the command line of our program."""
    return cli


def cli(*words):
    """Make a command line of our program."""
    return [sys.executable, "-m", "noizu_mcp", *words]


def spawn(stack, command, *, stdin=None, stdout=None, env=None, **options):
    """Start a process on pipes, or on the given descriptors.

    A variable in `env` whose value is None is removed from the environment.
    """
    variables = {**os.environ, "PYTHONUNBUFFERED": "", **(env or {})}
    ends = []
    if stdin is None:
        stdin, feed = os.pipe()
        ends.append(feed)
    if stdout is None:
        out, stdout = os.pipe()
        ends.append(out)
    process = subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        env={name: value for name, value in variables.items() if value is not None},
        **{"stderr": subprocess.PIPE, **options},
    )
    for fd in {stdin, stdout}:
        os.close(fd)
    for fd in ends:
        stack.callback(_close, fd)
    stack.callback(_end, process)
    return Peer(process, ends[0] if ends else None, ends[-1] if ends else None)


def _close(fd):
    with contextlib.suppress(OSError):
        os.close(fd)


def _end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
    if process.stderr is not None:
        process.stderr.close()
