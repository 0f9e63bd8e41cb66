"""`noizu-mcp run --http`: a process that serves, and ends normally whatever its clients do."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
import trio

import noizu_mcp

from ..kit.http_client import HttpClient

PATIENCE = 60.0
#: Seconds for a shutdown of a few seconds, on a busy machine.
IN_TIME = 30.0
SERVER = """
import trio
from noizu_mcp import Server, Toolkit, mcp

class Kit(Toolkit):
    @mcp
    async def echo(self, *, text: str) -> str:
        return text

    @mcp
    async def hang(self, args, ctx):
        await ctx.report_progress(1)
        await trio.sleep_forever()

    @mcp
    def block(self):
        import time
        time.sleep(2)

    @mcp
    async def resist(self, args, ctx):
        with trio.CancelScope(shield=True):
            await ctx.report_progress(1)
            await trio.sleep_forever()

    @mcp
    async def stop_the_loop(self, args, ctx):
        import time
        await ctx.report_progress(1)
        await trio.testing.wait_all_tasks_blocked()
        time.sleep(60)

class Demo(Server, name="demo", version="1"):
    tools = [Kit]
"""
#: The same as a program, which ends sooner.
PROGRAM = f"""{SERVER}
import trio.testing
from noizu_mcp.transports.http import HttpLimits

