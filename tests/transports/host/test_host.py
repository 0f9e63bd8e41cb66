"""Serving: the ASGI events of an application, the responses of its clients, and the log."""

import errno
import logging
import socket

import pytest
import trio
import trio.testing

from noizu_mcp.engine import single_failure
from noizu_mcp.transports.host import serve_asgi

START = {"type": "http.response.start", "status": 200, "headers": []}


def _chunk(body, *, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


async def test_the_scope_has_the_request(serve, connect, read_body, answer):
    """The scope has addresses, method, target and headers; the body comes in one event."""
    seen = []

    async def app(scope, receive, send):
        seen.append((scope, await receive()))
        await answer(send)

    host = await serve(app)
    client = await connect(host)
    await client.request(b"{}", "X-More: 1", path="/mcp%20x?a=b")
    assert await client.answer() == (200, b"")
    [(scope, message)] = seen
    assert message == {"type": "http.request", "body": b"{}", "more_body": False}
    assert (scope["type"], scope["method"], scope["http_version"]) == ("http", "POST", "1.1")
    assert (scope["path"], scope["query_string"]) == ("/mcp x", b"a=b")
    assert (b"x-more", b"1") in scope["headers"]
    assert scope["server"] == ("127.0.0.1", host.port)
    assert scope["client"] == client.stream.socket.getsockname()
    assert host.urls == (f"http://127.0.0.1:{host.port}",)


async def test_a_connection_serves_many_requests(serve, connect, echo):
    """Keep-alive connections answer pipelined requests in order."""
    host = await serve(echo)
    client = await connect(host)
    for number in range(3):
        await client.request(b"%d" % number)
        assert await client.answer() == (200, b"%d" % number)
    for number in range(3):
        await client.request(b"%d" % number)
    for number in range(3):
        assert await client.answer() == (200, b"%d" % number)
    assert host.connections == 1


async def test_an_answer_is_one_write(serve, connect, echo, monkeypatch):
    """Head, body and end are sent in one write."""
    writes = []
    send = socket.socket.send

    def counted(self, data):
        if self.family == socket.AF_INET and self.getsockname()[1] == host.port:
            writes.append(data)
        return send(self, data)

    monkeypatch.setattr(socket.socket, "send", counted)
    host = await serve(echo)
    client = await connect(host)
    await client.request(b"hello")
    assert await client.answer() == (200, b"hello")
    assert len(writes) == 1


async def test_what_is_streamed_goes_out_at_once(serve, connect):
    """A part of a body is sent without waiting for the next; an empty part sends the head."""
    go_on = [trio.Event(), trio.Event()]

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b""))
        await go_on[0].wait()
        await send(_chunk(b"one"))
        await go_on[1].wait()
        await send(_chunk(b"two", more=False))

    client = await connect(await serve(app))
    await client.request(method="GET")
    assert (await client.head())[0] == 200
    go_on[0].set()
    assert await client.read_until(b"one\r\n") == b"3\r\none\r\n"
    go_on[1].set()
    assert await client.read_until(b"0\r\n\r\n") == b"3\r\ntwo\r\n0\r\n\r\n"


async def test_a_failure_is_a_500_and_a_record(serve, connect, caplog):
    """The exception is in the log, and not in the response."""

    async def app(scope, receive, send):
        raise RuntimeError("secret")

    client = await connect(await serve(app))
    await client.request(path="/broken%0A")
    assert b"secret" not in (head := await client.rest())
    assert head.startswith(b"HTTP/1.1 500")
    [record] = caplog.records
    assert (record.name, record.levelname) == ("noizu_mcp.http", "ERROR")
    assert record.getMessage() == "the application failed at POST /broken%0A"
    assert isinstance(record.exc_info[1], RuntimeError)


async def test_a_failure_before_the_body_is_a_500(serve, connect, caplog):
    """The head of a response is not sent if its body never comes."""

    async def app(scope, receive, send):
        await send(START)
        raise RuntimeError

    client = await connect(await serve(app))
    await client.request()
    assert (await client.rest()).startswith(b"HTTP/1.1 500")
    assert len(caplog.records) == 1


