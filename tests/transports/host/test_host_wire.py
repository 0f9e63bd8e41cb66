"""Writes in order, sockets that are not ready, and TLS alerts."""

import errno
import socket
import ssl

import httptools
import pytest
import trio
import trio.testing

START = {"type": "http.response.start", "status": 200, "headers": []}
#: More than the system takes before the client reads.
LARGE = b"1" * 10_000_000


def _chunk(body, *, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


async def test_a_host_waits_for_what_is_not_there(serve, connect, echo, monkeypatch):
    """If a socket that was reported as readable has no data, the host waits again."""
    receive, hesitations = socket.socket.recv, [BlockingIOError()] * 2

    def hesitant(self, *args):
        if hesitations:
            raise hesitations.pop()
        return receive(self, *args)

    monkeypatch.setattr(socket.socket, "recv", hesitant)
    client = await connect(await serve(echo))
    await client.request(b"1")
    assert await client.answer() == (200, b"1")
    assert hesitations == []


@pytest.mark.parametrize("method", ["send", "sendmsg"])
async def test_a_host_waits_for_room(serve, connect, echo, monkeypatch, method):
    """If a socket takes nothing at once, the response is sent when it does."""
    write, full = getattr(socket.socket, method), []

    def hesitant(self, *args):
        if self.family == socket.AF_INET and self.getsockname()[1] == host.port and not full:
            full.append(True)
            raise BlockingIOError
        return write(self, *args)

    host = await serve(echo)
    client = await connect(host)
    monkeypatch.setattr(socket.socket, method, hesitant)
    for body in (b"1", b"1" * 100_000):
        await client.request(body)
        assert await client.answer() == (200, body)
    assert full


async def test_parts_of_several_tasks_stay_in_order(serve, connect):
    """A part that comes while another one is written is sent after it."""

    async def app(scope, receive, send):
        await send(START)
        async with trio.open_nursery() as nursery:
            for part in (LARGE, b"2"):
                nursery.start_soon(send, _chunk(part))
                await trio.testing.wait_all_tasks_blocked()
            begun.set()
        await send(_chunk(b"3", more=False))

    begun = trio.Event()
    client = await connect(await serve(app))
    await client.request()
    await begun.wait()
    await client.head()
    for part in (LARGE, b"2", b"3"):
        assert await client.read_until(b"\r\n") == b"%x\r\n" % len(part)
        assert await client.read_until(b"\r\n") == part + b"\r\n"


async def test_a_write_that_takes_too_long_fails_all_writers(serve, connect, autojump_clock):
    """After a timeout no writer raises or waits, and the connection is gone."""

    async def app(scope, receive, send):
        start = trio.current_time()
        await send(START)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(send, _chunk(LARGE))
        await send(_chunk(b"2"))
        took.append(trio.current_time() - start)
        ended.set()

    took, ended = [], trio.Event()
    client = await connect(await serve(app, write_timeout=30.0))
    await client.request()
    await ended.wait()
    assert took == [pytest.approx(30)]
    assert not (await client.rest()).endswith(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("part", [b"2", LARGE])
async def test_a_client_that_has_gone_is_noticed_by_a_write(serve, connect, leave, until, part):
    """The application may write on, into nothing, whether it waits for the client or not."""

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"1"))
        begun.set()
        if part != LARGE:
            await gone.wait()
        for _ in range(3):
            await send(_chunk(part))
        ended.set()

    begun, gone, ended = trio.Event(), trio.Event(), trio.Event()
    host = await serve(app)
    client = await connect(host)
    await client.request()
    await client.read_until(b"1\r\n1\r\n")
    await begun.wait()
    await trio.testing.wait_all_tasks_blocked(0.01)
    await leave(client.stream, "reset")
    gone.set()
    with trio.fail_after(60):
        await ended.wait()
    await until(lambda: host.connections == 0)


async def test_a_write_to_a_connection_that_makes_room_ends(serve, connect, until):
    """The host closes the connection of a slow client for another address; its write ends."""
    ended = []

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(LARGE))
        ended.append(scope["client"])

    host = await serve(app, max_connections=3)
    slow = [await connect(host) for _ in range(3)]
    for client in slow:
        await client.request()
        await client.head()
    await (await connect(host, address="127.0.0.2")).request()
    await until(lambda: ended)
    assert ended == [slow[0].stream.socket.getsockname()]


async def test_a_write_that_is_cancelled_breaks_the_connection(serve, connect):
    """A response that was written in part has no end, so the connection has one."""

    async def app(scope, receive, send):
        await send(START)
        with trio.move_on_after(0.01) as limit:
            await send(_chunk(LARGE))
        cancelled.append(limit.cancelled_caught)
        await send(_chunk(b"2", more=False))
        ended.set()

    cancelled, ended = [], trio.Event()
    client = await connect(await serve(app))
    await client.request()
    await ended.wait()
    assert cancelled == [True]
    assert b"2" not in (await client.rest()).partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda context: context.set_ciphers("AES128-SHA"), "HANDSHAKE_FAILURE"),
        (lambda context: context.set_alpn_protocols(["h9"]), None),
    ],
)
async def test_a_failed_handshake_gets_its_alert(
    serve, connect, echo, certificate, change, reason, caplog
):
    """The client gets a TLS alert, and nothing is logged."""
    host = await serve(echo, certfile=certificate)
    client = await connect(host)
    context = ssl.create_default_context(cafile=certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    change(context)
    stream = trio.SSLStream(client.stream, context, server_hostname="127.0.0.1")
    if reason is None:  # without a common protocol in ALPN the connection is HTTP/1.1
        await stream.do_handshake()
        assert stream.selected_alpn_protocol() is None
    else:
        with pytest.raises(trio.BrokenResourceError) as caught:
            await stream.do_handshake()
        assert reason in caught.value.__cause__.reason
    await trio.aclose_forcefully(stream)
    assert caplog.records == []


async def test_without_descriptors_the_oldest_idle_connection_goes(
    serve, connect, echo, monkeypatch, caplog
):
    """A new client is accepted without waiting for another one to leave."""
    accept, failures = socket.socket.accept, []

    def failing(listener):
        if failures:
            raise failures.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", failing)
    host = await serve(echo)
    first, second = await connect(host), await connect(host)
    for client in (first, second):
        await client.request(b"1")
        assert await client.answer() == (200, b"1")
    failures.append(OSError(errno.EMFILE, "Too many open files"))
    third = await connect(host)
    await third.request(b"3")
    assert await third.answer() == (200, b"3")
    assert await first.rest() == b""
    await second.request(b"2")
    assert await second.answer() == (200, b"2")
    assert caplog.messages == ["no room for another connection: Too many open files"]


async def test_a_head_that_llhttp_does_not_end_is_refused(serve, connect, echo, monkeypatch):
    """A head is refused if llhttp does not end it at the same byte."""

    class Silent:
        def __init__(self, protocol):
            pass

        def feed_data(self, data):
            pass

    monkeypatch.setattr(httptools, "HttpRequestParser", Silent)
    client = await connect(await serve(echo))
    await client.request()
    assert (await client.rest()).startswith(b"HTTP/1.1 400")
