"""The client of the HTTP benchmarks: its requests, and the responses that it accepts."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it waits with epoll")

LEGACY, MODERN = "2025-11-25", "2026-07-28"
PARAMS = {"name": "echo", "arguments": {}}


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))


def answer(identifier, text="done", status=200):
    """Write an answer with a length."""
    body = b'{"id":%d,"result":"%b"}' % (identifier, text.encode())
    return b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


class Scripted:
    """Replaces a server: it answers each request with pieces made from its id."""

    port = 80

    def __init__(self, pieces):
        self.pieces = pieces
        self.ids_seen = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.threads = []

    def connect(self):
        client = socket.create_connection(self.listener.getsockname())
        thread = threading.Thread(target=self.serve, args=[self.listener.accept()[0]])
        thread.start()
        self.threads.append(thread)
        return client

    def serve(self, connection):
        with connection, suppress(OSError):
            while request := connection.recv(1 << 16):
                identifier = json.loads(request.partition(b"\r\n\r\n")[2])["id"]
                self.ids_seen.append(identifier)
                for piece in self.pieces(identifier):
                    if piece is None:
                        return
                    connection.sendall(piece)

    def close(self):
        self.listener.close()
        for thread in self.threads:
            thread.join()

    def open(self, _era):
        return None, 0.0

    def settle(self):
        pass

    def ids(self, count):
        return range(100_000_100, 100_000_100 + count)

    def cpu(self):
        return 0.0

    def last_words(self):
        return "good bye"


@pytest.fixture
def run():
    """Run requests with a script; return the received ids."""
    from benchmarks._http_load import HttpLoad
    from benchmarks._requests import template

    def load(pieces, *, count=1, window=1, whole=True):
        request = template(80, LEGACY, "tools/call", PARAMS, "s")
        with (
            closing(Scripted(pieces)) as server,
            closing(HttpLoad(server, request, window, b"done", whole=whole)) as client,
        ):
            client.run(count)
        return sorted(server.ids_seen)

    return load


def test_a_request_is_filled_with_its_id():
    """The Content-Length is right for every id, and the body has the required members."""
    from benchmarks._requests import template

    request = template(8000, LEGACY, "tools/call", PARAMS, "s-1").fill(123_456_789)
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")

    assert lines[0] == "POST /mcp HTTP/1.1"
    assert f"Content-Length: {len(body)}" in lines
    assert "Mcp-Session-Id: s-1" in lines
    assert json.loads(body)["id"] == 123_456_789


def test_the_headers_are_those_of_the_era():
    """2026-07-28 repeats method and name; the handshake has no version yet."""
    from benchmarks._requests import headers

    modern = headers(MODERN, "tools/call", PARAMS, None)
    assert (modern["Mcp-Method"], modern["Mcp-Name"]) == ("tools/call", "echo")
    assert modern["MCP-Protocol-Version"] == MODERN
    assert "MCP-Protocol-Version" not in headers(LEGACY, "initialize", {}, None)
    assert headers(LEGACY, "tools/list", {}, "s")["MCP-Protocol-Version"] == LEGACY


@pytest.mark.parametrize(
    ("data", "complete"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\na", False),
        (b"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length:2\r\n\r\nab", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n", False),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", True),
    ],
)
def test_an_answer_ends_where_its_head_says(data, complete):
    """It ends by its length, in any case of letters, or by the empty chunk."""
    from benchmarks._requests import is_complete

    assert is_complete(data) is complete


def test_every_request_is_sent_once(run):
    """Several connections are used, also if a response comes in pieces, or in chunks."""

    def pieces(identifier):
        chunk = b"data: %b\r\n\r\n" % answer(identifier).partition(b"\r\n\r\n")[2]
        if identifier % 2:
            yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
            yield b"0\r\n\r\n"
        else:
            yield answer(identifier)[:30]
            yield answer(identifier)[30:]

    assert run(pieces, count=20, window=3) == list(range(100_000_100, 100_000_120))


def test_fewer_requests_than_connections(run):
    """Connections without a request stay unused."""
    assert run(lambda each: [answer(each)], count=1, window=4) == [100_000_100]


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (lambda each: [answer(each, "error")], True),
        (lambda each: [answer(each, status=500)], True),
        (lambda _: [answer(7)], True),
        (lambda _: [answer(100_000_100)], True),
        (lambda each: [answer(each, "error")], False),
        (lambda each: [answer(each, "done" + "x" * (each % 2))], False),
        (lambda each: [answer(each)[:30], None], True),
    ],
)
def test_what_is_no_answer_is_an_error(run, pieces, whole):
    """A wrong text, status, id or length, a duplicate id, and half a response are errors."""
    with pytest.raises(RuntimeError, match=r"unexpected answer|answered twice|good bye"):
        run(pieces, count=2, whole=whole)


def test_large_answers_are_measured_by_their_length(run):
    """They are not kept: each must have the length of the last one, whose text is checked."""
    ids = run(lambda each: [answer(each)], count=5, window=2, whole=False)

    assert len(ids) == 5


def test_the_clock_is_that_of_the_whole_family():
    """The processor time and memory of child processes count."""
    from benchmarks._process import Child

    busy = "import time\nwhile time.process_time() < 0.1: pass\nprint(flush=True); time.sleep(60)"
    # The shell waits, so that it does not exec the program.
    command = ["sh", "-c", '"$0" -S -c "$1" & wait', sys.executable, busy]
    server = Child(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        server.process.stdout.readline()
        family = list(server._family())
        assert server.cpu() > 0.1
        assert server.rss_mib() > 4
    finally:
        os.killpg(server.process.pid, signal.SIGKILL)
        server.close()
    assert len(family) == 2


def test_a_server_that_does_not_listen_is_an_error():
    """The error has its last output."""
    from benchmarks._http import listening

    command = [sys.executable, "-c", "raise SystemExit('no room')"]
    with (
        pytest.raises(RuntimeError, match="does not listen: no room"),
        listening(lambda _: command),
    ):
        pass


@pytest.fixture
def burst():
    """Make one change for two clients, whose streams send a script afterwards."""
    from benchmarks import bench_fanout

    def run(*notices, said="bumped"):
        with ExitStack() as stack:
            pairs = [socket.socketpair() for _ in notices]
            for each in (each for pair in pairs for each in pair):
                stack.enter_context(each)

            def pieces(identifier):
                for (ours, _), notice in zip(pairs, notices, strict=True):
                    ours.sendall(notice)
                    if not notice:
                        ours.close()
                yield answer(identifier, said)

            server = stack.enter_context(closing(Scripted(pieces)))
            streams = [theirs for _, theirs in pairs]
            with ExitStack() as inner:
                return bench_fanout.Burst(server, MODERN, streams, inner).run()

    return run


NOTICE = b'data: {"method":"notifications/tools/list_changed"}\r\n\r\n'


def test_a_burst_ends_when_everybody_was_told(burst):
    """The figures are in order; other messages of a stream are ignored."""
    figures = burst(NOTICE, b": hello\r\n\r\n" + NOTICE)

    assert 0 < figures["first_ms"] <= figures["median_ms"] <= figures["last_ms"]


def test_every_client_must_be_told(burst, monkeypatch):
    """A stream that ends, a silent stream, and a failed call are errors."""
    with pytest.raises(RuntimeError, match="good bye"):
        burst(NOTICE, b"")
    with pytest.raises(RuntimeError, match="unexpected answer"):
        burst(NOTICE, NOTICE, said="error")
    monkeypatch.setattr("benchmarks.bench_fanout.PATIENCE", 0)
    with pytest.raises(RuntimeError, match="0 of 2 clients were told"):
        burst(NOTICE, NOTICE)