Demo().run_http(port=0, limits=HttpLimits(grace=0.1), drain_timeout=0.1, lifespan_timeout=0.5)
"""
OPEN = []


@pytest.fixture(autouse=True)
def _no_open_connections():
    """Close connections that the clients of a test have left open."""
    yield
    while OPEN:
        OPEN.pop().close()


@pytest.fixture
def app(tmp_path):
    """The file of a server."""
    path = tmp_path / "app.py"
    path.write_text(SERVER)
    return path


@contextmanager
def running(app, *words, cwd=None):
    """Run the command until the block ends; yields the process and a client of it."""
    command = [sys.executable, "-m", "noizu_mcp", "run", str(app), "--http", *words]
    with started(command, cwd or app.parent) as process:
        if "--reload" in words:
            assert process.stderr.readline().startswith("noizu-mcp: watching /")
        yield process, client_of(process.stderr.readline())


@contextmanager
def started(command, cwd):
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def client_of(line):
    """Make a client for the address that the server prints."""
    found = re.fullmatch(r"noizu-mcp: demo serves at (http://127\.0\.0\.1:\d+/mcp)\n", line)
    assert found, line
    OPEN.append(HttpClient(found[1]))
    return OPEN[-1]


def call(client, name, token=None, **arguments):
    """Call a tool on 2026-07-28."""
    meta = {} if token is None else {"progressToken": token}
    return client.post_modern("tools/call", {"name": name, "arguments": arguments, "_meta": meta})


def end(process, number):
    """Send a signal; return the status, stderr, and the seconds that it took."""
    before = time.monotonic()
    process.send_signal(number)
    stderr = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, stderr, time.monotonic() - before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(app, number):
    """It answers, then exits with status 0 and without further output."""
    with running(app, "--port", "0") as (process, client):
        assert json.load(call(client, "echo", text="x"))["result"]["content"][0]["text"] == "x"
        assert end(process, number)[:2] == (0, "")


def test_hypercorn_serves_where_it_is_asked_for(app):
    """With the option both eras are answered, and a signal ends it normally."""
    with running(app, "--port", "0", "--server", "hypercorn") as (process, client):
        assert call(client, "echo", text="1").status == 200
        assert client.begin().post("ping").status == 200
        assert end(process, signal.SIGTERM)[:2] == (0, "")


@pytest.mark.slow
def test_no_client_keeps_it_from_ending(app):
    """It ends with open calls of both eras, both kinds of streams, and an unread response."""
    with running(app, "--port", "0") as (process, client):
        session = client.begin()
        progress = {"_meta": {"progressToken": 1}}
        handshake = session.post("tools/call", {"name": "hang", **progress})
        assert handshake.readline()
        stateless = call(client, "hang", token=1)
        assert stateless.readline()
        stream = session.send("GET", Accept="text/event-stream")
        assert stream.status == 200
        listening = {"notifications": {"toolsListChanged": True}}
        listen = client.post_modern("subscriptions/listen", listening)
        assert listen.readline()
        stuck = socket.create_connection(client.address)
        stuck.sendall(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{")
        status, stderr, seconds = end(process, signal.SIGTERM)
        assert (status, stderr) == (0, "")
        assert seconds < IN_TIME
        assert b'"resultType":"complete"' in listen.read()
        for answer in (handshake, stateless):
            assert b"The server is shutting down" in answer.read()
        assert b"data: {" not in stream.read()
        stuck.close()


def status_of(client, path):
    """Send a request outside of the protocol; return the status."""
    connection = client.connection()
    connection.request("GET", path)
    return connection.getresponse().status


def test_readiness_turns_false_first(app):
    """During the lead time all is served; a second signal ends it."""
    with running(app, "--port", "0", "--lead", "60") as (process, client):
        assert status_of(client, "/readyz") == 200
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while status_of(client, "/readyz") != 503:
            assert time.monotonic() < deadline
        assert status_of(client, "/healthz") == 200
        assert json.load(call(client, "echo", text="x"))["result"]["content"][0]["text"] == "x"
        assert end(process, signal.SIGTERM)[:2] == (-signal.SIGTERM, "")


def test_after_the_lead_it_ends_in_order(app):
    """The shutdown takes that much longer, and is otherwise the same."""
    with running(app, "--port", "0", "--lead", "1") as (process, _):
        status, stderr, seconds = end(process, signal.SIGTERM)
        assert (status, stderr) == (0, "")
        assert 1 <= seconds < IN_TIME


@pytest.mark.parametrize("tool", ["resist", "stop_the_loop"])
def test_a_handler_that_does_not_end_is_ended(app, tool):
    """The log names the handler that does not end, and the process exits."""
    app.write_text(PROGRAM)
    with started([sys.executable, str(app)], app.parent) as process:
        client = client_of(process.stderr.readline())
        assert call(client, tool, token=1).readline()
        status, stderr, seconds = end(process, signal.SIGTERM)
        assert status == 1
        assert re.search(f"not ended within 1.7 s.*tools/call '{tool}'", stderr)
        assert 1.7 <= seconds < IN_TIME


@pytest.mark.parametrize(("hard", "left"), [(64, 31), (4096, 200)])
def test_connections_fit_the_limit_of_open_files(app, hard, left):
    """The limit is raised, or fewer connections kept: idle clients never block the next one."""
    code = f"""
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))
sys.argv = ["noizu-mcp", "run", {str(app)!r}, "--http", "--port", "0"]
runpy.run_module("noizu_mcp", run_name="__main__")
"""
    with started([sys.executable, "-c", code], app.parent) as process:
        line = process.stderr.readline()
        if hard == 64:
            assert "needs 1128 open files, but the limit is 64 (ulimit -n): 32 at most" in line
            line = process.stderr.readline()
        client = client_of(line)
        with ExitStack() as stack:
            idle = [
                stack.enter_context(socket.create_connection(client.address, timeout=PATIENCE))
                for _ in range(200)
            ]
            assert call(client, "echo", text="x").status == 200
            assert sum(map(_is_open, idle)) == left
        assert end(process, signal.SIGTERM)[:2] == (0, "")


def _is_open(client):
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True


def test_a_unix_socket(app, tmp_path):
    """The output has its path."""
    path = tmp_path / "socket"
    command = [sys.executable, "-m", "noizu_mcp", "run", str(app), "--http", "--uds", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == f"noizu-mcp: demo serves at unix:{path}/mcp\n"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        assert end(process, signal.SIGTERM)[:2] == (0, "")


def test_a_port_that_is_taken(app):
    """The error is one line, with its status."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "noizu_mcp",
            "run",
            str(app),
            "--http",
            "--port",
            f"{port}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    text = f"noizu-mcp: cannot listen on http://127.0.0.1:{port}: address already in use\n"
    assert done.stderr == text


