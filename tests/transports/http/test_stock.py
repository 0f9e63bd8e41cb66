"""On hypercorn as it is, over real sockets."""

import json
import logging

import pytest
import trio
import trio.testing
from hypercorn.config import Config
from hypercorn.trio import serve

from noizu_mcp.transports.http.server._app import HttpApp
from noizu_mcp.transports.http.server._http_options import HttpOptions

from .shop import Shop
from .wire import META, call, message

MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
INIT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}


@pytest.fixture
async def host(nursery):
    """Serve on a free port; gives the application, how to connect, and how to stop."""
    app, config, stop = HttpApp(Shop(), HttpOptions()), Config(), trio.Event()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = logging.getLogger("hypercorn.error")
    config.graceful_timeout = 1
    ended, opened = trio.Event(), []

    async def end():
        await stop.wait()
        await app.settle()  # hypercorn itself ends its connections before the lifespan

    async def run(task_status):
        await serve(app, config, shutdown_trigger=end, task_status=task_status)
        ended.set()

    (bind,) = await nursery.start(run)
    port = int(bind.rpartition(":")[2])

    async def connect():
        opened.append(await trio.open_tcp_stream("127.0.0.1", port))
        return opened[-1]

    yield app, connect, (stop, ended)
    for stream in opened:
        await stream.aclose()
    stop.set()
    with trio.fail_after(60):
        await ended.wait()


class Client:
    """One connection of HTTP/1.1."""

    def __init__(self, stream):
        self.stream, self.buffer = stream, b""

    async def send(self, method, body=None, **headers):
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        lines += ["Accept: application/json, text/event-stream", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.stream.send_all("\r\n".join([*lines, "", ""]).encode() + data)

    async def until(self, end):
        with trio.fail_after(60):
            while end not in self.buffer:
                data = await self.stream.receive_some()
                assert data, self.buffer
                self.buffer += data
        found, _, self.buffer = self.buffer.partition(end)
        return found.decode()

    async def answer(self):
        """Read a whole answer: its status, headers and body."""
        first, *lines = (await self.until(b"\r\n\r\n")).split("\r\n")
        split = (line.split(": ", 1) for line in lines if line)
        headers = {name.lower(): value for name, value in split}
        while len(self.buffer) < int(headers["content-length"]):
            self.buffer += await self.stream.receive_some()
        body, self.buffer = self.buffer, b""
        return int(first.split()[1]), headers, body


def modern(body, name):
    body["params"] = {**body["params"], "_meta": META}
    return body, {**{k.replace("-", "_"): v for k, v in MODERN.items()}, "mcp_name": name}


async def shake_hands(connect):
    client = Client(await connect())
    await client.send("POST", message("initialize", INIT, 0))
    status, headers, _body = await client.answer()
    assert status == 200
    session = {"mcp_session_id": headers["mcp-session-id"]}
    await client.send("POST", message("notifications/initialized"), **session)
    assert (await client.answer())[0] == 202
    return client, session


async def test_both_eras_on_one_connection(host):
    """Requests follow each other; each says what it is."""
    _app, connect, _stop = host
    client, session = await shake_hands(connect)
    await client.send("POST", call("echo", {"text": "é"}), **session)
    status, _headers, body = await client.answer()
    assert (status, json.loads(body)["result"]["content"][0]["text"]) == (200, "é")
    body, headers = modern(call("echo"), "echo")
    await client.send("POST", body, **headers)
    status, _headers, body = await client.answer()
    assert (status, json.loads(body)["result"]["resultType"]) == (200, "complete")
    await client.send("DELETE", **session)
    assert (await client.answer())[0] == 200
    await client.send("GET", **session)
    assert (await client.answer())[0] == 404


async def test_streams(host):
    """Events come as they happen; a connection that ends cancels a stateless request."""
    app, connect, _stop = host
    client, session = await shake_hands(connect)
    await client.send("POST", call("flood", {"count": 2}), **session)
    assert "text/event-stream" in await client.until(b"\r\n\r\n")
    assert '"x' in await client.until(b"\n\n\r\n")
    body, headers = modern(call("wait", {"seconds": 1000}), "wait")
    other = Client(await connect())
    await other.send("POST", body, **headers)
    await other.until(b"\r\n\r\n")  # after a while of silence
    with trio.fail_after(60):
        for left in (1, 0):
            while app.endpoint.open != left:
                await trio.testing.wait_all_tasks_blocked(0.01)
            await other.stream.aclose()


async def test_the_end_with_open_streams(host, caplog):
    """They end in order: with the result of a listen request, and without noise in the log."""
    _app, connect, (stop, ended) = host
    client, session = await shake_hands(connect)
    await client.send("GET", **session)
    await client.until(b"data: \n\n")
    listen = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 5)
    body, headers = modern(listen, "")
    headers = {**headers, "mcp_method": "subscriptions/listen"}
    other = Client(await connect())
    await other.send("POST", body, **headers)
    await other.until(b"acknowledged")
    stop.set()
    await other.until(b'"resultType":"complete"')
    with trio.fail_after(60):
        await ended.wait()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_capability_that_is_missing(host):
    """Its status gets through."""
    _app, connect, _stop = host
    client = Client(await connect())
    body, headers = modern(call("ask"), "ask")
    await client.send("POST", body, **headers)
    status, _headers, body = await client.answer()
    assert (status, json.loads(body)["error"]["code"]) == (400, -32021)