async def test_a_failure_within_the_body_cuts_it_off(serve, connect, caplog):
    """The client sees that the response is incomplete."""

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"one"))
        raise RuntimeError

    client = await connect(await serve(app))
    await client.request()
    assert (await client.rest()).endswith(b"3\r\none\r\n")
    assert len(caplog.records) == 1


async def test_more_than_was_promised_is_a_failure_of_the_application(serve, connect, caplog):
    """A body that exceeds its Content-Length is not sent."""

    async def app(scope, receive, send):
        await send({**START, "headers": [(b"content-length", b"1")]})
        await send(_chunk(b"12"))

    client = await connect(await serve(app))
    await client.request()
    assert (await client.rest()).startswith(b"HTTP/1.1 ")
    assert "the application failed" in caplog.text


async def test_no_answer_is_a_500(serve, connect, caplog):
    """An application that returns without a response gets 500, without a traceback."""

    async def app(scope, receive, send):
        pass

    client = await connect(await serve(app))
    await client.request()
    assert (await client.rest()).startswith(b"HTTP/1.1 500")
    assert caplog.records == []


async def test_the_end_of_the_client_is_a_disconnect(serve, connect):
    """After a close or a reset the application gets `http.disconnect`, and can still send."""
    seen = []
    over = trio.Event()

    async def app(scope, receive, send):
        seen.append(await receive())
        await send(START)
        await send(_chunk(b"one"))
        seen.append(await receive())
        seen.append(await receive())
        for _ in range(20):
            await send(_chunk(b"x" * 100_000))
        await send(_chunk(b"", more=False))
        over.set()

    client = await connect(await serve(app))
    await client.request()
    await client.read_until(b"one")
    await client.stream.aclose()
    await over.wait()
    assert [each["type"] for each in seen] == ["http.request", *["http.disconnect"] * 2]


async def test_a_half_closed_client_gets_what_is_answered_at_once(serve, connect, echo):
    """An application that does not wait answers, however the tasks are scheduled."""
    host = await serve(echo)
    for _ in range(20):
        client = await connect(host)
        await client.request(b"last")
        await client.stream.send_eof()
        assert (await client.rest()).endswith(b"last")


@pytest.fixture
def half_closed(serve, connect):
    """Send a request, half-close, and read the whole response slowly."""

    async def read(app):
        client = await connect(await serve(app), receive_buffer=4096)
        await client.request()
        await client.stream.send_eof()
        await trio.testing.wait_all_tasks_blocked(0.01)
        return await client.rest()

    return read


async def test_a_half_closed_client_gets_all_that_is_being_written(half_closed, answer):
    """A response that has begun is not cut off, however slowly the client reads."""

    async def app(scope, receive, send):
        await answer(send, b"x" * 3_000_000)

    assert (await half_closed(app)).count(b"x") == 3_000_000


async def test_a_half_closed_client_gets_it_while_the_application_receives(half_closed, answer):
    """Receiving the disconnect does not cut off the response."""

    async def app(scope, receive, send):
        async def hear():
            while (await receive())["type"] != "http.disconnect":
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hear)
            await answer(send, b"x" * 3_000_000)

    assert (await half_closed(app)).count(b"x") == 3_000_000


async def test_half_a_close_is_the_end(serve, connect, answer):
    """A half-close looks like a close: an application that waits gets `http.disconnect`."""
    over = trio.Event()

    async def app(scope, receive, send):
        await receive()
        assert (await receive())["type"] == "http.disconnect"
        await answer(send, b"late")
        over.set()

    client = await connect(await serve(app))
    await client.request()
    await client.stream.send_eof()
    assert await client.rest() == b""
    await over.wait()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_clients_that_left_keep_no_place(
    serve, connect, leave, until, descriptors, answer, how
):
    """Disconnected clients use no slot while their applications go on, so no client is refused."""
    go_on, clients, ended = trio.Event(), [], []

    async def app(scope, receive, send):
        if scope["path"] == "/long":
            await go_on.wait()
            ended.append(1)
        await answer(send)

    host = await serve(app, max_connections=20)
    before = descriptors()
    for _ in range(20):
        clients.append(await connect(host))
        await clients[-1].request(path="/long")
    await until(lambda: host.connections == 20)
    for client in clients:
        await leave(client.stream, how)
    await until(lambda: host.connections == 0)
    assert descriptors() == before
    assert ended == []
    client = await connect(host)
    await client.request()
    assert await client.answer() == (200, b"")
    go_on.set()
    await until(lambda: len(ended) == 20)
    # Responses to clients that had left do not count as idle connections.
    for _ in range(20):
        client = await connect(host)
        await client.request()
        assert await client.answer() == (200, b"")
    assert host.connections == 20


