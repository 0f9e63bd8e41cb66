"""`SyncClient`: the client in blocking code."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from sys import _current_frames as frames
from traceback import walk_stack

import pytest
import trio

from noizu_mcp import (
    Accept,
    ClientHandler,
    ConnectionClosed,
    McpError,
    Server,
    Stdio,
    SyncClient,
    TransportError,
    connect,
)

from .calculator import Calculator


class Human(ClientHandler):
    """Answers in a thread."""

    def handle_elicitation(self, params):
        return Accept({"name": params["message"]})


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_client_without_a_loop(version):
    """Methods block; attributes, errors and questions are the same as in `Client`."""
    seen = []
    with SyncClient(Calculator, handler=Human(), version=version, timeout=30) as client:
        assert client.protocol_version == version
        assert client.server_info.name == "calculator"
        assert client.capabilities.has("tools.listChanged")
        assert client.instructions == "Count."
        assert len(client.list_tools()) == 4
        result = client.call_tool("add", {"a": 1, "b": 2}, progress=seen.append)
        assert (result.content[0].text, seen[0].progress) == ("3", 1)
        assert client.call_tool("ask").content[0].text == "who?"
        assert client.call_tool("on_asyncio").content[0].text.isdigit()
        with client.listen(tools=True) as agreed:
            assert agreed == {"toolsListChanged": True}
        with pytest.raises(McpError, match="Unknown tool"):
            client.call_tool("nothing")
    with pytest.raises(ConnectionClosed, match="the client is closed"):
        client.ping()
    assert "noizu-mcp client" not in {each.name for each in threading.enumerate()}


def test_it_has_the_options_of_connect():
    """Both have the same signature."""
    ours = inspect.signature(SyncClient).parameters

    assert dict(ours) == dict(inspect.signature(connect).parameters)


def test_many_threads_may_call():
    """Their calls run concurrently, each with its own context variables."""
    variable = contextvars.ContextVar("variable", default=0)
    seen = []

    def call(client, number):
        variable.set(number)
        progress = lambda _: seen.append(variable.get() == number)  # noqa: E731
        return client.call_tool("add", {"a": number, "b": 0}, progress=progress).content[0].text

    with (
        SyncClient(Calculator) as client,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        texts = list(pool.map(lambda number: call(client, number), range(40)))
    assert texts == [str(number) for number in range(40)]
    assert len(seen) == 40


def test_it_works_in_a_running_asyncio_loop():
    """It works, as in a notebook cell, and blocks that loop."""

    async def cell():
        with SyncClient(Calculator) as client:
            return client.call_tool("on_asyncio").content[0].text

    assert asyncio.run(cell()).isdigit()


async def test_in_a_trio_task_it_is_refused():
    """It would block the loop, and `connect` is available; a thread of the program can use it."""
    with pytest.raises(RuntimeError, match="async with connect"):
        SyncClient(Calculator).__enter__()

    def in_thread():
        with SyncClient(Calculator) as client:
            return client.call_tool("add", {"a": 1, "b": 2}).content[0].text

    assert await trio.to_thread.run_sync(in_thread) == "3"


def test_its_own_callbacks_cannot_call_it():
    """They run in the client's loop, which would wait for itself."""

    def call_again(_):
        with pytest.raises(RuntimeError, match="in its own handler or callbacks"):
            client.ping()
        told.append(True)

    told = []
    with SyncClient(Calculator) as client:
        client.call_tool("add", {"a": 1, "b": 2}, progress=call_again)
    assert told == [True]


def test_a_server_that_cannot_be_reached():
    """It raises one exception, and no thread remains."""
    with pytest.raises(TransportError), SyncClient(Stdio("/nonexistent/command")):
        pass
    assert "noizu-mcp client" not in {each.name for each in threading.enumerate()}


def test_an_exception_of_the_block_passes():
    """The connection is closed normally."""
    server = Calculator()
    with pytest.raises(KeyError), SyncClient(server):
        raise KeyError


def test_closing_ends_running_calls():
    """A call of another thread gets an error, and ends at the server."""
    server = Calculator()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with SyncClient(server) as client:
            calling = pool.submit(client.call_tool, "wait")
            server.state.started.wait(30)
        with pytest.raises(ConnectionClosed):
            calling.result(30)
    assert server.state.ended.is_set()


