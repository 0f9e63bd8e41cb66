"""The life of a host: its lifespan, and an orderly shutdown whatever clients do."""

import ssl
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from noizu_mcp.engine import single_failure
from noizu_mcp.transports.host import serve_asgi

START = {"type": "http.response.start", "status": 200, "headers": []}
DRAIN = 2.0


def _chunk(body, *, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _ended(host):
    """Stop a host; return the seconds that this took."""
    start = trio.current_time()
    host.stop()
    await host.ended.wait()
    assert host.connections == 0
    return trio.current_time() - start


async def test_the_lifespan_surrounds_everything(serve, connect, echo):
    """The lifespan begins before the host listens, and ends after the last request."""
    log = []

    @asynccontextmanager
    async def lifespan():
        log.append("enter")
        yield
        log.append("leave")

    async def stopping():
        log.append("stopping")

    host = await serve(echo, lifespan=lifespan(), stopping=stopping)
    assert log == ["enter"]
    assert await _ended(host) == pytest.approx(0, abs=1)
    assert log == ["enter", "stopping", "leave"]
    with pytest.raises(OSError, match="refused"):
        await connect(host)


async def test_a_lifespan_that_fails_is_the_error(echo):
    """Nothing is served, and the exception of the lifespan is raised."""

    @asynccontextmanager
    async def lifespan():
        raise LookupError("no database")
        yield

    with pytest.raises(LookupError, match="no database"):
        await serve_asgi(echo, port=0, lifespan=lifespan())


async def test_a_lifespan_that_does_not_end_is_cancelled(serve, echo, autojump_clock, caplog):
    """The end of the lifespan has a timeout."""

    @asynccontextmanager
    async def lifespan():
        yield
        await trio.sleep_forever()

    host = await serve(echo, lifespan=lifespan(), lifespan_timeout=3)
    assert await _ended(host) == pytest.approx(3)
    assert caplog.messages == ["leaving the lifespan took too long and was cancelled"]


async def test_stopping_that_does_not_end_is_cut_off(serve, echo, autojump_clock):
    """The `stopping` callback has the grace period to end its work, and no more."""
    host = await serve(echo, stopping=trio.sleep_forever, grace=4)
    assert await _ended(host) == pytest.approx(4)


async def test_cancelling_ends_at_once(connect, echo):
    """A cancelled host does not wait for its clients."""

    async def app(scope, receive, send):
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        host = await nursery.start(_start, app)
        client = await connect(host)
        await client.request()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert await client.rest() == b""
    assert host.connections == 0


async def _start(app, task_status):
    with single_failure():
        await serve_asgi(app, port=0, task_status=task_status)


async def test_a_host_that_is_about_to_end_goes_on_first(serve, connect, echo, autojump_clock):
    """During the lead time requests are accepted and served; only the application is notified."""
    told = []

    def leaving():
        told.append(trio.current_time())

    async def stopping():
        told.append(trio.current_time())

    host = await serve(echo, leaving=leaving, stopping=stopping, lead=7)
    before = await connect(host)
    await before.request(b"1")
    assert await before.answer() == (200, b"1")
    start = trio.current_time()
    host.stop()
    await trio.sleep(5)
    for client in (before, await connect(host)):
        await client.request(b"2")
        assert await client.answer() == (200, b"2")
    await host.ended.wait()
    assert told == [start, pytest.approx(start + 7)]


async def test_idle_connections_are_closed_at_once(serve, connect, echo, autojump_clock):
    """Idle connections are closed without a wait, whether they were used or not."""
    host = await serve(echo)
    used, fresh = await connect(host), await connect(host)
    await used.request(b"1")
    assert await used.answer() == (200, b"1")
    await trio.testing.wait_all_tasks_blocked()
    assert await _ended(host) == 0
    assert await used.rest() == await fresh.rest() == b""


async def test_a_running_handler_may_finish(serve, connect, answer, autojump_clock):
    """A response in time is sent, with `Connection: close`."""
    handled, stop = trio.Event(), trio.Event()

    async def app(scope, receive, send):
        handled.set()
        await stop.wait()
        await answer(send, b"done")

    async def stopping():
        await trio.sleep(1)
        stop.set()

    host = await serve(app, stopping=stopping)
    client = await connect(host)
    await client.request()
    await handled.wait()
    host.stop()
    status, headers = await client.head()
    assert (status, headers["connection"]) == (200, "close")
    assert await client.rest() == b"done"
    await client.stream.aclose()
    await host.ended.wait()


async def test_a_handler_that_does_not_end_is_cancelled(serve, connect, endless, autojump_clock):
    """It is cancelled after `drain_timeout`."""
    host = await serve(endless, drain_timeout=DRAIN)
    client = await connect(host)
    await client.request()
    await trio.testing.wait_all_tasks_blocked()
    assert await _ended(host) == pytest.approx(DRAIN)
    assert endless.cancelled == 1


async def test_a_handler_that_fails_when_it_is_cancelled_is_logged(
    serve, connect, autojump_clock, caplog
):
    """The failure is logged, and the host ends normally."""

    async def fail():
        try:
            await trio.sleep_forever()
        finally:
            raise KeyError("late")

    async def app(scope, receive, send):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            await trio.sleep_forever()

    host = await serve(app, drain_timeout=DRAIN)
    client = await connect(host)
    await client.request()
    await trio.testing.wait_all_tasks_blocked()
    assert await _ended(host) == pytest.approx(DRAIN)
    assert caplog.messages == ["the application failed at POST /"]


async def test_a_handler_whose_client_left_has_its_time_too(
    serve, connect, endless, leave, until, autojump_clock
):
    """A handler whose client disconnected gets the same time, and is then cancelled."""
    host = await serve(endless, drain_timeout=DRAIN)
    client = await connect(host)
    await client.request()
    await until(lambda: host.connections == 1)
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(1)  # until a host looks after a client that waits
    await leave(client.stream, "close")
    await until(lambda: host.connections == 0)
    assert await _ended(host) == pytest.approx(DRAIN)
    assert endless.cancelled == 1


async def test_a_streaming_answer_is_ended_by_the_application(serve, connect, autojump_clock):
    """Parts that the application sends while it is stopped arrive; then the connection closes."""
    stop = trio.Event()

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"one"))
        await stop.wait()
        await send(_chunk(b"last", more=False))

    async def stopping():
        stop.set()

    host = await serve(app, stopping=stopping)
    client = await connect(host)
    await client.request()
    await client.read_until(b"one\r\n")
    host.stop()
    assert await client.rest() == b"4\r\nlast\r\n0\r\n\r\n"
    await client.stream.aclose()
    await host.ended.wait()


