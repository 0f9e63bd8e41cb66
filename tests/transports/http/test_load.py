"""Thousands of calls over sockets, from clients of which many go away in the middle."""

import json
import random
from functools import partial

import pytest
import trio
import trio.testing

from noizu_mcp.transports.host import serve_asgi
from noizu_mcp.transports.http import HttpApp, HttpOptions

from .shop import Shop
from .wire import META, VERSION, call, message, settled

CALLS = 3_000
CLIENTS = 40
HANDSHAKE, STATELESS = "2025-11-25", META[VERSION]


class Visitor:
    """A client that makes calls on one connection after the other.

    Attributes:
        stayed: The calls whose answers it waited for.
        answered: Those that were answered with what they had asked.
    """

    def __init__(self, port, seed, version):
        self.stayed = self.answered = 0
        self._port = port
        self._chance = random.Random(seed)
        self._version = version
        self._session = []
        self._stream = None
        self._buffer = b""

    async def visit(self, calls):
        """Make calls."""
        try:
            if self._version == HANDSHAKE:
                await self._shake_hands()
            for number in range(1, calls + 1):
                await self._make(number)
        finally:
            await self._leave()

    async def _shake_hands(self):
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}}
        params["clientInfo"] = {"name": "visitor", "version": "1"}
        await self._send(self._request(message("initialize", params, 0)))
        head, _ = await self._read()
        (id_,) = (line for line in head.split("\r\n") if line.startswith("mcp-session-id"))
        self._session = [id_, f"mcp-protocol-version: {HANDSHAKE}"]
        await self._send(self._request(message("notifications/initialized")))
        await self._read()

    async def _make(self, number):
        text = f"{number} {self._chance.random()}"
        chance = self._chance.random()
        if chance < 0.8:
            await self._stay(number, text)
        elif chance < 0.87:  # in the middle of its request
            request = self._request(call("echo", {"text": text}, number))
            await self._send(request[: self._chance.randrange(1, len(request))])
            await self._leave()
        elif chance < 0.94:  # before the answer
            await self._send(self._request(call("echo", {"text": text}, number)))
            await self._leave()
        else:  # in the middle of the answer
            body = call("wait", {"seconds": 1, "report": True}, number)
            body["params"]["_meta"] = {"progressToken": number}
            await self._send(self._request(body))
            await self._stream.receive_some(self._chance.randrange(1, 500))
            await self._leave()

    async def _stay(self, number, text):
        self.stayed += 1
        await self._send(self._request(call("echo", {"text": text}, number)))
        _, body = await self._read()
        answer = json.loads(body)
        assert answer.get("id") == number, answer
        self.answered += answer["result"]["content"][0]["text"] == text

    def _request(self, body):
        headers = list(self._session)
        if self._version == STATELESS:
            params = body["params"]
            body = {**body, "params": {**params, "_meta": {**META, **params.get("_meta", {})}}}
            headers = [f"mcp-protocol-version: {STATELESS}", f"mcp-method: {body['method']}"]
            headers.append(f"mcp-name: {params['name']}")
        data = json.dumps(body).encode()
        lines = ["POST /mcp HTTP/1.1", "host: localhost", "content-type: application/json"]
        lines += ["accept: application/json, text/event-stream", f"content-length: {len(data)}"]
        return "\r\n".join([*lines, *headers, "", ""]).encode() + data

    async def _send(self, data):
        if self._stream is None:
            self._stream = await trio.open_tcp_stream("127.0.0.1", self._port)
        await self._stream.send_all(data)

    async def _read(self):
        """Read one answer that is no stream: its head and its body."""
        while b"\r\n\r\n" not in self._buffer:
            await self._receive()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        _, _, rest = head.lower().partition(b"content-length: ")
        size = int(rest.split(b"\r\n")[0])
        while len(self._buffer) < size:
            await self._receive()
        body, self._buffer = self._buffer[:size], self._buffer[size:]
        return head.decode(), body

    async def _receive(self):
        data = await self._stream.receive_some()
        assert data, f"the connection ended after {self._buffer!r}"
        self._buffer += data

    async def _leave(self):
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)
        self._stream, self._buffer = None, b""


@pytest.mark.slow
@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
@pytest.mark.time_limit(360)
async def test_whoever_stays_is_answered(version):
    """Each call with its own answer, whatever others do; nothing is left of those who left."""
    app = HttpApp(Shop(), HttpOptions())
    serve = partial(serve_asgi, app, port=0, lifespan=app.lifespan(), stopping=app.settle)
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            host = await nursery.start(serve)
            await settled()
            tasks = trio.lowlevel.current_statistics().tasks_living
            visitors = [Visitor(host.port, seed, version) for seed in range(CLIENTS)]
            async with trio.open_nursery() as crowd:
                for visitor in visitors:
                    crowd.start_soon(visitor.visit, CALLS // CLIENTS)
            while trio.lowlevel.current_statistics().tasks_living > tasks:
                await trio.testing.wait_all_tasks_blocked(0.01)
            endpoint = app.endpoint
            assert endpoint.open == 0
            assert len(endpoint.app.streams) == 0
            assert not any(session.requests for session in endpoint.sessions)
            host.stop()
    assert sum(visitor.stayed for visitor in visitors) > CALLS * 0.75
    assert [visitor.answered for visitor in visitors] == [visitor.stayed for visitor in visitors]