@pytest.mark.slow
async def test_an_application_goes_on_after_its_answer_without_the_client(
    serve, connect, answer, until, descriptors
):
    """The connection is closed after the response, while the application goes on."""
    go_on = trio.Event()

    async def app(scope, receive, send):
        await answer(send, b"1")
        await go_on.wait()

    host = await serve(app)
    before = descriptors()
    client = await connect(host)
    await client.request(b"", "Connection: close")
    assert await client.answer() == (200, b"1")
    assert await client.rest() == b""
    await client.stream.aclose()
    await until(lambda: host.connections == 0)
    assert descriptors() == before
    go_on.set()


async def test_a_body_cut_short_is_a_disconnect(serve, connect, read_body):
    """An incomplete upload ends in `http.disconnect`, and never as a complete body."""
    bodies = []
    over = trio.Event()

    async def app(scope, receive, send):
        bodies.append(await receive())
        bodies.append(await read_body(receive))
        over.set()

    client = await connect(await serve(app))
    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
    while not bodies:
        await trio.testing.wait_all_tasks_blocked()
    await client.stream.aclose()
    await over.wait()
    assert bodies == [{"type": "http.request", "body": b"half", "more_body": True}, None]


async def test_an_early_answer_survives_the_rest_of_the_upload(serve, connect, answer):
    """A client that is refused during an upload of megabytes can read the response."""

    async def app(scope, receive, send):
        await receive()
        await answer(send, b"too large", 413)

    client = await connect(await serve(app))
    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n")
    await client.send(b"x" * 4_000_000)
    assert await client.answer() == (413, b"too large")
    assert await client.rest() == b""


async def test_an_unread_body_blocks_its_connection(serve, connect, answer):
    """A body that is not read is not buffered, and is dropped after the response."""
    go_on = trio.Event()

    async def app(scope, receive, send):
        await go_on.wait()
        await answer(send, b"done")

    client = await connect(await serve(app))
    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n")
    with trio.move_on_after(0.3) as scope:  # until all buffers in between are full
        await client.send(b"x" * 50_000_000)
    assert scope.cancelled_caught
    go_on.set()
    assert await client.answer() == (200, b"done")


async def test_continue_is_said_when_the_body_is_wanted(serve, connect, echo):
    """`100 Continue` is sent when the application reads the body."""
    client = await connect(await serve(echo))
    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n")
    await client.send(b"Content-Length: 4\r\n\r\n")
    assert await client.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    await client.send(b"body")
    assert await client.answer() == (200, b"body")


async def test_continue_is_not_said_to_a_refused_body(serve, connect, answer):
    """An application that refuses a request by its headers saves the client the upload."""

    async def app(scope, receive, send):
        await answer(send, status=401)

    client = await connect(await serve(app))
    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n")
    await client.send(b"Content-Length: 4\r\n\r\n")
    assert await client.answer() == (401, b"")
    assert await client.rest() == b""


async def test_websockets_and_upgrades_are_not_offered(serve, connect, echo):
    """`Upgrade` is ignored: the request is answered as a plain one."""
    client = await connect(await serve(echo))
    for kind in ("websocket", "h2c"):
        await client.request(b"1", "Connection: upgrade", f"Upgrade: {kind}")
        assert await client.answer() == (200, b"1")


async def test_a_closed_connection_was_announced(serve, connect, echo):
    """The last response of a connection has `Connection: close`."""
    client = await connect(await serve(echo, max_requests=1))
    await client.request(b"1", "Connection: keep-alive")
    _, headers = await client.head()
    assert headers["connection"] == "close"
    assert await client.rest() == b"1"


