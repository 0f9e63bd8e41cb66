"""HTTP clients under control of a test: `RawClient` sends bytes, `HttpClient` requests."""

import http.client
import json
from urllib.parse import urlsplit

import trio

from .messages import BOTH, INITIALIZED, initialize, message, modern_request

#: Seconds for a response that must come, on a busy machine.
PATIENCE = 60


class RawClient:
    """A connection of HTTP/1.1 on trio that sends any bytes."""

    def __init__(self, stream):
        self.stream = stream
        self.buffer = bytearray()

    async def send(self, data):
        await self.stream.send_all(data)

    async def request(self, body=b"", *headers, path="/", method="POST"):
        lines = [f"{method} {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}"]
        await self.send("\r\n".join([*lines, *headers, "", ""]).encode() + body)

    async def _receive(self):
        data = await self.stream.receive_some()
        assert data, f"the end, after {self.buffer!r}"
        self.buffer += data

    def _take(self, size):
        found = bytes(self.buffer[:size])
        del self.buffer[:size]
        return found

    async def read_until(self, end):
        """Read up to and including some bytes."""
        searched = 0
        with trio.fail_after(PATIENCE):
            while (at := self.buffer.find(end, searched)) == -1:
                searched = max(0, len(self.buffer) - len(end) + 1)
                await self._receive()
        return self._take(at + len(end))

    async def head(self):
        """Read a head: the status, and the headers by their names in lower case."""
        first, *lines = (await self.read_until(b"\r\n\r\n")).decode().split("\r\n")
        headers = (line.split(": ", 1) for line in lines if line)
        return int(first.split()[1]), {name.lower(): value for name, value in headers}

    async def answer(self):
        """Read a response with a length: its status and body."""
        status, _, body = await self.whole_answer()
        return status, body

    async def whole_answer(self):
        """Read a response with a length: its status, headers and body."""
        status, headers = await self.head()
        size = int(headers["content-length"])
        with trio.fail_after(PATIENCE):
            while len(self.buffer) < size:
                await self._receive()
        return status, headers, self._take(size)

    async def rest(self):
        """Read everything up to EOF, or to a reset."""
        with trio.fail_after(PATIENCE):
            try:
                while data := await self.stream.receive_some():
                    self.buffer += data
            except trio.BrokenResourceError:
                pass
        return bytes(self.buffer)


class HttpClient:
    """A blocking client; each request has its own connection, which `close` ends.

    Attributes:
        version: The revision of its session.
        headers: Headers of each request besides its own.
    """

    def __init__(self, url):
        parts = urlsplit(url)
        self.address = parts.hostname, parts.port
        self.path = parts.path
        self.version = ""
        self.headers = {}
        self._open = []

    def connection(self):
        """Make a connection for one request."""
        made = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        self._open.append(made)
        return made

    def send(self, method, body=None, **headers):
        """Send one request; a header with None is left out. The response is not read yet."""
        data = None if body is None else json.dumps(body)
        sent = {"Accept": BOTH, **self.headers}
        if data is not None:
            sent["Content-Type"] = "application/json"
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        connection = self.connection()
        sent = {name: value for name, value in sent.items() if value}
        connection.request(method, self.path, data, sent)
        answer = connection.getresponse()
        self._open.append(answer)
        return answer

    def post(self, method, params=None, id_=1, **headers):
        """Send a protocol request."""
        return self.send("POST", message(method, params or {}, id_), **headers)

    def post_modern(self, method, params=None, id_=1):
        """Send a request of 2026-07-28 with all its headers."""
        body, headers = modern_request(message(method, params or {}, id_))
        return self.send("POST", body, **headers)

    def ask(self, method, params=None, id_=1, **headers):
        """Send a protocol request; return its response message."""
        response = self.post(method, params, id_, **headers)
        assert response.status == 200
        return messages_of(response)[-1]

    def initialize(self, version="2025-11-25"):
        """Send the first request of a handshake; return its result."""
        response = self.send("POST", initialize(version))
        assert response.status == 200
        self.headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
        return messages_of(response)[-1]["result"]

    def begin(self, version="2025-11-25"):
        """Begin a session; return its client, whose connections are closed with this one's."""
        session = HttpClient("")
        session.address, session.path, session._open = self.address, self.path, self._open
        assert session.initialize(version)["protocolVersion"] == version
        session.version = version
        if version != "2025-03-26":  # which has no such header
            session.headers["MCP-Protocol-Version"] = version
        ready = session.send("POST", INITIALIZED)
        assert (ready.status, ready.read()) == (202, b"")
        return session

    def close(self):
        while self._open:
            self._open.pop().close()


def messages_of(response):
    """Read the messages of a response, from either form."""
    body = response.read()
    if response.headers.get_content_type() == "application/json":
        return [json.loads(body)]
    assert response.headers.get_content_type() == "text/event-stream"
    lines = [line for line in body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: "]
