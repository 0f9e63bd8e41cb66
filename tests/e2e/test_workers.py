"""`noizu-mcp run --http --workers`: several processes that serve as one, and their supervisor."""

import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections import Counter
from contextlib import ExitStack

import pytest
import trio

from ..kit.http_client import HttpClient, RawClient
from ..kit.messages import http_request, message, modern_request
from ..transports.http.certificate import make_certificate

PATIENCE = 60.0
SERVER = """
import os
import trio
from noizu_mcp import Server, Toolkit, mcp

class Kit(Toolkit):
    @mcp
    async def pid(self) -> str:
        return str(os.getpid())

    @mcp
    async def wait(self, args, ctx) -> str:
        await ctx.report_progress(1)
        await trio.sleep(0.5)
        return "done"

    @mcp
    async def hang(self, args, ctx):
        await ctx.report_progress(1)
        await trio.sleep_forever()

class Demo(Server, name="demo", version="1"):
    tools = [Kit]
"""


class Service:
    """A supervisor with its workers.

    Attributes:
        client: A client of the server; None on a Unix socket.
    """

    def __init__(self, process, health):
        self.process = process
        self.client = None
        self._health = health

    def line(self):
        """Read the next line on stderr; empty at the end."""
        return self.process.stderr.readline()

    def line_with(self, text):
        """Read up to a line that has some text in it."""
        while text not in (line := self.line()):
            assert line, f"{text!r} did not come"

    def get(self, path):
        """Ask the health port; return status and text."""
        connection = socket.create_connection(("127.0.0.1", self._health), timeout=PATIENCE)
        with connection:
            connection.sendall(
                f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode()
            )
            with connection.makefile("rb") as file:
                head, _, body = file.read().decode().partition("\r\n\r\n")
        return int(head.split()[1]), body

    def pids(self):
        """Return the process ids of the workers that are ready."""
        return [int(pid) for pid in re.findall(r"pid (\d+), ready", self.get("/readyz")[1])]

    def end(self, *numbers):
        """Send signals; return the status once the supervisor and all workers have ended."""
        with ExitStack() as stack:
            watched = [os.pidfd_open(pid) for pid in self.pids()]
            for each in watched:
                stack.callback(os.close, each)
            for number in numbers:
                self.process.send_signal(number)
            self.process.communicate(timeout=PATIENCE)
            for each in watched:
                assert select.select([each], [], [], PATIENCE)[0], "a worker has not ended"
        return self.process.returncode


def free_port():
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def file(tmp_path):
    """The file of a server."""
    path = tmp_path / "app.py"
    path.write_text(SERVER)
    return path


@pytest.fixture
def start(file):
    """Start a supervisor with two workers; it is ended with the test."""
    with ExitStack() as stack:

        def start(*words):
            health = free_port()
            command = [sys.executable, "-m", "noizu_mcp", "run", str(file), "--http"]
            command += ["--workers", "2", "--health-port", str(health), *words]
            process = stack.enter_context(
                subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=file.parent)
            )
            stack.callback(process.kill)
            return Service(process, health)

        def serve(*words):
            service = start(*words)
            line = service.line()
            found = re.fullmatch(r"noizu-mcp: demo serves at (\S+) with 2 workers\n", line)
            assert found, line
            if found[1].startswith("http://"):
                service.client = HttpClient(found[1])
                stack.callback(service.client.close)
            service.url = found[1]
            return service

        serve.only = start
        yield serve


def call(client, name, **arguments):
    """Call a tool on 2026-07-28."""
    meta = {"progressToken": 1}
    return client.post_modern("tools/call", {"name": name, "arguments": arguments, "_meta": meta})


def text_of(answer):
    """Return the text of a result."""
    return json.load(answer)["result"]["content"][0]["text"]


def test_new_connections_are_shared(start):
    """Each worker gets a part of calls, also where they come one after the other."""
    service = start("--port", "0")
    pids = Counter(text_of(call(service.client, "pid")) for _ in range(40))
    assert len(pids) == 2
    assert min(pids.values()) >= 10
    assert service.end(signal.SIGTERM) == 0


def test_running_calls_are_answered_at_the_end(start):
    """All workers drain, and the health port says that the end has begun."""
    service = start("--port", "0")
    answers = [call(service.client, "wait") for _ in range(4)]
    for each in answers:
        assert each.readline()
    assert service.end(signal.SIGINT) == 0
    for each in answers:
        assert b'"text":"done"' in each.read()


def test_a_signal_to_all_processes(start):
    """A service manager may send it to every process: it counts once."""
    service = start("--port", "0")
    answer = call(service.client, "wait")
    assert answer.readline()
    for pid in service.pids():
        os.kill(pid, signal.SIGTERM)
    assert service.end(signal.SIGTERM) == 0
    assert b'"text":"done"' in answer.read()


@pytest.mark.parametrize(
    ("numbers", "status"),
    [([signal.SIGTERM, signal.SIGTERM], -signal.SIGTERM), ([signal.SIGKILL], -signal.SIGKILL)],
)
def test_a_supervisor_that_ends_at_once(start, numbers, status):
    """Its workers end, too: with a second signal at once."""
    service = start("--port", "0", "--grace", "1" if len(numbers) == 1 else "1000")
    hanging = call(service.client, "hang")
    assert hanging.readline()
    if len(numbers) == 2:
        service.process.send_signal(numbers[0])
        pids = [int(pid) for pid in re.findall(r"pid (\d+)", service.get("/readyz")[1])]
        assert service.get("/readyz")[0] == 503
        watched = [os.pidfd_open(pid) for pid in pids]
        service.process.send_signal(numbers[1])
        for each in watched:
            select.select([each], [], [], PATIENCE)
            os.close(each)
        service.process.communicate(timeout=PATIENCE)
        assert service.process.returncode == status
    else:
        assert service.end(*numbers) == status