async def _is_turned_away(client):
    await client.request(b"1")
    return (await client.rest()).startswith(b"HTTP/1.1 503")


async def test_the_connection_idle_for_longest_makes_room(serve, connect, echo):
    """At the limit a new client is accepted, and the least recently used connection is closed."""
    host = await serve(echo, max_connections=2)
    first, second = await connect(host), await connect(host)
    for client in (first, second, first):
        await client.request(b"1")
        assert await client.answer() == (200, b"1")
    third = await connect(host)
    await third.request(b"3")
    assert await third.answer() == (200, b"3")
    assert await second.rest() == b""
    await first.request(b"1")
    assert await first.answer() == (200, b"1")


async def test_one_too_many_is_turned_away(serve, connect, held, caplog):
    """If every connection is busy, a client gets 503; the log reports it once."""
    host = await serve(held, max_connections=1)
    busy = await connect(host)
    await busy.request(path="/long")
    await held.started.wait()
    for _ in range(2):
        assert await _is_turned_away(await connect(host))
    assert [each.getMessage() for each in caplog.records] == [
        "connections are turned away: max_connections=1 are busy"
    ]
    held.go_on.set()
    assert await busy.answer() == (200, b"")
    other = await connect(host)
    await other.request()
    assert await other.answer() == (200, b"")


@pytest.mark.parametrize("busy", [False, True])
async def test_a_request_that_is_not_whole_makes_room(
    serve, connect, held, autojump_clock, caplog, busy
):
    """A client whose body is overdue for a second loses its slot; a waiting client does not."""
    host = await serve(held, max_connections=2)
    waiting, *slow = [await connect(host) for _ in range(2)]
    await waiting.request(path="/long" if busy else "/")
    if busy:
        await trio.testing.wait_all_tasks_blocked()
    else:
        assert await waiting.answer() == (200, b"")
        slow.insert(0, waiting)
    for each in slow:
        await each.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9001\r\n\r\n1")
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(0.1)
    assert await _is_turned_away(await connect(host))
    await trio.sleep(1)
    for each in slow[1:]:
        await each.send(b"1" * 4000)  # a client that sends is not idle
    await trio.testing.wait_all_tasks_blocked()
    other = await connect(host)
    await other.request(b"3")
    assert await other.answer() == (200, b"3")
    assert await slow[0].rest() == b""
    assert host.connections == 2
    for each in slow[1:]:
        await each.send(b"1" * 5000)
        assert await each.answer() == (200, b"1" * 9001)
    held.go_on.set()
    if busy:
        assert await waiting.answer() == (200, b"")
    assert len(caplog.records) == 1


async def test_a_body_in_drops_keeps_no_place(serve, connect, echo, autojump_clock):
    """A body at a byte now and then loses its slot, one at the pace of a modem keeps it.

    Bytes from before the request do not count.
    """
    host = await serve(echo, max_connections=2)
    sending = await connect(host)
    await sending.request(b"1")
    assert await sending.answer() == (200, b"1")
    await trio.sleep(10)
    dripping = await connect(host)
    for each in (dripping, sending):
        await each.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n1")
    for _ in range(4):
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(0.5)
        await dripping.send(b"1")
        await sending.send(b"1" * 2000)
    await trio.testing.wait_all_tasks_blocked()
    other = await connect(host)
    await other.request(b"3")
    assert await other.answer() == (200, b"3")
    assert await dripping.rest() == b""
    await sending.send(b"1" * (99_999 - 8001))
    assert await sending.answer() == (200, b"1" * 99_999)


async def test_after_continue_the_body_is_owed(serve, connect, echo, autojump_clock):
    """A client that got `100 Continue` and does not send loses its slot like any other."""
    host = await serve(echo, max_connections=1)
    slow = await connect(host)
    await slow.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n")
    await slow.send(b"Content-Length: 4\r\n\r\n")
    assert b"100" in await slow.read_until(b"\r\n\r\n")
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(1)
    other = await connect(host)
    await other.request(b"3")
    assert await other.answer() == (200, b"3")


