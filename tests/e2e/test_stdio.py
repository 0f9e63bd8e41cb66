"""`noizu-mcp run` and `serve_stdio` as processes: their output to the client, and their end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tty
from pathlib import Path

import pytest

CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
NOISE = [b"printed", b"logged something", b"written", b"child", b"C", b"forked"]


@pytest.mark.parametrize("tool", ["noise", "noise_in_loop"])
def test_nothing_but_the_protocol_reaches_the_client(run_app, tool):
    """Everything that is written to stdout, from the import on, goes to stderr."""
    peer = run_app()
    peer.initialize()
    assert peer.call(tool) == "quiet"
    peer.close()
    assert peer.read() is None
    status, stderr = peer.end()
    assert status == 0
    assert stderr.split(b"\n") == [b"imported", *NOISE, b""]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("stray", b"RuntimeError: the handler raised Cancelled"),
        ("interrupt", b"RuntimeError: the handler raised KeyboardInterrupt"),
    ],
)
def test_a_handler_cannot_end_the_process(run_app, make_call, tool, said):
    """An exception that would end the loop only fails the call, and is logged."""
    peer = run_app()
    peer.initialize()
    peer.start("stay", "held")
    for _ in range(2):
        assert peer.call(tool) == "Tool execution failed"
    assert peer.call("echo", message="still here") == "still here"
    peer.write({**CANCEL, "params": {"requestId": "held"}})
    peer.close()
    assert peer.read() is None
    status, stderr = peer.end()
    assert status == 0
    assert stderr.count(said) == 2


@pytest.mark.parametrize("name", ["StrayStart", "StrayEnd"])
def test_a_lifespan_that_cancels_nothing_has_failed(start, command, app, name):
    """The process reports it, and exits with status 1."""
    peer = start(command("run", f"{app}:{name}"))
    if name == "StrayEnd":
        peer.initialize()
    peer.close()
    status, stderr = peer.end()
    assert status == 1
    assert b"the handler raised Cancelled" in stderr


def test_stdin_is_not_for_handlers(run_app):
    """A handler that reads stdin gets EOF, and no message is lost."""
    peer = run_app()
    peer.initialize()
    assert peer.call("ask") == "nothing to read"
    assert peer.call("echo", message="still here") == "still here"


def test_children_have_no_protocol_descriptor(run_app):
    """A child process does not have the client's descriptors as stdin, stdout and stderr."""
    peer = run_app()
    peer.initialize()
    links, count = peer.call("descriptors").splitlines()
    stdin, _, stderr = links.split()
    assert stdin == "/dev/null"
    assert stderr == str(Path(f"/proc/{peer.process.pid}/fd/2").readlink())
    assert count == "4"  # the fourth lists the directory


@pytest.mark.parametrize("tool", ["leave_a_child", "fork_a_child"])
def test_a_child_that_outlives_the_server_does_not_hold_the_connection(run_app, tool):
    """The client reads EOF when the server exits, not when its child does."""
    peer = run_app(stderr=subprocess.DEVNULL)
    peer.initialize()
    child = int(peer.call(tool))
    try:
        peer.close()
        assert peer.read() is None
        assert peer.process.wait(60) == 0
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)


def test_an_app_has_its_descriptors_back(serve_app):
    """After `serve_stdio` the program can print to its own stdout again."""
    peer = serve_app(1)
    # Printed before the protocol began, and buffered by Python: it must not reach the client.
    peer.initialize()
    peer.close()
    assert os.read(peer.stdout, 100) == b"served\n"
    assert peer.end() == (0, b"imported\n")


LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1"},
]


@pytest.mark.parametrize("env", LOCALES)
def test_utf_8_whatever_the_locale(run_app, env):
    """Text is UTF-8 in both directions; CRLF, blank lines and a byte order mark are accepted."""
    peer = run_app(env=env)
    peer.write(b"\r\n\n  \n")
    peer.initialize()
    text = "é ÿ 漢字 🙂 \u2028"
    assert peer.call("echo", message=text) == text
    line = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    peer.write(b"\xef\xbb\xbf" + line.encode() + b"\r\n")
    assert peer.read() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    peer.write(line.replace("ping", "p\u00ffng").encode("latin-1") + b"\n")
    answer = peer.read()
    assert (answer["id"], answer["error"]["code"]) == (2, -32700)


def test_a_line_over_the_limit(run_app, make_call):
    """It is answered once, with its id, and the session goes on."""
    peer = run_app()
    peer.initialize()
    head = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"'
    peer.write(head)
    for _ in range(17):
        peer.write(b"x" * 1024 * 1024)
    peer.write(b'"}}\n', make_call("echo", 6, {"message": "on"}))
    answer = peer.read()
    assert (answer["id"], answer["error"]["code"]) == (5, -32600)
    assert peer.read()["id"] == 6


def test_half_a_line_at_the_end_is_ignored(run_app):
    """A message that was cut off is not answered, and not a failure."""
    peer = run_app()
    peer.initialize()
    peer.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
    peer.close()
    assert peer.read() is None
    assert peer.end() == (0, b"imported\n")


def _end_by(peer, how):
    if how == "eof":
        peer.close()
    else:
        peer.process.send_signal(how)


ENDS = ["eof", signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("how", ENDS)
def test_what_runs_is_finished(run_app, how):
    """A running call is answered; then the process exits with status 0 and no output."""
    peer = run_app()
    peer.initialize()
    peer.start("finish")
    _end_by(peer, how)
    assert peer.read()["result"]["content"][0]["text"] == "finished"
    assert peer.read() is None
    assert peer.end() == (0, b"imported\n")


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("tool", ["stay", "block", "thread"])
def test_what_does_not_finish_is_given_up(serve_app, unmeasured, tool, how):
    """A handler that ignores its end, in the loop or a thread, takes the grace period at most."""
    peer = serve_app(0.1, env=unmeasured if tool == "block" else None)
    peer.initialize()
    peer.start(tool)
    _end_by(peer, how)
    answer = peer.read()
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)
    assert peer.end() == (0, b"imported\n")