def test_a_worker_that_is_killed(start):
    """Another one takes its place, and sessions of it go on."""
    service = start("--port", "0")
    sessions = [service.client.begin() for _ in range(4)]
    before = service.pids()
    os.kill(before[0], signal.SIGKILL)
    service.line_with("worker 1 has ended with status -9; it is replaced")
    service.line_with("worker 1 serves again")
    after = service.pids()
    assert (after[1], len(after)) == (before[1], 2)
    assert all(each.post("ping").status == 200 for each in sessions)
    assert service.end(signal.SIGTERM) == 0


def test_a_program_that_does_not_start(start, file):
    """Its reason is one line, and nothing is tried again."""
    file.write_text("raise ValueError('not today')")
    process = start.only("--port", "0").process
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "not today" in stderr
    assert stderr.count("\n") == 1


def test_a_program_that_does_not_start_again(start, file):
    """The workers before it go on, and the reason is on stderr."""
    service = start("--port", "0")
    before = service.pids()
    file.write_text("raise ValueError('not today')")
    service.process.send_signal(signal.SIGHUP)
    service.line_with("not today")
    service.line_with("worker 1 has not started: the workers before it go on")
    assert service.pids() == before
    file.write_text(SERVER)
    service.process.send_signal(signal.SIGHUP)
    service.line_with("all workers are replaced")
    assert set(before).isdisjoint(service.pids())
    assert service.end(signal.SIGTERM) == 0


def test_metrics_of_all_workers(start):
    """The health port has the metrics of each; their sum is that of all calls."""
    pytest.importorskip("prometheus_client")
    service = start("--port", "0")
    for _ in range(10):
        assert call(service.client, "pid").status == 200
    status, text = service.get("/metrics")
    found = re.findall(r'mcp_requests_total{worker="(\d)",.*name="pid",.*} (\d+)', text)
    assert status == 200
    assert {worker for worker, _ in found} == {"1", "2"}
    assert sum(int(count) for _, count in found) == 10
    assert service.end(signal.SIGTERM) == 0


def test_a_unix_socket(start, tmp_path):
    """The path is there while one worker serves, and removed at the end."""
    path = tmp_path / "socket"
    service = start("--uds", str(path))
    assert service.url == f"unix:{path}/mcp"
    service.process.send_signal(signal.SIGHUP)
    service.line_with("all workers are replaced")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
    assert service.end(signal.SIGTERM) == 0
    assert not path.exists()


@pytest.mark.parametrize("server", ["noizu", "hypercorn"])
def test_tls(start, tmp_path, server):
    """Both servers speak TLS in a worker."""
    certificate = str(make_certificate(tmp_path))
    service = start("--port", "0", "--certfile", certificate, "--server", server)
    context = ssl.create_default_context(cafile=certificate)
    where = service.url.replace("/mcp", "/healthz")
    with urllib.request.urlopen(where, context=context, timeout=PATIENCE) as answer:
        assert answer.read() == b"ok\n"
    assert service.end(signal.SIGTERM) == 0


class Load:
    """Clients that send calls until there are enough, and the workers were replaced.

    Attributes:
        done: Answers, by the process that sent them.
        failed: Failures, by kind.
    """

    def __init__(self, address, count):
        body, headers = modern_request(message("tools/call", {"name": "pid"}, 1))
        self._request = http_request(body, headers)
        self._address = address
        self._left = count
        self._replaced = False
        self.done, self.failed = Counter(), Counter()

    async def run(self, replace):
        """Run 8 clients that keep their connections, and 4 that do not."""
        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(self._send_all, number % 3 > 0)
            await trio.to_thread.run_sync(replace)
            self._replaced = True

    async def _send_all(self, keeps):
        while self._left > 0 or not self._replaced:
            async with await trio.open_tcp_stream(*self._address) as stream:
                client = RawClient(stream)
                while await self._send_one(client) and keeps and self._left > 0:
                    pass

    async def _send_one(self, client):
        """Send a call; tell if the connection stays open."""
        self._left -= 1
        try:
            await client.send(self._request)
            status, headers, data = await client.whole_answer()
            assert status == 200
        except Exception as error:
            self.failed[repr(error)] += 1
            return False
        self.done[json.loads(data)["result"]["content"][0]["text"]] += 1
        return headers.get("connection") != "close"


def test_nothing_is_lost_in_a_rolling_restart(start):
    """Under load no request fails, on kept and on new connections, and sessions go on."""
    service = start("--port", "0")
    session = service.client.begin()
    before = service.pids()
    load = Load(service.client.address, 6000)

    def replace():
        for _ in range(2):
            service.process.send_signal(signal.SIGHUP)
            service.line_with("all workers are replaced")

    trio.run(load.run, replace)
    assert load.failed == Counter()
    assert load.done.total() >= 6000
    assert len(load.done) >= 4
    assert set(before).isdisjoint(service.pids())
    assert session.post("ping").status == 200
    assert service.end(signal.SIGTERM) == 0
