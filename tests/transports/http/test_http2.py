"""HTTP/2 on hypercorn: bodies that are not read, and connections that fail."""

import logging
from contextlib import suppress

import pytest
import trio
import trio.testing
from hypercorn.config import Config
from hypercorn.trio import serve

from noizu_mcp.auth import BearerAuth, StaticVerifier
from noizu_mcp.transports.host import HostOptions, serve_hypercorn
from noizu_mcp.transports.http import HttpApp, HttpOptions

from .attack import H2_ATTACKS, MIB, H2Client, malformed, run
from .certificate import make_certificate
from .shop import Shop
from .wire import serving, settled

AUTH = BearerAuth(StaticVerifier({}), resource="http://localhost/mcp", authorization_servers=[])


@pytest.fixture
def as_it_is(nursery):
    """Serve an application on an unchanged hypercorn; return the port, and how to stop."""

    async def start(app):
        config, stop, ended = Config(), trio.Event(), trio.Event()
        config.bind, config.errorlog, config.graceful_timeout = ["127.0.0.1:0"], None, 1

        async def run(task_status):
            await serve(app, config, shutdown_trigger=stop.wait, task_status=task_status)
            ended.set()

        [url] = await nursery.start(run)
        return int(url.rpartition(":")[2]), stop.set, ended

    return start


@pytest.fixture
def guarded(nursery):
    """Serve an application on our hypercorn; return the port, and how to stop."""

    async def start(app, **options):
        ended = trio.Event()

        async def run(task_status):
            config = HostOptions(**options)
            lifespan = app.lifespan() if isinstance(app, HttpApp) else None
            await serve_hypercorn(
                app, port=0, config=config, lifespan=lifespan, task_status=task_status
            )
            ended.set()

        host = await nursery.start(run)
        return host.port, host.stop, ended

    return start


@pytest.fixture(params=["as it is", "ours"])
def served(request, as_it_is, guarded):
    return as_it_is if request.param == "as it is" else guarded


@pytest.fixture
async def dial():
    """Open a connection of HTTP/2, or of HTTP/1.1."""
    streams = []

    async def open_one(port, *, plain=False):
        streams.append(await trio.open_tcp_stream("127.0.0.1", port))
        client = H2Client(streams[-1])
        if not plain:
            await client.flush()
        return streams[-1] if plain else client

    yield open_one
    for each in streams:
        await trio.aclose_forcefully(each)


async def _end(stop, ended):
    stop()
    with trio.fail_after(60):
        await ended.wait()


@pytest.mark.parametrize(
    ("auth", "method", "path", "status"),
    [
        (None, b"POST", b"/nothing", 404),
        (AUTH, b"POST", b"/mcp", 401),
        (None, b"POST", b"/mcp", 415),
        (None, b"PUT", b"/mcp", 405),
        (None, b"GET", b"/healthz", 200),
    ],
)
async def test_an_unread_body(served, dial, auth, method, path, status):
    """The response arrives, and other requests of any connection are answered."""
    app = HttpApp(Shop(), HttpOptions(auth=auth, health=True))
    port, stop, ended = await served(app)
    client, neighbour = await dial(port), await dial(port)
    with trio.fail_after(60):
        number = client.begin(method, path, ends=False)
        await client.upload(number, 300_000)
        assert (await client.answer(number))[0] == status
        for each in (client, neighbour):
            assert await each.answer(each.begin()) == (200, b"ok\n")
    await _end(stop, ended)


async def test_a_body_after_the_answer(served, dial):
    """The response is complete before the body; data after it disturbs no other request."""
    app = HttpApp(Shop(), HttpOptions(health=True))
    port, stop, ended = await served(app)
    client = await dial(port)
    with trio.fail_after(60):
        number = client.begin(b"POST", b"/nothing", ends=False)
        await client.flush()
        while not client.bodies[number].endswith(b"}"):
            await client.read()
        assert number not in client.ended
        await client.upload(number, 100_000)
        assert (await client.answer(number))[0] == 404
        assert await client.answer(client.begin()) == (200, b"ok\n")
    await _end(stop, ended)


class Answering:
    """An application that answers at once; `/long` waits, and records how it ends."""

    def __init__(self):
        self.started = trio.Event()
        self.go_on = trio.Event()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["path"] == "/long":
            self.started.set()
            await self.go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})


@pytest.mark.parametrize("name", [*malformed(), "a body after the answer"])
async def test_a_connection_that_fails_ends_no_other(guarded, dial, caplog, name):
    """A call of another connection goes on, new ones are accepted, and one line is logged."""
    app = Answering()
    port, stop, ended = await guarded(app)
    neighbour = await dial(port)
    long = neighbour.begin(path=b"/long")
    await neighbour.flush()
    with trio.fail_after(60):
        await app.started.wait()
        failing = await dial(port, plain=True)
        if name in malformed():
            await failing.send_all(malformed()[name])
        else:
            client = H2Client(failing)
            number = client.begin(b"POST", b"/x", ends=False)
            await client.answer(number)
            client.protocol.send_data(number, b"late")
            await client.flush()
        with suppress(trio.BrokenResourceError):
            while await failing.receive_some():
                pass
        app.go_on.set()
        assert await neighbour.answer(long) == (200, b"/long")
        other = await dial(port)
        assert await other.answer(other.begin(path=b"/new")) == (200, b"/new")
    await _end(stop, ended)
    [line] = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert line.getMessage().startswith("a connection failed: ")
    assert not line.exc_info


