"""Thousands of calls over sockets, from clients of which many disconnect early."""

import json
import random
from functools import partial

import pytest
import trio
import trio.testing

from noizu_mcp.transports.host import serve_asgi
from noizu_mcp.transports.http import HttpApp, HttpOptions

from ...kit.http_client import RawClient
from ...kit.messages import (
    INITIALIZED,
    META,
    VERSION,
    call,
    http_request,
    initialize,
    modern_request,
)
from .shop import Shop
from .wire import settled

CALLS = 3_000
CLIENTS = 40
HANDSHAKE, STATELESS = "2025-11-25", META[VERSION]


class Visitor:
    """A client that makes calls on one connection after the other.

    Attributes:
        stayed: The calls whose answers it waited for.
        answered: The calls that got the right answer.
    """

    def __init__(self, port, seed, version):
        self.stayed = self.answered = 0
        self._port = port
        self._chance = random.Random(seed)
        self._version = version
        self._session = {}
        self._client = None

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
        await self._send(http_request(initialize(HANDSHAKE)))
        _, headers, _ = await self._client.whole_answer()
        self._session = {"mcp-session-id": headers["mcp-session-id"]}
        self._session["mcp-protocol-version"] = HANDSHAKE
        await self._send(self._request(INITIALIZED))
        await self._client.answer()

    async def _make(self, number):
        text = f"{number} {self._chance.random()}"
        chance = self._chance.random()
        if chance < 0.8:
            await self._stay(number, text)
        elif chance < 0.87:  # during its request
            request = self._request(call("echo", {"text": text}, number))
            await self._send(request[: self._chance.randrange(1, len(request))])
            await self._leave()
        elif chance < 0.94:  # before the response
            await self._send(self._request(call("echo", {"text": text}, number)))
            await self._leave()
        else:  # during the response
            body = call("wait", {"seconds": 1, "report": True}, number)
            body["params"]["_meta"] = {"progressToken": number}
            await self._send(self._request(body))
            await self._client.stream.receive_some(self._chance.randrange(1, 500))
            await self._leave()

    async def _stay(self, number, text):
        self.stayed += 1
        await self._send(self._request(call("echo", {"text": text}, number)))
        _, body = await self._client.answer()
        answer = json.loads(body)
        assert answer.get("id") == number, answer
        self.answered += answer["result"]["content"][0]["text"] == text

    def _request(self, body):
        if self._version == STATELESS:
            return http_request(*modern_request(body))
        return http_request(body, self._session)

    async def _send(self, data):
        if self._client is None:
            self._client = RawClient(await trio.open_tcp_stream("127.0.0.1", self._port))
        await self._client.send(data)

    async def _leave(self):
        if self._client is not None:
            await trio.aclose_forcefully(self._client.stream)
        self._client = None


@pytest.mark.slow
@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
@pytest.mark.time_limit(360)
async def test_every_client_that_stays_is_answered(version):
    """Each call gets its own answer, whatever others do; disconnected clients leave nothing."""
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
