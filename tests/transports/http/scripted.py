"""An HTTP server that sends exactly the bytes that a test wants."""

import json
from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from noizu_mcp import ConnectionClosed

from ...kit.http_server import gone, listening

EVENTS = "text/event-stream"
JSON = "application/json"
CAPABILITIES = {"tools": {}}
#: Seconds that a test may take, on its clock.
PATIENCE = 300.0


@attrs.frozen
class Heard:
    """A request, and the connection to answer it on."""

    method: str
    headers: dict[str, str]
    body: bytes
    stream: trio.SocketStream

    @property
    def message(self):
        return json.loads(self.body)

    async def head(self, status=200, kind=None, **headers):
        """Begin a response that ends with the connection."""
        lines = [f"HTTP/1.1 {status} Said", "connection: close"]
        if kind is not None:
            lines.append(f"content-type: {kind}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.stream.send_all("\r\n".join([*lines, "", ""]).encode())

    async def say(self, status=200, body=b"", kind=JSON, **headers):
        """Send a whole response."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        await self.head(status, kind if data else None, content_length=len(data), **headers)
        await self.stream.send_all(data)

    async def result(self, result, **headers):
        """Answer a request with a result."""
        await self.say(200, self.answer(result), **headers)

    async def refuse(self, status, code, message, *, own=True, data=None):
        """Answer with an error, with or without the id."""
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        id_ = {"id": self.message["id"]} if own else {}
        await self.say(status, {"jsonrpc": "2.0", **id_, "error": error})

    def answer(self, result):
        return {"jsonrpc": "2.0", "id": self.message["id"], "result": result}

    async def event(self, message=None, **fields):
        """Send one event."""
        lines = [f"{name}: {value}" for name, value in fields.items()]
        if message is not None:
            lines.append(f"data: {message if isinstance(message, str) else json.dumps(message)}")
        await self.stream.send_all("\n".join([*lines, "", ""]).encode())

    async def gone(self):
        """Wait until the client has closed the connection."""
        await gone(self.stream)


class Script:
    """Answers like the most common servers; a test replaces the parts that it is about.

    `answers` has a coroutine function for each method of a message, and for `GET` and `DELETE`.
    """

    def __init__(self, **answers):
        self.answers = answers
        self.heard = []
        self.url = ""

    def of(self, method):
        """List the requests of one method."""
        return [each for each in self.heard if self.name_of(each) == method]

    def name_of(self, heard):
        """Return the method of a request's message, or its HTTP method."""
        if heard.method != "POST":
            return heard.method
        return "array" if type(heard.message) is list else heard.message.get("method", "answer")

    async def serve(self, stream, request):
        await self.answer(Heard(request.method, request.headers, request.body, stream))

    async def answer(self, heard):
        self.heard.append(heard)
        name = self.name_of(heard)
        found = self.answers.get(
            name.replace("/", "_"), getattr(self, name.replace("/", "_"), None)
        )
        if found is None:
            await heard.say(202)
        else:
            await found(heard)

    async def GET(self, heard):  # noqa: N802 - the name of the method
        await heard.say(405)

    async def server_discover(self, heard):
        await heard.say(400, {"error": "no session"})

    async def initialize(self, heard):
        version = heard.message["params"]["protocolVersion"]
        info = {"name": "scripted", "version": "1"}
        result = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": info}
        await heard.result(result, mcp_session_id="s-1")

    async def ping(self, heard):
        await heard.result({})


class Holding:
    """Begins a response, sends nothing, and records when the client leaves."""

    def __init__(self):
        self.left = trio.Event()
        self.began = trio.Event()

    async def __call__(self, heard):
        await heard.head(kind=EVENTS)
        self.began.set()
        await heard.gone()
        self.left.set()


async def call_closed(client, failed):
    """Call a tool on a connection that ends first; the error's text is appended to `failed`."""
    with pytest.raises(ConnectionClosed) as caught:
        await client.call_tool("t")
    failed.append(str(caught.value))


async def modern(heard):
    """Answer `server/discover` as a server of 2026-07-28."""
    versions = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
    await heard.result({"resultType": "complete", **versions, "ttlMs": 0, "cacheScope": "public"})


@asynccontextmanager
async def serving(script):
    """Serve a script on a local socket; no test waits for longer than `PATIENCE`."""
    with trio.fail_after(PATIENCE):
        async with listening(script.serve) as script.url:
            yield script