async def test_a_client_that_reads_nothing_does_not_hold_the_end(guarded, dial):
    """Its connection is closed after `drain_timeout`."""
    written = trio.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        part = {"type": "http.response.body", "body": bytes(8 * MIB), "more_body": True}
        written.set()
        await send(part)

    port, stop, ended = await guarded(app, drain_timeout=0.01)
    stream = await dial(port, plain=True)
    await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await written.wait()
    await trio.testing.wait_all_tasks_blocked(0.01)
    await _end(stop, ended)


async def test_nothing_is_left_of_clients_that_leave(guarded, dial):
    """A response that waits to be written ends with its connection."""
    begun, gone = trio.Event(), []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await send({"type": "http.response.body", "body": bytes(MIB)})
        gone.append(scope["path"])

    port, stop, ended = await guarded(app)
    await trio.testing.wait_all_tasks_blocked()
    before = trio.lowlevel.current_statistics().tasks_living
    client = await dial(port)
    client.begin(path=b"/big")
    await client.flush()
    await begun.wait()
    await trio.testing.wait_all_tasks_blocked(0.01)
    await client.leave()
    with trio.fail_after(60):
        while trio.lowlevel.current_statistics().tasks_living > before:
            await trio.testing.wait_all_tasks_blocked(0.001)
    assert gone == ["/big"]
    await _end(stop, ended)


class Foreign:
    """A request as a third-party host passes it on; its body comes in parts, or never ends."""

    def __init__(self, app, parts, http_version="2", **more):
        self.app, self.parts, self.sent = app, parts, []
        self.scope = {"type": "http", "method": "POST", "path": "/nothing", "headers": []}
        self.scope.update(http_version=http_version, **more)

    async def run(self):
        await self.app(self.scope, self.receive, self.send)

    async def receive(self):
        await trio.lowlevel.checkpoint()
        if not self.parts:
            await trio.sleep_forever()
        kind, _, more = self.parts.pop(0).partition(" ")
        return {"type": f"http.{kind}", "body": b"x", "more_body": bool(more)}

    async def send(self, message):
        await trio.lowlevel.checkpoint()
        self.sent.append((message["type"], message.get("more_body", False), len(self.parts)))


START, BODY = "http.response.start", "http.response.body"


@pytest.fixture
async def app():
    app = HttpApp(Shop(), HttpOptions())
    async with app.lifespan():
        yield app


@pytest.mark.parametrize("last", ["request", "disconnect"])
async def test_the_answer_ends_after_the_body(app, last):
    """Everything but the end of the response is sent before the body is read."""
    request = Foreign(app, ["request more", "request more", last])
    await request.run()
    assert request.sent == [(START, False, 3), (BODY, True, 3), (BODY, False, 0)]


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({"http_version": "1.1"}, 30),
        ({"extensions": {"noizu_mcp.unread_body": {"seconds": 7}}}, 7),
        ({"extensions": {"noizu_mcp.unread_body": {"seconds": 0}}}, 0),
    ],
)
async def test_the_wait_for_a_body_is_bounded(app, autojump_clock, more, seconds):
    """If the host can close a connection, the response ends after a timeout without the body."""
    request = Foreign(app, ["request more"], **more)
    await request.run()
    assert trio.current_time() == pytest.approx(seconds)
    assert request.sent[-1][:2] == (BODY, False)


async def test_an_endless_body_keeps_its_stream(app, autojump_clock, nursery):
    """On HTTP/2 the response stays open until the client leaves, which is safe on every host."""
    request = Foreign(app, ["request more"])
    nursery.start_soon(request.run)
    await trio.sleep(10_000)
    assert [part[:2] for part in request.sent] == [(START, False), (BODY, True)]
    nursery.cancel_scope.cancel()


async def test_a_stream_begins_after_the_body_of_its_request(autojump_clock):
    """An event stream begins after the end of the GET body, so that it cannot end before it."""
    async with serving(Shop()) as wire:
        session, go_on, parts = await wire.session(), trio.Event(), [False, False, True]
        stream = wire.make("GET", None, {**session.headers, "content-type": None})
        stream.scope["http_version"] = "2"

        async def receive():
            if not parts:
                await trio.sleep_forever()
            await go_on.wait()
            return {"type": "http.request", "body": b"x", "more_body": parts.pop()}

        stream.receive = receive
        wire.nursery.start_soon(stream.run)
        await settled()
        assert stream.sent == []
        go_on.set()
        await stream.until(lambda self: self.sent)
        await session.delete()
        await stream.until(lambda self: self.complete)


async def test_a_request_without_an_answer_waits_as_well(app):
    """If the application fails or its client has gone, the body is read as well."""

    class Failing(Foreign):
        async def send(self, message):
            await trio.lowlevel.checkpoint()
            raise RuntimeError("the host failed")

    request = Failing(app, ["request more", "request"])
    with pytest.raises(RuntimeError, match="the host failed"):
        await request.run()
    assert request.parts == []


@pytest.mark.slow
@pytest.mark.time_limit(600)
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_other_clients_do_not_notice_an_attack(tmp_path, tls):
    """Other clients are served, nothing leaks, and SIGTERM ends the server normally."""
    certificate = make_certificate(tmp_path) if tls else None
    report = await run(3, 32 * MIB, H2_ATTACKS, "hypercorn", certificate)
    assert report.judge(32 * MIB) == []
