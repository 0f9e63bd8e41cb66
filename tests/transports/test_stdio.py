"""Serving on descriptors: from the first line to an orderly end."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from noizu_mcp import Context, Server, Tool, Toolkit, mcp, serve_stdio
from noizu_mcp.cli import main
from noizu_mcp.transports import serve_descriptors

from ..kit.messages import INITIALIZED, call, initialize

INITIALIZE = initialize()


class Wait(Tool):
    """Wait for ever."""

    async def call(self):
        await trio.sleep_forever()


class Waiting(Server, name="waiting", version="1"):
    tools = [Wait]


class Cleaning(Toolkit):
    """Handlers that take a moment to end once they are cancelled."""

    def __init__(self):
        self.cleaned = []
        self.ended = threading.Event()

    @mcp
    async def on_trio(self, ctx: Context):
        try:
            await ctx.report_progress(1)
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.01)
            self.cleaned.append("on_trio")

    @mcp(loop="asyncio")
    async def on_asyncio(self, ctx: Context):
        try:
            await ctx.report_progress(1)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            self.cleaned.append("on_asyncio")

    @mcp
    def in_thread(self, ctx: Context):
        ctx.report_progress(1)
        while not ctx.cancelled:
            time.sleep(0.001)
        self.cleaned.append("in_thread")
        self.ended.set()


class Clean(Server, name="clean", version="1"):
    def __init__(self):
        self.kit = Cleaning()
        self.tools.add(self.kit)


def _write(fd, *messages):
    os.write(fd, b"".join(json.dumps(message).encode() + b"\n" for message in messages))


async def _read(fd):
    """Read the next message of a server."""
    line = bytearray()
    with trio.fail_after(60):
        while not line.endswith(b"\n"):
            await trio.lowlevel.wait_readable(fd)
            line += os.read(fd, 1)
    return json.loads(line)


@pytest.fixture
def served(pipes):
    """Make a function that serves on pipes, and the client's ends."""
    stdin, feed = pipes()
    out, stdout = pipes()
    return partial(serve_descriptors, read_fd=stdin, write_fd=stdout), feed, out


