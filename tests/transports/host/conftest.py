"""A host on a free port, and raw clients."""

import gc
import socket
from pathlib import Path

import pytest
import trio
import trio.testing

from noizu_mcp.transports.host import HostOptions, serve_asgi

from ...kit.http_client import RawClient
from ..http.certificate import make_certificate


@pytest.fixture
def serve(nursery):
    """Start a host for an application; return the `Host`, with the end of `serve_asgi` in it."""

    async def start(
        app,
        *,
        port=0,
        host="127.0.0.1",
        lifespan=None,
        grace=5.0,
        stopping=None,
        leaving=None,
        probes=(),
        **options,
    ):
        ended = trio.Event()
        given = {"stopping": stopping, "leaving": leaving, "probes": probes}
        given = {name: function for name, function in given.items() if function}

        async def run(task_status):
            config = HostOptions(**options)
            await serve_asgi(
                app,
                host=host,
                port=port,
                config=config,
                lifespan=lifespan,
                grace=grace,
                task_status=task_status,
                **given,
            )
            ended.set()

        made = await nursery.start(run)
        made.ended = ended
        return made

    return start


@pytest.fixture
async def connect():
    """Connect to a host as a raw client."""
    streams = []

    async def open_one(host, receive_buffer=None, address="127.0.0.1"):
        plain = trio.socket.socket()
        await plain.bind((address, 0))  # the whole of 127.0.0.0/8 is this machine
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        streams.append(trio.SocketStream(plain))
        await plain.connect(("127.0.0.1", host.port))
        return RawClient(streams[-1])

    yield open_one
    for each in streams:
        await trio.aclose_forcefully(each)


async def _read_body(receive):
    """Read a body; return None if the client disconnected."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message["body"]
        more = message["more_body"]
    return body


async def _answer(send, body=b"", status=200, headers=()):
    """Send a complete response."""
    length = (b"content-length", b"%d" % len(body))
    start = {"type": "http.response.start", "status": status, "headers": [length, *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def read_body():
    return _read_body


@pytest.fixture
def answer():
    return _answer


async def _echo(scope, receive, send):
    """Answer with the request body."""
    body = await _read_body(receive)
    if body is not None:
        await _answer(send, body)


@pytest.fixture
def echo():
    return _echo


class Held:
    """An application that echoes request bodies; `/long` waits for `go_on` first."""

    def __init__(self):
        self.started = trio.Event()
        self.go_on = trio.Event()

    async def __call__(self, scope, receive, send):
        if scope["path"] == "/long":
            self.started.set()
            await self.go_on.wait()
        await _echo(scope, receive, send)


@pytest.fixture
def held():
    return Held()


class Endless:
    """An application that waits until it is cancelled, and counts its cancellations."""

    cancelled = 0

    async def __call__(self, scope, receive, send):
        try:
            await trio.sleep_forever()
        finally:
            self.cancelled += 1


@pytest.fixture
def endless():
    return Endless()


@pytest.fixture
def descriptors():
    """Count the files and sockets that this process has open."""

    def count():
        gc.collect()
        return len(list(Path("/dev/fd").iterdir()))

    return count


async def _leave(stream, how):
    """Close or reset the connection of a client."""
    if how == "reset":
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    await trio.aclose_forcefully(stream)


@pytest.fixture
def leave():
    return _leave


async def _until(condition):
    """Wait for a condition that depends on the operating system."""
    with trio.fail_after(60):
        while not condition():
            await trio.testing.wait_all_tasks_blocked(0.001)


@pytest.fixture
def until():
    return _until


@pytest.fixture
def certificate(tmp_path):
    """A certificate for 127.0.0.1 and its key in one file; return the path."""
    return str(make_certificate(tmp_path))
