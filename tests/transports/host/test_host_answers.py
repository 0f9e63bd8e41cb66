"""Responses: heads, ends of bodies, and applications that violate ASGI."""

import contextvars
import email.utils
import time

import pytest
import trio
import trio.testing

START = {"type": "http.response.start", "status": 200, "headers": []}


def _chunk(body, *, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _headers(client):
    return (await client.head())[1]


async def test_answers_have_a_date_and_a_server(serve, connect, echo):
    """`date` is the time of the clock; `server` has no version."""
    client = await connect(await serve(echo))
    await client.request()
    headers = await _headers(client)
    date = email.utils.parsedate_to_datetime(headers["date"])
    assert time.time() - date.timestamp() == pytest.approx(0, abs=5)
    assert headers["server"] == "noizu-mcp"


async def test_an_application_may_have_its_own_date_and_server(serve, connect, answer):
    """The headers of the application replace them."""

    async def app(scope, receive, send):
        await answer(send, headers=[(b"Date", b"today"), (b"Server", b"mine")])

    client = await connect(await serve(app))
    await client.request()
    head = (await client.read_until(b"\r\n\r\n")).lower()
    assert b"\r\ndate: today\r\n" in head
    assert b"\r\nserver: mine\r\n" in head
    assert (head.count(b"date:"), head.count(b"server:")) == (1, 1)


@pytest.mark.parametrize("status", [200, 404, 599])
async def test_the_status_line(serve, connect, answer, status):
    """The status line has the phrase of a known status, and no phrase for an unknown one."""

    async def app(scope, receive, send):
        await answer(send, status=status)

    client = await connect(await serve(app))
    await client.request()
    phrase = {200: "OK", 404: "Not Found", 599: ""}[status]
    line = (await client.read_until(b"\r\n")).decode()
    assert line == f"HTTP/1.1 {status} {phrase}\r\n"


async def test_a_whole_answer_without_a_length_gets_one(serve, connect):
    """A response whose body comes in one part gets a Content-Length instead of chunks."""

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"whole", more=False))

    client = await connect(await serve(app))
    for _ in range(2):
        await client.request()
        assert await client.answer() == (200, b"whole")


@pytest.mark.parametrize(("status", "length"), [(204, None), (304, b"5"), (304, None)])
async def test_an_answer_without_a_body(serve, connect, answer, status, length):
    """204 and 304 have no body, whatever the application sends."""

    async def app(scope, receive, send):
        headers = [(b"content-length", length)] if length else []
        await send({**START, "status": status, "headers": headers})
        await send(_chunk(b"12345"))
        await send(_chunk(b"", more=False))

    client = await connect(await serve(app))
    for _ in range(2):
        await client.request()
        got, headers = await client.head()
        assert got == status
        assert headers.get("content-length") == (length.decode() if length else None)
        assert "transfer-encoding" not in headers
    assert client.buffer == b""


async def test_head_has_the_length_of_get(serve, connect):
    """HEAD has the Content-Length of GET, and no body."""

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"12345", more=False))

    client = await connect(await serve(app))
    for _ in range(2):
        await client.request(method="HEAD")
        assert (await _headers(client))["content-length"] == "5"
    assert client.buffer == b""


async def test_a_large_answer_is_whole(serve, connect, answer):
    """A response larger than one write arrives unchanged, with a length or in chunks."""
    body = bytes(range(256)) * 8192

    async def app(scope, receive, send):
        if scope["path"] == "/chunks":
            await send(START)
            await send(_chunk(body))
            await send(_chunk(b"", more=False))
        else:
            await answer(send, body)

    client = await connect(await serve(app), receive_buffer=4096)
    await client.request()
    assert await client.answer() == (200, body)
    await client.request(path="/chunks")
    await client.head()
    assert await client.read_until(b"\r\n0\r\n\r\n") == b"200000\r\n" + body + b"\r\n0\r\n\r\n"