def test_a_block_that_outlives_the_client():
    """The end of the block raises an error that the client is closed."""
    client = SyncClient(Calculator, version="2025-11-25")
    with contextlib.ExitStack() as stack:
        with client:
            stack.enter_context(client.listen(tools=True))
        with pytest.raises(ConnectionClosed):
            stack.close()


def test_a_call_while_the_client_closes():
    """It ends at once, also if its thread comes too late."""

    def use():
        with SyncClient(Calculator) as client:
            client._thread.soon(client._thread.stopped.set)
            client.ping()

    with pytest.raises(ConnectionClosed, match="the client is closed"):
        use()


def test_ctrl_c_cancels_the_call():
    """The cancellation is sent to the server, and the client can be used again."""
    server = Calculator()
    with SyncClient(server) as client:

        def interrupt():
            server.state.started.wait(30)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("wait")
        thread.join()
        assert server.state.ended.wait(30)
        client.ping()


def test_ctrl_c_while_it_connects():
    """The attempt is cancelled."""
    began = threading.Event()

    class Slow(Server, name="slow", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            began.set()
            await trio.sleep_forever()
            yield

    main = threading.main_thread().ident

    def interrupt():
        began.wait(30)
        # Earlier, the signal would reach the client before it waits.
        while "wait" not in {frame.f_code.co_name for frame, _ in walk_stack(frames()[main])}:
            pass
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt), SyncClient(Slow):
        raise AssertionError
    thread.join()
    assert "noizu-mcp client" not in {each.name for each in threading.enumerate()}


def test_without_a_block():
    """It can be opened and closed in different threads, and opened again."""
    client = SyncClient(Calculator)
    for _ in range(2):
        assert client.open() is client
        assert client.call_tool("add", {"a": 1, "b": 2}).content[0].text == "3"
        with pytest.raises(RuntimeError, match="is open already"):
            client.open()
        closing = threading.Thread(target=client.close)
        closing.start()
        closing.join(30)
        client.close()
        with pytest.raises(ConnectionClosed, match="the client is closed"):
            client.ping()
    assert "noizu-mcp client" not in {each.name for each in threading.enumerate()}


def test_before_it_is_open():
    """Using it raises an error that says what to do."""
    client = SyncClient(Calculator)
    with pytest.raises(RuntimeError, match=r"not open: use it in a `with` block, or open\(\) it"):
        client.ping()
    with pytest.raises(RuntimeError, match="not open"):
        client.server_info  # noqa: B018 - looking is what is tested
    client.close()


def test_its_own_callbacks_cannot_close_it():
    """The loop would wait for its own end."""

    def close(_):
        with pytest.raises(RuntimeError, match="closed in its own handler or callbacks"):
            client.close()
        told.append(True)

    told = []
    with SyncClient(Calculator) as client:
        client.call_tool("add", {"a": 1, "b": 2}, progress=close)
    assert told == [True]


def test_a_client_that_ends_waits_for_its_end():
    """Another thread waits until the connection has ended, whichever thread ends it."""
    client = SyncClient(Calculator).open()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.wait_closed)
        client.close()
        with contextlib.suppress(ConnectionClosed):  # the loop ended first
            waiting.result(30)


PROGRAM = """
import os, sys
from noizu_mcp import Stdio, SyncClient

client = SyncClient(Stdio(sys.executable, "-c", sys.argv[1], sys.argv[2])).open()
client.ping()
if sys.argv[3] == "fork":
    if os.fork():
        os.wait()
    else:
        sys.exit()  # the copy of the client in a child is nobody's
client.ping()
print("done")
"""
SERVER = """
import os, signal, sys
from noizu_mcp import Server

class Small(Server, name="small", version="1"):
    pass

with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
Small().run()
"""


@pytest.mark.parametrize("way", ["plainly", "fork"])
def test_a_program_that_ends_without_closing(tmp_path, way):
    """The client is closed: its server has ended, and nothing is printed."""
    path = tmp_path / "pid"
    command = [sys.executable, "-X", "dev", "-c", PROGRAM, SERVER, str(path), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    said = [line for line in done.stderr.splitlines() if "fork" not in line]  # 3.12 warns about it
    assert (done.stdout, said) == ("done\n", [])
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)


def test_a_handler_of_another_type():
    """The error of `connect` is raised, with the value that was given."""
    with (
        pytest.raises(TypeError, match="must be an instance of a ClientHandler, not 5"),
        SyncClient(Calculator, handler=5),
    ):
        raise AssertionError
