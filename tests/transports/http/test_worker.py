"""A worker: a server in a process that a supervisor has started."""

import json
import os
import signal
import socket
import sys
import threading
from contextlib import ExitStack
from functools import partial

import pytest
import trio

from noizu_mcp.backends import Memory
from noizu_mcp.cli import main
from noizu_mcp.transports import Worker
from noizu_mcp.workers import VARIABLE, open_balance, serve_hub

from ...kit.http_client import HttpClient

SERVER = """
from noizu_mcp import Server

class Small(Server, name="small", version="1"):
    pass
"""


class Place:
    """A worker in this process, and the other ends of what it inherits."""

    def __init__(self, stack, folder):
        self._file = folder / "small_worker.py"
        self._file.write_text(SERVER)
        self._listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/mcp"
        balance = stack.enter_context(open_balance(2))
        self.control, self.its_control = map(stack.enter_context, socket.socketpair())
        self.hub, self.its_hub = map(stack.enter_context, socket.socketpair())
        self.text = json.dumps(
            {
                "number": 1,
                "control": self.its_control.fileno(),
                "hub": self.its_hub.fileno(),
                "balance": os.dup(balance.fileno()),
                "listeners": [self._listener.fileno()],
                "secret": "abcdefghijklmnopqrstuvwxyz012345",
                "quiet": 0.01,
            }
        )
        stack.callback(signal.signal, signal.SIGHUP, signal.getsignal(signal.SIGHUP))

    def serve(self, supervise, *words):
        """Serve in this process, with a supervisor in a thread, until the thread has ended."""
        # They are closed at the end, as the listener is.
        for end in (self.its_control, self.its_hub, self._listener):
            end.detach()
        backend = partial(serve_hub, lambda _name: Memory())
        threads = [
            threading.Thread(target=self._supervise, args=[supervise]),
            threading.Thread(target=trio.run, args=[backend, self.hub]),
        ]
        for thread in threads:
            thread.start()
        assert main(["run", str(self._file), "--http", "--workers", "1", *words]) == 0
        for thread in threads:
            thread.join()

    def _supervise(self, supervise):
        with self.control:
            supervise()

    def send(self, word):
        """Send a frame."""
        self.control.sendall(len(word).to_bytes(4, "big") + word)

    def receive(self):
        """Receive a frame."""
        return self._take(int.from_bytes(self._take(4), "big"))

    def _take(self, size):
        data = b""
        while len(data) < size:
            more = self.control.recv(size - len(data))
            assert more
            data += more
        return data


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A place of a worker."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("NOIZU_MCP_STATE_KEYS", "")
    with ExitStack() as stack:
        place = Place(stack, tmp_path)
        monkeypatch.setenv(VARIABLE, place.text)
        yield place
    sys.modules.pop("small_worker", None)


def ask(place):
    """Call its server; return the status."""
    client = HttpClient(place.url)
    try:
        return client.post_modern("server/discover").status
    finally:
        client.close()


def test_a_worker_serves_until_its_supervisor_ends(place, capfd):
    """It says that it is ready to the supervisor alone; programs that it starts are no workers."""
    seen = []

    def supervise():
        seen.append(place.receive())
        seen.append(ask(place))

    place.serve(supervise)
    assert VARIABLE not in os.environ
    assert seen == [b"small", 200]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("number", [1, 2])
def test_one_of_all_workers_warns(place, monkeypatch, caplog, number):
    """The options are the same for all of them."""
    monkeypatch.setenv(VARIABLE, json.dumps({**json.loads(place.text), "number": number}))
    place.serve(place.receive, "--host", "0.0.0.0")
    assert caplog.text.count("listening at every address") == (number == 1)


def test_metrics_of_a_worker(place):
    """They are counted from the start, and sent as text."""
    pytest.importorskip("prometheus_client")
    seen = []

    def supervise():
        place.receive()
        place.send(b"metrics")
        seen.append(place.receive())
        ask(place)
        place.send(b"metrics")
        seen.append(place.receive())

    place.serve(supervise, "--health-port", "1")
    counted = b'mcp_requests_total{method="server/discover",name="",outcome="ok"} 1.0'
    assert [counted in each for each in seen] == [False, True]


def test_a_worker_without_metrics(place, monkeypatch):
    """It sends an empty text where the library is not installed; and the body of `/readyz`."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.telemetry._series", None)
    seen = []

    def supervise():
        place.receive()
        place.send(b"metrics")
        seen.append(place.receive())
        place.send(b"ready")
        seen.append(place.receive())

    place.serve(supervise, "--health-port", "1")
    assert seen == [b"metrics\n", b"ready\nok\n"]


def test_a_worker_that_retires(place):
    """It ends by itself; the second signal that comes from its supervisor does nothing."""
    seen = []

    def supervise():
        place.receive()
        place.send(b"retire")
        seen.append(place.control.recv(1))  # its end

    place.serve(supervise)
    os.kill(os.getpid(), signal.SIGTERM)
    assert seen == [b""]


def test_a_worker_has_a_backend(place):
    """It is that of its supervisor."""
    memory = Memory()

    async def use():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_hub, lambda _name: memory, place.hub)
            place.its_hub.detach()
            async with Worker.from_environment().backend().open("small") as backend:
                await backend.put("key", b"value", ttl=60)
                assert (await backend.get("key")).value == b"value"

    trio.run(use)


@pytest.mark.parametrize("keys", ["", "abcdefghijklmnopqrstuvwxyz0123456789"])
def test_the_key_of_a_supervisor_is_not_shared_with_other_machines(place, monkeypatch, capfd, keys):
    """With a backend of their own, workers need keys of the author."""
    monkeypatch.setenv("NOIZU_MCP_STATE_KEYS", keys)
    for end in (place.its_control, place.its_hub, place._listener):
        end.detach()
    words = ["--backend", "unix:///nowhere/redis"]
    assert main(["run", str(place._file), "--http", "--workers", "1", *words]) == 1
    line = capfd.readouterr().err
    assert ("/nowhere/redis" if keys else "NOIZU_MCP_STATE_KEYS") in line
