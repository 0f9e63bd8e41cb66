"""Mounted in another application, under hosts of another make, a server serves both eras."""

import http.client
import importlib.util
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noizu_mcp import connect

PROGRAM = Path(__file__).with_name("hosted.py")
#: The hosts of the program by name, and the packages that each needs.
HOSTS = {
    "uvicorn": ["starlette", "uvicorn"],
    "fastapi": ["fastapi", "uvicorn"],
    "asyncio": ["starlette", "hypercorn"],
    "trio": ["starlette", "hypercorn"],
    "quart": ["quart_trio"],
    "granian": ["starlette", "granian"],
}
PATIENCE = 60.0
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
#: The commands of hosts that handle signals in the process of the application, and how they end.
#: uvicorn ends with the signal that it was sent; of SIGINT its command makes 0.
COMMANDS = [
    ("uvicorn --factory hosted:with_signals --port 0", signal.SIGTERM, -signal.SIGTERM),
    ("uvicorn --factory hosted:with_signals --port 0", signal.SIGINT, 0),
    ("hypercorn -w 0 hosted:with_signals() -b 127.0.0.1:0", signal.SIGTERM, 0),
    ("hypercorn -w 0 hosted:with_signals() -b 127.0.0.1:0", signal.SIGINT, 0),
]


@pytest.fixture(params=HOSTS)
def url(request):
    """Run the program until the test has ended; then it must end by itself, and quietly."""
    for package in HOSTS[request.param]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = process.stdout.readline().strip()
        assert port.isdigit(), process.communicate()
        yield f"http://localhost:{port}/api/mcp"
    finally:
        stderr = process.communicate("", timeout=30)[1]
        process.kill()
    assert (process.returncode, stderr) == (0, "")


@pytest.mark.slow
async def test_a_mounted_server_serves_both_eras(url):
    """Its lifespan runs, and its answers stream."""
    for version in ("2025-06-18", "2026-07-28"):
        seen = []
        async with connect(url, version=version) as client:
            result = await client.call_tool("echo", {"text": "hi"}, progress=seen.append)
            assert result.content[0].text == "hi state"
            assert len(seen) == 1


class Wire:
    """Sends requests to a host; each has a connection of its own."""

    def __init__(self, port):
        self._port = port
        self.open = []

    def send(self, method, body=None, **headers):
        connection = http.client.HTTPConnection("localhost", self._port, timeout=PATIENCE)
        self.open.append(connection)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        accept = {"accept": "application/json, text/event-stream"}
        if body is not None:
            accept["content-type"] = "application/json"
            body = json.dumps({"jsonrpc": "2.0", **body})
        connection.request(method, "/mcp", body, {**accept, **names})
        answer = connection.getresponse()
        self.open.append(answer)
        return answer

    def listen(self):
        """Open a stream of 2026-07-28; returns it after its first event."""
        method = "subscriptions/listen"
        params = {"notifications": {"toolsListChanged": True}, "_meta": META}
        body = {"id": 1, "method": method, "params": params}
        answer = self.send("POST", body, mcp_protocol_version="2026-07-28", mcp_method=method)
        while b"acknowledged" not in answer.readline():
            pass
        return answer

    def stand(self):
        """Begin a session, and open its standing stream."""
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        began = self.send("POST", {"id": 0, "method": "initialize", "params": params})
        began.read()
        session = {"mcp_session_id": began.headers["Mcp-Session-Id"]}
        ready = {"method": "notifications/initialized"}
        assert self.send("POST", ready, **session).status == 202
        stream = self.send("GET", **session)
        assert stream.status == 200
        return stream


@pytest.fixture
def started():
    """Start the command of a host; gives the process and a client."""
    processes, wires = [], []

    def start(command):
        name, *words = command.split()
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
        process = subprocess.Popen(
            [sys.executable, "-m", name, *words],
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROGRAM.parent,
        )
        processes.append(process)
        lines = iter(process.stderr.readline, "")
        port = next(found[1] for line in lines if (found := re.search(r":(\d+) \(", line)))
        wires.append(Wire(int(port)))
        return process, wires[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()
    for wire in wires:
        for each in wire.open:
            each.close()


@pytest.mark.slow
@pytest.mark.parametrize(("command", "number", "status"), COMMANDS)
def test_a_signal_ends_open_streams_in_order(started, command, number, status):
    """A host that waits for them need not, and each has its last word."""
    process, wire = started(command)
    listening, standing = wire.listen(), wire.stand()
    process.send_signal(number)
    assert b'"resultType":"complete"' in listening.read()
    standing.read()  # to its end in order: a connection that breaks raises
    stderr = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == status
    assert "Traceback" not in stderr