@pytest.mark.parametrize("first", ["stdout", "stdin"])
def test_a_client_that_leaves_does_not_cost_the_grace_period(start, app, first):
    """If a client closes both pipes during a call, the handler ends, then the process."""
    # Output of the program would meet the closed pipe.
    code = """
import contextlib, sys, trio
from noizu_mcp import serve_stdio
with contextlib.redirect_stdout(sys.stderr):
    from app import App
trio.run(lambda: serve_stdio(App(), grace=1000, handle_signals=True))
"""
    peer = start([sys.executable, "-c", code], cwd=app.parent)
    peer.initialize()
    peer.start("stay")
    for fd in sorted([peer.stdin, peer.stdout], key=getattr(peer, first).__ne__):
        os.close(fd)
    assert peer.end() == (0, b"imported\n")


@pytest.mark.parametrize("how", ENDS)
def test_an_open_listen_stream_is_ended(run_app, how):
    """A subscription does not keep the server running; it gets its result."""
    peer = run_app()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    peer.write({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params})
    assert peer.read()["method"] == "notifications/subscriptions/acknowledged"
    _end_by(peer, how)
    messages = []
    while (message := peer.read()) is not None:
        messages.append(message)
    assert messages[-1]["id"] == 1
    assert "result" in messages[-1]
    assert peer.end() == (0, b"imported\n")


@pytest.mark.parametrize("how", ["eof", signal.SIGTERM])
def test_a_client_that_stopped_reading(run_app, make_call, how):
    """Unread answers are dropped after a bounded time."""
    peer = run_app()
    peer.initialize()
    peer.write(make_call("much", 1, {"size": 1_000_000}))
    os.read(peer.stdout, 1)
    _end_by(peer, how)
    assert peer.end() == (0, b"imported\n")


def test_a_second_signal_ends_it_at_once(serve_app, until):
    """A second signal ends the grace period."""
    peer = serve_app(1000)
    peer.initialize()
    peer.start("stay")
    peer.process.send_signal(signal.SIGTERM)
    peer.write(b"\n")
    # The first one has arrived when the second one has its default action.
    until(lambda: not _catches(peer.process.pid, signal.SIGTERM))
    peer.process.send_signal(signal.SIGTERM)
    assert peer.process.wait(60) == -signal.SIGTERM


def _catches(pid, number):
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line for line in status if line.startswith("SigCgt:")).split()[1]
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_it_ends_with_its_parent(start, app, command):
    """A server whose parent was killed ends, though another process holds its stdin open."""
    code = f"""
import subprocess, sys
server = subprocess.Popen({command("run", f"{app}:App")!r}, stdin=0, stdout=1, stderr=2)
server.wait()
"""
    peer = start([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    peer.initialize()
    peer.process.kill()
    assert peer.read() is None  # its stdout is closed, while we still hold its stdin


def test_on_a_socket(start, command, app):
    """One socket may be stdin and stdout."""
    here, there = socket.socketpair()
    fd = there.detach()
    with here:
        peer = start(command("run", f"{app}:App"), stdin=fd, stdout=os.dup(fd))
        peer.stdin = peer.stdout = here.fileno()
        peer.initialize()
        assert peer.call("noise") == "quiet"
        here.shutdown(socket.SHUT_WR)
        assert peer.read() is None
        assert peer.end()[0] == 0


def test_on_a_terminal(start, command, app):
    """A terminal is served, too, with a hint for users who started it manually."""
    leader, terminal = os.openpty()
    tty.setraw(terminal)
    peer = start(command("run", f"{app}:App"), stdin=terminal, stdout=os.dup(terminal))
    peer.stdin = peer.stdout = leader
    peer.initialize()
    assert peer.call("noise") == "quiet"
    os.close(leader)
    status, stderr = peer.end()
    assert status == 0
    assert stderr.startswith(b"noizu-mcp: serving on this terminal")


def test_from_a_file_to_a_file(start, command, app, tmp_path, make_call):
    """Requests may come from a file; all answers are written when it has been read."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    lines = []
    for id_ in range(100):
        message = make_call("echo", id_, {"message": str(id_)})
        message["params"]["_meta"] = meta
        lines.append(json.dumps(message))
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    stdin = os.open(tmp_path / "in", os.O_RDONLY)
    stdout = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    peer = start(command("run", f"{app}:App"), stdin=stdin, stdout=stdout)
    assert peer.end() == (0, b"imported\n")
    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    texts = {a["id"]: a["result"]["content"][0]["text"] for a in answers}
    assert texts == {id_: str(id_) for id_ in range(100)}


def test_on_nothing(start, command, app):
    """With /dev/null as stdin the server ends at once."""
    null = os.open(os.devnull, os.O_RDWR)
    peer = start(command("run", f"{app}:App"), stdin=null, stdout=os.dup(null))
    assert peer.end() == (0, b"imported\n")


@pytest.mark.parametrize("closed", ["2>&-", "0<&-", "1>&-", "0<&- 1>&- 2>&-"])
def test_without_standard_descriptors(start, command, app, closed):
    """A descriptor that is closed initially becomes the null device, and never another file."""
    words = " ".join(command("run", f"{app}:App"))
    peer = start(["/bin/sh", "-c", f"exec {words} {closed}"])
    if closed == "2>&-":
        peer.initialize()
        assert peer.call("noise") == "quiet"
    with contextlib.suppress(BrokenPipeError):
        peer.close()
    assert peer.read() is None
    assert peer.end()[0] == 0