async def test_a_client_that_waits_for_continue_is_not_quiet(serve, connect, echo, autojump_clock):
    """A client that waits for `100 Continue` keeps its slot."""
    go_on = trio.Event()

    async def app(scope, receive, send):
        await go_on.wait()
        await echo(scope, receive, send)

    host = await serve(app, max_connections=1)
    client = await connect(host)
    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n")
    await client.send(b"Content-Length: 4\r\n\r\n")
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(10)
    assert await _is_turned_away(await connect(host))
    go_on.set()
    await client.read_until(b"\r\n\r\n")
    await client.send(b"body")
    assert await client.answer() == (200, b"body")


async def test_no_descriptor_left_is_waited_for(
    serve, connect, echo, caplog, monkeypatch, autojump_clock
):
    """A process without free descriptors logs it, and tries to accept again."""
    accept, failures = socket.socket.accept, [OSError(errno.EMFILE, "Too many open files")] * 9

    def failing(listener):
        if failures:
            raise failures.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", failing)
    client = await connect(await serve(echo))
    await client.request(b"1")
    assert await client.answer() == (200, b"1")
    assert caplog.messages == ["no room for another connection: Too many open files"]


async def test_a_broken_listener_is_an_error(connect, echo, monkeypatch):
    """Any other error of a listening socket ends the host with that single exception."""

    def failing(listener):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(socket.socket, "accept", failing)

    async def connect_to_it():
        async with trio.open_nursery() as nursery:
            await connect(await nursery.start(_start, echo))

    with pytest.raises(OSError, match="Invalid argument"), single_failure():
        await connect_to_it()


async def _start(app, task_status):
    await serve_asgi(app, port=0, task_status=task_status)


async def test_a_client_gone_before_it_is_accepted_is_no_matter(serve, connect, echo, monkeypatch):
    """A client that is gone before `accept` is ignored."""
    accept, failures = socket.socket.accept, [OSError(errno.ECONNABORTED, "Connection aborted")]

    def failing(listener):
        if failures:
            raise failures.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", failing)
    client = await connect(await serve(echo))
    await client.request(b"1")
    assert await client.answer() == (200, b"1")


@pytest.mark.parametrize("verbose", [False, True])
async def test_a_failure_of_one_connection_spares_the_others(
    serve, connect, echo, monkeypatch, caplog, verbose
):
    """A fault in the host itself ends one connection, and is logged in one line."""
    caplog.set_level(logging.DEBUG if verbose else logging.INFO, "noizu_mcp.http")
    host = await serve(echo)
    fine = await connect(host)
    await fine.request(b"1")
    assert await fine.answer() == (200, b"1")
    with monkeypatch.context() as patch:

        def failing(self, size):
            raise KeyError(3)

        patch.setattr(socket.socket, "recv", failing)
        for _ in range(5):  # no client may flood the log
            broken = await connect(host)
            await broken.send(b"x")
            assert await broken.rest() == b""
    assert caplog.messages == ["a connection failed: KeyError(3)"]
    assert bool(caplog.records[0].exc_info) is verbose
    await fine.request(b"2")
    # It waited in the code from before the patch.
    assert await fine.answer() == (200, b"2")


async def test_a_connection_that_fails_at_the_end_of_the_host(serve, connect, monkeypatch, caplog):
    """The failure is logged, and the cancellation continues."""
    wait_readable = trio.lowlevel.wait_readable

    async def failing(connection):
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return await wait_readable(connection)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise KeyError(3)

    monkeypatch.setattr(trio.lowlevel, "wait_readable", failing)
    host = await serve(None, drain_timeout=0.01)
    client = await connect(host)
    await trio.testing.wait_all_tasks_blocked(0.01)
    host.stop()
    assert await client.rest() == b""
    await host.ended.wait()
    assert caplog.messages == ["a connection failed: KeyError(3)"]


async def test_reset_clients_leave_nothing(serve, connect, echo, caplog):
    """Connections that are reset at any point are dropped without a log entry."""
    host = await serve(echo)
    for data in (b"", b"POST / HT", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"):
        client = await connect(host)
        await client.send(data or b"\r")
        await trio.testing.wait_all_tasks_blocked()
        client.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        await client.stream.aclose()
    with trio.fail_after(60):
        while host.connections:
            await trio.testing.wait_all_tasks_blocked()
    assert caplog.records == []
