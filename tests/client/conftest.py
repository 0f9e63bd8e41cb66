"""A server that sends what the test sets."""

import json
from contextlib import asynccontextmanager
from inspect import isawaitable

import pytest
import trio

from noizu_mcp import connect
from noizu_mcp.transports import TappedStream, memory_pair

META = {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "0"}}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {"listChanged": True}},
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": META,
}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "scripted", "version": "0"},
}


class Script:
    """Answers each request by what its method is mapped to.

    A dict is a result, an exception an error, None silence, bytes are sent unchanged; a list is a
    sequence of these, one for each request; a function is called with the request, and may be
    async.
    """

    def __init__(self, stream, answers):
        self.stream = stream
        self.answers = {"server/discover": DISCOVERED, "initialize": INITIALIZED, **answers}
        self.received = []
        self.arrived = trio.Event()

    async def run(self):
        while arrived := await self.stream.receive():
            for received in arrived:
                message = json.loads(received.data)
                self.received.append(message)
                if "id" in message and "method" in message:
                    await self._answer(message)
            self.arrived.set()
            self.arrived = trio.Event()

    async def _answer(self, request):
        answer = self.answers.get(request["method"])
        if isinstance(answer, list):
            answer = answer.pop(0)
        if callable(answer):
            answer = answer(request)
        if isawaitable(answer):
            answer = await answer
        if isinstance(answer, bytes):
            await self.stream.send([answer])
        elif isinstance(answer, Exception):
            code, message, *data = answer.args
            error = {"code": code, "message": message, **({"data": data[0]} if data else {})}
            await self.say(id=request["id"], error=error)
        elif answer is not None:
            await self.say(id=request["id"], result=answer)

    async def say(self, **members):
        await self.stream.send([json.dumps({"jsonrpc": "2.0", **members}).encode()])

    async def until(self, method):
        """Wait until the client has sent a message of a method."""
        with trio.fail_after(60):
            while method not in [each.get("method") for each in self.received]:
                await self.arrived.wait()


class WithCredentials(TappedStream):
    """A stream whose credentials come from a function."""

    def __init__(self, stream, tell):
        super().__init__(stream, lambda *_: None)
        self._tell = tell

    @property
    def credentials(self):
        return self._tell()


@pytest.fixture
def scripted():
    """Return a function that connects a client to a script."""

    @asynccontextmanager
    async def run(answers=None, address=None, credentials=None, **options):
        ours, theirs = memory_pair()
        ours.address = address
        if credentials is not None:
            ours = WithCredentials(ours, credentials)
        script = Script(theirs, answers or {})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(script.run)
            try:
                async with connect(ours, **options) as client:
                    yield client, script
            finally:
                nursery.cancel_scope.cancel()

    return run


@pytest.fixture
def script_on():
    """Return a function that makes a script for a stream; the test runs it."""
    return Script