async def test_a_client_that_stopped_reading_holds_up_nothing(serve, connect, autojump_clock):
    """Buffered megabytes are dropped with their connection."""
    seen = []

    async def app(scope, receive, send):
        await send(START)
        try:
            while True:
                await send(_chunk(b"x" * 1_000_000))
                seen.append(1)
        finally:
            seen.append("ended")

    host = await serve(app, drain_timeout=DRAIN, write_timeout=1000.0)
    client = await connect(host, receive_buffer=4096)
    await client.request()
    await client.head()
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert "ended" not in seen
    assert await _ended(host) == pytest.approx(DRAIN)
    assert seen[-1] == "ended"


async def test_a_handshake_under_way_holds_up_nothing(
    serve, connect, echo, certificate, autojump_clock
):
    """A client that never begins the TLS handshake is closed with the others."""
    host = await serve(echo, certfile=certificate, drain_timeout=DRAIN)
    await connect(host)
    await trio.testing.wait_all_tasks_blocked()
    assert await _ended(host) <= DRAIN


async def test_tls_is_ended_in_the_same_way(serve, connect, certificate, autojump_clock):
    """An unread TLS connection is closed after `drain_timeout`, an idle one at once."""

    async def app(scope, receive, send):
        await send(START)
        while True:
            await send(_chunk(b"x" * 1_000_000))

    host = await serve(app, certfile=certificate, drain_timeout=DRAIN, write_timeout=1000.0)
    context = ssl.create_default_context(cafile=certificate)
    for number in range(2):
        client = await connect(host, receive_buffer=4096)
        client.stream = trio.SSLStream(client.stream, context, server_hostname="127.0.0.1")
        await client.stream.do_handshake()
        if number:
            await client.request()
            await client.head()
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert host.connections == 2
    assert await _ended(host) == pytest.approx(DRAIN)