def test_every_address_needs_names(app):
    """A server that listens on all addresses says which hosts it serves."""
    command = [sys.executable, "-m", "noizu_mcp", "run", str(app)]
    options = ["--http", "--host", "0.0.0.0", "--port", "0"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.readline()
        assert "set allowed_hosts (--allow-host) to the names that clients use" in said
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_it_starts_again_when_a_file_changes(app):
    """With `--reload` a change restarts it; a broken version is waited out."""
    with running(app, "--port", "0", "--reload") as (process, _):
        lines = iter(process.stderr.readline, "")

        def change(text):
            app.write_text(text)
            os.utime(app, (time.time() + 5, time.time() + 5))
            assert any("has changed" in line for line in lines)
            return next(lines)

        assert "oops" in change(f"{SERVER}\noops\n")
        client = client_of(change(f"{SERVER}\n"))
        assert json.load(call(client, "echo", text="x"))["result"]["content"]
        assert end(process, signal.SIGINT)[0] == 0


def test_a_file_elsewhere_is_watched(app, tmp_path):
    """A server is usually started from another folder than its own."""
    here = tmp_path / "here"
    here.mkdir()
    with running(app, "--port", "0", "--reload", cwd=here) as (process, _):
        os.utime(app, (time.time() + 5, time.time() + 5))
        assert "app.py has changed" in process.stderr.readline()
        client_of(process.stderr.readline())
        assert end(process, signal.SIGINT)[0] == 0


def test_a_server_ends_with_the_process_that_reloads_it(app):
    """It ends even if that process is killed, and its port is free then."""
    with running(app, "--port", "0", "--reload") as (process, client):
        process.kill()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                socket.create_server(client.address).close()
            except OSError:
                time.sleep(0.05)
            else:
                break
        socket.create_server(client.address).close()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--port", "80"], "--port needs --http; on stdin and stdout it means nothing"),
        (["--http", "--port", "x"], "must be a number from 0 to 65535, got 'x'"),
        (["--http", "--keyfile", "x"], "--keyfile needs --certfile"),
        (["--http", "--certfile", "missing.pem"], "missing.pem"),
    ],
)
def test_wrong_words(app, words, text):
    """Each error is one line."""
    command = [sys.executable, "-m", "noizu_mcp", "run", str(app), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=app.parent)
    assert done.returncode in (1, 2)
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_clients_outlive_a_server_that_was_killed(app):
    """Its sessions get 404, and a new one begins; other requests simply go on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(app, "--port", f"{port}") as (_, client):
        session = client.begin()
        assert session.post("tools/list").status == 200
    with running(app, "--port", f"{port}") as (_, client):
        assert session.post("tools/list").status == 404
        assert client.begin().post("tools/list").status == 200
        assert call(client, "echo", text="x").status == 200


@pytest.mark.parametrize(
    ("version", "sealed", "handshakes"),
    [("2025-11-25", False, 2), ("2025-11-25", True, 1), ("2026-07-28", False, 0)],
)
async def test_our_client_outlives_a_server_that_was_killed(
    app, monkeypatch, version, sealed, handshakes
):
    """The open call fails; the next one works, in a new session if needed."""
    monkeypatch.setenv("NOIZU_MCP_STATE_KEYS", "a secret that is long enough for it")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["--port", f"{port}", *(["--seal-sessions"] if sealed else [])]
    start = partial(running, app, *words)
    sent, begun = [], trio.Event()

    async def hang():
        with pytest.raises(noizu_mcp.ConnectionClosed, match=r"lost: |broke before"):
            await client.call_tool("hang", progress=lambda _: begun.set())

    def tap(direction, data):
        sent.append(json.loads(data).get("method"))

    with ExitStack() as stack:
        process, _ = await trio.to_thread.run_sync(stack.enter_context, start())
        url = f"http://127.0.0.1:{port}/mcp"
        async with (
            noizu_mcp.connect(url, version=version, tap=tap) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(hang)
            await begun.wait()
            process.kill()
            await trio.to_thread.run_sync(process.wait)
            with pytest.raises((noizu_mcp.TransportError, noizu_mcp.ConnectionClosed)):
                await client.call_tool("echo", {"text": "x"})
            await trio.to_thread.run_sync(stack.enter_context, start())
            result = await client.call_tool("echo", {"text": "x"})
            assert result.content[0].text == "x"
    assert sent.count("initialize") == handshakes