async def test_a_stream_to_http_1_0_ends_with_the_connection(serve, connect):
    """HTTP/1.0 has no chunks; an incomplete stream ends with a reset, so the client notices."""

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"one"))
        assert send.write_nowait(b"two") == 0
        await send(_chunk(b"three"))
        if scope["path"] == "/fails":
            raise RuntimeError
        await send(_chunk(b"", more=False))

    host = await serve(app)
    client = await connect(host)
    await client.send(b"GET / HTTP/1.0\r\n\r\n")
    headers = await _headers(client)
    assert headers["connection"] == "close"
    assert "transfer-encoding" not in headers
    assert await client.rest() == b"onetwothree"
    client = await connect(host)
    await client.send(b"GET /fails HTTP/1.0\r\n\r\n")
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(trio.BrokenResourceError):
        await client.read_until(b"never")


@pytest.mark.parametrize(
    "header",
    [
        (b"x", b"1\r\nset-cookie: a"),
        (b"x\r\ny", b"1"),
        (b"x", b"1\n"),
        (b"x", b"\r"),
        (b"x", b"\0"),
    ],
)
async def test_no_header_can_write_another_one(serve, connect, answer, caplog, header):
    """A line end in a header is an application error, and nothing of the response is sent."""

    async def app(scope, receive, send):
        await answer(send, headers=[header])

    client = await connect(await serve(app))
    await client.request()
    rest = await client.rest()
    assert rest.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"x" not in rest.partition(b"\r\n")[0]
    assert b"set-cookie" not in rest
    assert "the application failed" in caplog.text


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([{**START, "status": 100}], "the status of an answer must be an integer from 200"),
        ([{**START, "status": "200"}], "the status of an answer must be an integer from 200"),
        ([START, START], "http.response.start must not be sent here"),
        ([{"type": "websocket.accept"}], "websocket.accept must not be sent here"),
        ([], "http.response.body must not be sent before http.response.start"),
        ([{**START, "headers": [(b"content-length", b"9")]}], "not as long as its content-length"),
    ],
)
async def test_what_must_not_be_sent(serve, connect, messages, text):
    """The application gets an exception, and the client gets 500."""
    raised = []

    async def app(scope, receive, send):
        try:
            for each in messages:
                await send(each)
            await send(_chunk(b"12", more=False))
        except (RuntimeError, ValueError) as error:
            raised.append(str(error))

    client = await connect(await serve(app))
    await client.request()
    assert (await client.rest()).startswith(b"HTTP/1.1 500")
    assert len(raised) == 1
    assert text in raised[0]


async def test_nothing_is_sent_after_the_end(serve, connect, answer):
    """A second body is refused; the first response and the connection stay intact."""
    raised = []

    async def app(scope, receive, send):
        await answer(send, b"1")
        with pytest.raises(RuntimeError) as caught:
            await send(_chunk(b"2"))
        raised.append(str(caught.value))

    client = await connect(await serve(app))
    for _ in range(2):
        await client.request()
        assert await client.answer() == (200, b"1")
    assert raised == ["http.response.body must not be sent after the end of the answer"] * 2


async def test_an_answer_that_is_too_short_ends_the_connection(serve, connect):
    """The connection is closed, so that the client does not wait for the missing bytes."""

    async def app(scope, receive, send):
        await send({**START, "headers": [(b"content-length", b"9")]})
        await send(_chunk(b"12"))

    client = await connect(await serve(app))
    await client.request()
    assert (await client.rest()).endswith(b"\r\n\r\n12")


async def test_the_application_may_end_the_connection(serve, connect, answer):
    """`Connection: close` from the application closes the connection."""

    async def app(scope, receive, send):
        await answer(send, b"1", headers=[(b"connection", b"close")])

    client = await connect(await serve(app))
    await client.request()
    rest = await client.rest()
    assert rest.count(b"connection: close\r\n") == 1
    assert rest.endswith(b"\r\n\r\n1")


@pytest.mark.parametrize(
    ("request_", "goes_on"),
    [
        (b"Content-Length: 5\r\n\r\n12345", True),
        (b"Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n", True),
        (b"Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n", False),
        (b"Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\nzz\r\n", False),
        (b"Content-Length: 6\r\n\r\n12345", False),
        (b"Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0", False),
    ],
)
async def test_an_unread_body(serve, connect, answer, request_, goes_on):
    """The connection is kept if an unread body has arrived, and otherwise closed."""

    async def app(scope, receive, send):
        await answer(send, b"1")

    client = await connect(await serve(app))
    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\n" + request_)
    status, headers = await client.head()
    assert (status, headers.get("connection")) == (200, None if goes_on else "close")
    if goes_on:
        await client.read_until(b"1")
        await client.request()
        assert await client.answer() == (200, b"1")
    else:
        assert await client.rest() == b"1"