@pytest.fixture
def handlers():
    """Restore the signal handlers after the test; return them."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield before
    for each, handler in before.items():
        signal.signal(each, handler)


async def test_serves_until_the_end_of_stdin(served):
    """Requests are answered; after EOF on stdin it returns, and stdout is closed."""
    serve, feed, out = served
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, Waiting()))
        _write(feed, INITIALIZE)
        assert (await _read(out))["result"]["serverInfo"]["name"] == "waiting"
        os.close(feed)
    assert os.read(out, 1) == b""


@pytest.mark.parametrize("calling", [False, True])
async def test_serves_until_stdout_is_closed(served, calling):
    """It ends when idle and with a call that hangs, though stdin stays open."""
    serve, feed, out = served
    _write(feed, INITIALIZE, INITIALIZED, *([call("wait", id_=1)] if calling else []))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, Waiting(), grace=0.01))
            assert (await _read(out))["id"] == 0
            await trio.testing.wait_all_tasks_blocked()
            os.close(out)


def _begin(feed, version, tool):
    """Begin a call that reports progress."""
    meta = {"progressToken": 1}
    if version == "2026-07-28":
        prefix = "io.modelcontextprotocol/"
        meta[f"{prefix}protocolVersion"] = version
        meta[f"{prefix}clientInfo"] = {"name": "test", "version": "1"}
        meta[f"{prefix}clientCapabilities"] = {}
    else:
        _write(feed, INITIALIZE, INITIALIZED)
    params = {"name": tool, "arguments": {}, "_meta": meta}
    _write(feed, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


async def _until_progress(out):
    while (await _read(out)).get("method") != "notifications/progress":
        pass


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("tool", ["on_trio", "on_asyncio", "in_thread"])
@pytest.mark.parametrize("leave", ["out", "out cancel in", "in out", "cancel in"])
async def test_a_client_that_leaves_cancels_its_calls(served, version, tool, leave):
    """Each handler is cancelled without a grace period, whichever pipe is closed first."""
    serve, feed, out = served
    server = Clean()
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, server, grace=1000))
            _begin(feed, version, tool)
            await _until_progress(out)
            for step in leave.split():
                if step == "cancel":
                    with contextlib.suppress(BrokenPipeError):
                        _write(feed, {"jsonrpc": "2.0", **cancelled})
                else:
                    os.close(out if step == "out" else feed)
    if tool == "in_thread":
        # On a busy machine the server may have ended without it.
        server.kit.ended.wait(60)
    assert server.kit.cleaned == [tool]


async def test_messages_that_came_before_the_end_are_still_read(served):
    """If a client closes stdout, everything that it has sent before is read."""
    serve, feed, out = served
    read = []

    class Note(Tool, input={"number": int}, inline=True):
        def call(self, args):
            read.append(args.number)

    class Noting(Server, name="noting", version="1"):
        tools = [Note]

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, Noting(), grace=1000))
            _write(feed, INITIALIZE, INITIALIZED)
            await _read(out)
            await trio.testing.wait_all_tasks_blocked()
            os.close(out)
            for number in range(3):
                params = {"name": "note", "arguments": {"number": number}}
                _write(feed, {**call("wait", id_=number), "params": params})
    assert read == [0, 1, 2]


async def test_a_task_of_a_client_that_left_is_cancelled(served):
    """A task whose result cannot be fetched gets no grace period."""
    serve, feed, out = served

    class Job(Tool, task="required"):
        async def call(self):
            await trio.sleep_forever()

    class Working(Server, name="working", version="1"):
        tools = [Job]

    params = {"name": "job", "arguments": {}, "task": {}}
    _write(feed, INITIALIZE, INITIALIZED, {**call("wait", id_=1), "params": params})
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, Working(), grace=1000))
            while (await _read(out)).get("id") != 1:
                pass
            os.close(out)


async def test_a_thread_that_does_not_end_is_left_behind(served):
    """The end waits for it for a bounded time."""
    serve, feed, out = served
    release = threading.Event()

    class Stuck(Tool):
        def call(self, ctx: Context):
            ctx.report_progress(1)
            release.wait()

    class Sticking(Server, name="sticking", version="1"):
        tools = [Stuck]

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, Sticking()))
            _begin(feed, "2025-11-25", "stuck")
            await _until_progress(out)
            os.close(out)
    release.set()


async def test_what_still_runs_after_the_grace_period_is_answered(served, autojump_clock):
    """A call that exceeds the grace period is answered with an error."""
    serve, feed, out = served
    _write(feed, INITIALIZE, INITIALIZED, call("wait", id_=1))
    os.close(feed)
    start = trio.current_time()
    await serve(Waiting(), grace=3)
    assert trio.current_time() - start == pytest.approx(3)
    assert (await _read(out))["id"] == 0
    answer = await _read(out)
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_in_order(served, handlers, number):
    """A signal acts like EOF on stdin; the next one has its default action."""
    serve, feed, out = served
    _write(feed, INITIALIZE, INITIALIZED, call("wait", id_=1))
    async with trio.open_nursery() as nursery:
        connection = await nursery.start(partial(serve, Waiting(), grace=0.01, handle_signals=True))
        assert connection.running.transport == "stdio"
        assert (await _read(out))["id"] == 0
        assert signal.getsignal(number) is not handlers[number]
        os.kill(os.getpid(), number)
        assert "error" in await _read(out)
    # The next one would end the process at once, since nothing remains to be ended.
    assert [signal.getsignal(each) for each in handlers] == [signal.SIG_DFL, signal.SIG_DFL]


async def test_a_signal_after_the_end_of_stdin_cuts_the_grace_period_short(served, handlers):
    """A client that closes stdin and then sends SIGTERM does not wait for running requests."""
    serve, feed, out = served
    _write(feed, INITIALIZE, INITIALIZED, call("wait", id_=1))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, Waiting(), grace=1000, handle_signals=True))
            await _read(out)
            os.close(feed)
            await trio.testing.wait_all_tasks_blocked(0.05)
            os.kill(os.getpid(), signal.SIGTERM)


async def test_a_signal_while_the_server_is_set_up(served, handlers):
    """A signal cancels a lifespan that hangs, and the descriptors are closed."""
    serve, _, out = served
    entered = trio.Event()

    class Slow(Server, name="slow", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            entered.set()
            await trio.sleep_forever()
            yield

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, Slow(), handle_signals=True))
            await entered.wait()
            os.kill(os.getpid(), signal.SIGTERM)
    assert os.read(out, 1) == b""


async def test_signals_are_left_as_they_were(served, handlers):
    """Without a signal the former handlers are restored; an ignored signal stays ignored."""
    serve, feed, _ = served
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupt = signal.getsignal(signal.SIGINT)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, Waiting(), handle_signals=True))
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is not interrupt
        os.close(feed)
    assert signal.getsignal(signal.SIGINT) is interrupt


async def test_a_failure_of_the_lifespan_is_one_exception(served):
    """An exception of the author's lifespan is raised unchanged."""
    serve, _, out = served

    class Broken(Server, name="broken", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            raise LookupError("no database")
            yield

    with pytest.raises(LookupError, match="no database"):
        await serve(Broken())
    assert os.read(out, 1) == b""


async def test_the_end_of_the_parent_ends_it(served, monkeypatch):
    """A server whose client was killed ends, though its stdin is still open."""
    serve, feed, out = served
    parent = await trio.lowlevel.open_process(["cat"], stdin=subprocess.PIPE)
    monkeypatch.setattr(os, "getppid", lambda: parent.pid)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, Waiting()))
            _write(feed, INITIALIZE)
            await _read(out)
            parent.kill()
    await parent.stdin.aclose()
    await parent.wait()


