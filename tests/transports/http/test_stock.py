"""On an unchanged hypercorn, over real sockets."""

import json
import logging

import pytest
import trio
import trio.testing
from hypercorn.config import Config
from hypercorn.trio import serve

from noizu_mcp.transports.http import HttpApp, HttpOptions

from ...kit.http_client import RawClient
from ...kit.messages import INITIALIZED, call, http_request, initialize, message, modern_request
from .shop import Shop


@pytest.fixture
async def host(nursery):
    """Serve on a free port; return the application, how to connect, and how to stop."""
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
        return RawClient(opened[-1])

    yield app, connect, (stop, ended)
    for stream in opened:
        await stream.aclose()
    stop.set()
    with trio.fail_after(60):
        await ended.wait()


async def shake_hands(connect):
    """Begin a session; return a client and its header."""
    client = await connect()
    await client.send(http_request(initialize()))
    status, headers, _body = await client.whole_answer()
    assert status == 200
    session = {"mcp_session_id": headers["mcp-session-id"]}
    await client.send(http_request(INITIALIZED, session))
    assert (await client.answer())[0] == 202
    return client, session


async def test_both_eras_on_one_connection(host):
    """Requests follow each other; each states its version."""
    _app, connect, _stop = host
    client, session = await shake_hands(connect)
    await client.send(http_request(call("echo", {"text": "é"}), session))
    status, body = await client.answer()
    assert (status, json.loads(body)["result"]["content"][0]["text"]) == (200, "é")
    await client.send(http_request(*modern_request(call("echo"))))
    status, body = await client.answer()
    assert (status, json.loads(body)["result"]["resultType"]) == (200, "complete")
    await client.send(http_request(None, session, method="DELETE"))
    assert (await client.answer())[0] == 200
    await client.send(http_request(None, session, method="GET"))
    assert (await client.answer())[0] == 404


async def test_streams(host):
    """Events are sent as they happen; a closed connection cancels a stateless request."""
    app, connect, _stop = host
    client, session = await shake_hands(connect)
    await client.send(http_request(call("flood", {"count": 2}), session))
    assert (await client.head())[1]["content-type"] == "text/event-stream"
    assert b'"x' in await client.read_until(b"\n\n\r\n")
    other = await connect()
    await other.send(http_request(*modern_request(call("wait", {"seconds": 1000}))))
    await other.read_until(b"\r\n\r\n")  # after a while of silence
    with trio.fail_after(60):
        for left in (1, 0):
            while app.endpoint.open != left:
                await trio.testing.wait_all_tasks_blocked(0.01)
            await other.stream.aclose()


async def test_the_end_with_open_streams(host, caplog):
    """A listen request ends with its result, and nothing is logged."""
    _app, connect, (stop, ended) = host
    client, session = await shake_hands(connect)
    await client.send(http_request(None, session, method="GET"))
    await client.read_until(b"data: \n\n")
    listen = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 5)
    other = await connect()
    await other.send(http_request(*modern_request(listen)))
    await other.read_until(b"acknowledged")
    stop.set()
    await other.read_until(b'"resultType":"complete"')
    with trio.fail_after(60):
        await ended.wait()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_capability_that_is_missing(host):
    """The host passes its status on."""
    _app, connect, _stop = host
    client = await connect()
    await client.send(http_request(*modern_request(call("ask"))))
    status, body = await client.answer()
    assert (status, json.loads(body)["error"]["code"]) == (400, -32021)