async def test_a_body_may_be_read_while_the_answer_goes_out(serve, connect):
    """A response may echo the request body part by part, without `100 Continue`."""

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"begin"))
        more = True
        while more:
            message = await receive()
            more = message["more_body"]
            await send(_chunk(message["body"], more=more))

    client = await connect(await serve(app))
    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n")
    await client.send(b"Content-Length: 6\r\n\r\n")
    await client.head()
    await client.read_until(b"begin\r\n")
    for part in (b"one", b"two"):
        await client.send(part)
        await client.read_until(part + b"\r\n")
    assert await client.read_until(b"0\r\n\r\n") == b"0\r\n\r\n"


@pytest.mark.parametrize("waits_before", [False, True])
async def test_work_after_the_answer_does_not_block(serve, connect, answer, waits_before):
    """The next request is answered while the application still works after its response."""
    go_on, worked = trio.Event(), []

    async def app(scope, receive, send):
        await receive()
        if waits_before:
            await trio.lowlevel.checkpoint()
        await answer(send, b"1")
        if scope["path"] == "/work":
            await go_on.wait()
            assert await receive() == {"type": "http.disconnect"}
            assert send.write_nowait(b"no") is None
            await send(_chunk(b"no"))
            worked.append(1)

    client = await connect(await serve(app))
    for path in ("/work", "/", "/work", "/"):
        await client.request(path=path)
        assert await client.answer() == (200, b"1")
    assert worked == []
    go_on.set()
    await trio.testing.wait_all_tasks_blocked()
    assert worked == [1, 1]
    go_on = trio.Event()
    last = b"GET /work HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    await client.send(last + b"GET /stray HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await client.rest()).endswith(b"\r\n\r\n1")
    assert client.buffer.count(b"HTTP/1.1 200") == 1
    go_on.set()


async def test_work_after_the_answer_is_waited_for_at_the_end(serve, connect, answer):
    """A pipelined request is still answered; then the host ends."""
    go_on, worked = trio.Event(), []

    async def app(scope, receive, send):
        await answer(send, b"1")
        await go_on.wait()
        worked.append(1)

    async def stopping():
        go_on.set()

    host = await serve(app, stopping=stopping)
    client = await connect(host)
    await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
    for _ in range(2):
        assert await client.answer() == (200, b"1")
    host.stop()
    assert await client.rest() == b""
    await host.ended.wait()
    assert worked == [1, 1]


async def test_requests_share_no_context(serve, connect, answer):
    """A context variable that is set in one request is not visible in the next."""
    variable = contextvars.ContextVar("variable", default=b"unset")

    async def app(scope, receive, send):
        found = variable.get()
        variable.set(b"set")
        await trio.lowlevel.checkpoint()
        await answer(send, found)

    client = await connect(await serve(app))
    for _ in range(2):
        await client.request()
        assert await client.answer() == (200, b"unset")


async def test_an_empty_line_between_requests_is_ignored(serve, connect, echo, autojump_clock):
    """After an empty line the connection is idle, and not inside of a head."""
    host = await serve(echo, header_timeout=10.0, keep_alive_timeout=60.0)
    client = await connect(host)
    await client.request(b"1")
    assert await client.answer() == (200, b"1")
    await client.send(b"\r\n")
    await trio.sleep(30)
    await client.request(b"2")
    assert await client.answer() == (200, b"2")
    await client.send(b"\r")
    await trio.testing.wait_all_tasks_blocked()
    await client.send(b"\n")
    await trio.sleep(11)
    assert await client.rest() == b""


async def test_half_a_head_is_no_request(serve, connect, echo, until):
    """A client that leaves within a head gets no response."""
    host = await serve(echo)
    client = await connect(host)
    await client.send(b"GET / HTTP/1.1\r\nHo")
    await trio.testing.wait_all_tasks_blocked()
    await client.stream.send_eof()
    assert await client.rest() == b""
    await until(lambda: host.connections == 0)
