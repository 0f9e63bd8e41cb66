"""The memory of a real server process stays within its limit, whatever its clients do."""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ...kit.messages import call, message, modern_request

MIB = 1024 * 1024
MEMORY = 16 * MIB
CLIENTS = 40
ANSWER = 2 * MIB

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and uses all of 127.0.0.0/8"),
]

PROGRAM = f"""
from functools import partial

import trio
from noizu_mcp import Schema, Server, Tool
from noizu_mcp.transports.http import HttpLimits, serve_http

class Big(Tool):
    "Make a text."

    class Input(Schema):
        size: int

    async def call(self, args: Input) -> str:
        return "x" * args.size

class Wait(Tool, timeout=None):
    "Wait for ever."

    async def call(self) -> str:
        await trio.sleep_forever()

class Served(Server, name="served", version="1"):
    tools = [Big, Wait]

async def main():
    async with trio.open_nursery() as nursery:
        limits = HttpLimits(memory={MEMORY})
        host = await nursery.start(partial(serve_http, Served(), port=0, limits=limits))
        print(host.urls[0], flush=True)

trio.run(main)
"""


class Process:
    """A server in its own process."""

    def __init__(self, process):
        self.pid = process.pid
        address = process.stdout.readline().decode().split("//")[1]
        self.port = int(address.split("/")[0].rpartition(":")[2])
        # The first call loads what all others need.
        body, headers = modern_request(call("big", {"size": 1}))
        with self.post(0, body, {**headers, "connection": "close"}) as client:
            while client.recv(4096):
                pass
        self.start = self.peak

    @property
    def peak(self):
        """The peak of its resident memory in bytes."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (found,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        return int(found) * 1024

    def post(self, number, body, headers):
        """Send a request as one client of many, with the smallest receive buffer."""
        client = socket.socket()
        client.settimeout(60)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.bind((f"127.0.0.{number + 1}", 0))
        client.connect(("127.0.0.1", self.port))
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {
            "host": "localhost",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": len(data),
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        client.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + data)
        return client


@contextmanager
def process():
    """Run the server until the block ends."""
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        try:
            yield Process(started)
        finally:
            started.kill()


def status_of(client):
    return client.recv(12)[9:]


def test_unread_answers_stay_within_the_limit():
    """Forty clients that read nothing, with 2 MiB for each, stay within the limit."""
    with process() as server, ExitStack() as stack:
        body, headers = modern_request(call("big", {"size": ANSWER}))
        clients = [
            stack.enter_context(server.post(number, body, headers)) for number in range(CLIENTS)
        ]
        assert {status_of(client) for client in clients} == {b"200"}
        assert server.peak < server.start + 2 * MEMORY


def test_values_of_open_requests_stay_within_the_limit():
    """Forty pending requests with 15,000 lists each stay within the limit."""
    with process() as server, ExitStack() as stack:
        body, headers = modern_request(call("wait"))
        body["params"]["_meta"]["x"] = [[]] * 15_000
        clients = [
            stack.enter_context(server.post(number, body, headers)) for number in range(CLIENTS)
        ]
        found = [status_of(client) for client in clients]
        assert {b"200", b"503"} == set(found)
        assert server.peak < server.start + 2 * MEMORY


@pytest.mark.time_limit(360)
def test_sessions_stay_within_the_limit():
    """Hundreds of sessions with large client data stay within the limit."""
    with process() as server:
        caps = {"experimental": {f"k{number}": {"a": "x" * 30} for number in range(900)}}
        params = {"protocolVersion": "2025-11-25", "capabilities": caps, "clientInfo": {}}
        found = set()
        for number in range(300):
            with server.post(number % CLIENTS, message("initialize", params, 1), {}) as client:
                found.add(status_of(client))
        assert b"503" in found
        assert server.peak < server.start + 2 * MEMORY