async def test_serve_stdio_in_an_app(piped_descriptors):
    """The standard descriptors carry the protocol while it runs, and are then restored."""
    feed, out, _ = piped_descriptors()
    inodes = [os.fstat(fd).st_ino for fd in (0, 1)]
    async with trio.open_nursery() as nursery:
        connection = await nursery.start(serve_stdio, Waiting())
        assert os.fstat(0).st_ino != inodes[0]
        assert os.fstat(1).st_ino == os.fstat(2).st_ino
        _write(feed, INITIALIZE)
        assert (await _read(out))["id"] == 0
        connection.stop()
    assert [os.fstat(fd).st_ino for fd in (0, 1)] == inodes


def test_run_takes_the_descriptors_for_good(piped_descriptors):
    """Text that is printed after the end must not reach the client."""
    feed, out, _ = piped_descriptors()
    _write(feed, INITIALIZE)
    os.close(feed)
    Waiting().run()
    assert json.loads(os.read(out, 65536))["id"] == 0
    assert os.fstat(1).st_ino == os.fstat(2).st_ino


def test_a_server_is_loaded_when_nothing_can_print_to_the_client(piped_descriptors, tmp_path):
    """A file is loaded after the descriptors are taken, in any thread."""
    feed, out, err = piped_descriptors()
    _write(feed, INITIALIZE)
    os.close(feed)
    file = tmp_path / "printing.py"
    file.write_text(
        "import os\n"
        "from noizu_mcp import Server\n"
        "os.write(1, b'loading\\n')\n"
        "class Printing(Server, name='printing', version='1'):\n"
        "    pass\n"
    )
    thread = threading.Thread(target=main, args=[["run", str(file)]])
    thread.start()
    thread.join(60)
    assert json.loads(os.read(out, 65536))["id"] == 0
    assert os.read(err, 100) == b"loading\n"


def test_the_second_signal_ends_the_process_at_once():
    """After the second signal the process ends even if a handler blocks the loop."""
    code = """
import os, signal
from noizu_mcp import Server
from contextlib import asynccontextmanager
class Stuck(Server, name="stuck", version="1"):
    @asynccontextmanager
    async def lifespan(self):
        os.kill(os.getpid(), signal.SIGINT)
        while signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            pass
        os.write(2, b"first\\n")
        os.kill(os.getpid(), signal.SIGTERM)
        os.write(2, b"second\\n")
        yield
Stuck().run()
"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    assert process.returncode == -signal.SIGTERM
    assert process.stderr == b"first\n"
