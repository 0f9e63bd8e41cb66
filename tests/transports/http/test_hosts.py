"""Mounted in another application, on third-party hosts, a server serves both eras."""

import importlib.util
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noizu_mcp import connect

from ...kit.http_client import HttpClient

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
#: The commands of hosts that handle signals in the process of the application, and their exit
#: statuses. uvicorn ends with the signal that it received; its command turns SIGINT into 0.
COMMANDS = [
    ("uvicorn --factory hosted:with_signals --port 0", signal.SIGTERM, -signal.SIGTERM),
    ("uvicorn --factory hosted:with_signals --port 0", signal.SIGINT, 0),
    ("hypercorn -w 0 hosted:with_signals() -b 127.0.0.1:0", signal.SIGTERM, 0),
    ("hypercorn -w 0 hosted:with_signals() -b 127.0.0.1:0", signal.SIGINT, 0),
]


@pytest.fixture(params=HOSTS)
def url(request):
    """Run the program until the test ends; then it must exit without output."""
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
    """Its lifespan runs, and its responses stream."""
    for version in ("2025-06-18", "2026-07-28"):
        seen = []
        async with connect(url, version=version) as client:
            result = await client.call_tool("echo", {"text": "hi"}, progress=seen.append)
            assert result.content[0].text == "hi state"
            assert len(seen) == 1


def listen(client):
    """Open a stream of 2026-07-28; return it after its first event."""
    wanted = {"notifications": {"toolsListChanged": True}}
    answer = client.post_modern("subscriptions/listen", wanted)
    while b"acknowledged" not in answer.readline():
        pass
    return answer


@pytest.fixture
def started():
    """Start the command of a host; return the process and a client."""
    processes, clients = [], []

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
        clients.append(HttpClient(f"http://localhost:{port}/mcp"))
        return process, clients[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()
    for each in clients:
        each.close()


@pytest.mark.slow
@pytest.mark.parametrize(("command", "number", "status"), COMMANDS)
def test_a_signal_ends_open_streams_in_order(started, command, number, status):
    """A host that waits for open streams can end, since each gets its last event."""
    process, client = started(command)
    listening, standing = listen(client), client.begin().send("GET")
    assert standing.status == 200
    process.send_signal(number)
    assert b'"resultType":"complete"' in listening.read()
    standing.read()  # to its orderly end: a broken connection raises
    stderr = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == status
    assert "Traceback" not in stderr
