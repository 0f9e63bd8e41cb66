"""Fixtures of the tests of authorization: a real HTTP server, clocks, the log."""

import contextlib
import json
import time
from typing import NamedTuple

import h11
import pytest
import trio


class Received(NamedTuple):
    """A request that the peer received."""

    method: str
    target: str
    headers: dict
    body: bytes


class Peer:
    """A real HTTP server that sends the responses of a test.

    Attributes:
        answers: Path → (status, headers, body), or a function that uses the stream instead.
        received: The requests, in order.
        started: Set with each request.
        go: Responses wait for it.
    """

    def __init__(self, port):
        self.port = port
        self.answers = {}
        self.received = []
        self.started = trio.Event()
        self.go = trio.Event()
        self.go.set()

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def say(self, path, document, status=200, **headers):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.answers[path] = (status, named, body)

    async def until_asked(self):
        """Wait for the next request, a few seconds at most."""
        with trio.fail_after(60):
            await self.started.wait()

    async def handle(self, stream):
        async with stream:
            with contextlib.suppress(h11.RemoteProtocolError):  # TLS, for example
                await self._serve(stream)

    async def _serve(self, stream):
        connection = h11.Connection(h11.SERVER)
        body, request = b"", None
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Request):
                request = event
            else:
                body += event.data
        headers = {name.decode(): value.decode() for name, value in request.headers}
        target = request.target.decode()
        self.received.append(Received(request.method.decode(), target, headers, body))
        self.started.set()
        await self.go.wait()
        await self._answer(connection, stream, target)

    async def _answer(self, connection, stream, target):
        answer = self.answers.get(target, (404, [], b""))
        if callable(answer):
            await answer(stream)
            return
        status, headers, body = answer
        headers = [*headers, ("content-length", str(len(body))), ("connection", "close")]
        data = connection.send(h11.Response(status_code=status, headers=headers))
        data += connection.send(h11.Data(body)) + connection.send(h11.EndOfMessage())
        # A client that has read enough closes the connection.
        with contextlib.suppress(trio.BrokenResourceError):
            await stream.send_all(data)


@pytest.fixture
async def peer(nursery):
    """A real HTTP server on a free port."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    found = Peer(listener.socket.getsockname()[1])
    nursery.start_soon(trio.serve_listeners, found.handle, [listener])
    return found


class Clock:
    """A clock that the test moves."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The wall clock, which the test moves."""
    made = Clock(1_000_000.0)
    monkeypatch.setattr(time, "time", made)
    return made


@pytest.fixture
def ticks(monkeypatch):
    """The monotonic clock, which the test moves."""
    made = Clock(0.0)
    monkeypatch.setattr(time, "monotonic", made)
    return made


@pytest.fixture
def reasons(caplog):
    """Return a function that returns the new warnings and errors."""
    caplog.set_level("WARNING", "noizu_mcp.auth")

    def read():
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return read
