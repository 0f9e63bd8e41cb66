"""What clients may send, how fast, and how they are refused."""

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.transports.host import _crumbs
from noizu_mcp.transports.host._head import head_fault

START = {"type": "http.response.start", "status": 200, "headers": []}
HOST = b"Host: x\r\n"


def _chunk(body, *, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


def _post(headers, body=b"", version=b"1.1"):
    return b"POST / HTTP/" + version + b"\r\n" + HOST + headers + b"\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked\r\n"
REFUSED = {
    "no request line": (b"\r\n\r\n", 400),
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "garbage without an end": (b"\x16\x03\x01", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (_post(HOST), 400),
    "version 2": (_post(b"", version=b"2.0"), 505),
    "version 1.2": (_post(b"", version=b"1.2"), 505),
    "a space before the colon": (_post(b"X : 1\r\n"), 400),
    "an empty name": (_post(b": 1\r\n"), 400),
    "a control character": (_post(b"X: \x01\r\n"), 400),
    "a null": (_post(b"X: \0\r\n"), 400),
    "a bare CR": (_post(b"X: 1\rY: 2\r\n"), 400),
    "a bare LF": (_post(b"X: 1\nY: 2\r\n"), 400),
    "only bare LFs": (b"GET / HTTP/1.1\nHost: x\n\n", 400),
    "a folded line": (_post(b"X: 1\r\n 2\r\n"), 400),
    "a folded line with a tab": (_post(b"X: 1\r\n\t2\r\n"), 400),
    "a length and a coding": (_post(b"Content-Length: 5\r\n" + CHUNKED, b"0\r\n\r\n"), 400),
    "a coding and a length": (_post(CHUNKED + b"CONTENT-LENGTH: 5\r\n", b"0\r\n\r\n"), 400),
    "two lengths": (_post(b"Content-Length: 1\r\nContent-Length: 2\r\n", b"12"), 400),
    "a length twice": (_post(b"Content-Length: 1\r\nContent-Length: 1\r\n", b"1"), 400),
    "a list of lengths": (_post(b"Content-Length: 1, 2\r\n", b"12"), 400),
    "a list of one length": (_post(b"Content-Length: 1, 1\r\n", b"1"), 400),
    "another host in the target": (b"GET http://y/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "the same host with a user": (b"GET http://a@x/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "another port in the target": (b"GET http://x:80/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no host in the target": (b"GET http:/// HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "a signed length": (_post(b"Content-Length: +1\r\n", b"1"), 400),
    "a length in letters": (_post(b"Content-Length: ten\r\n"), 400),
    "two codings": (_post(CHUNKED + CHUNKED, b"0\r\n\r\n"), 400),
    "an unknown coding": (_post(b"Transfer-Encoding: gzip, chunked\r\n"), 501),
    "a coding in HTTP/1.0": (_post(CHUNKED, b"0\r\n\r\n", version=b"1.0"), 400),
    "a chunk without a size": (_post(CHUNKED, b"\r\n1\r\n"), 400),
    "a chunk of a bad size": (_post(CHUNKED, b"-1\r\n1\r\n"), 400),
    "a chunk too long for its size": (_post(CHUNKED, b"1\r\n12\r\n"), 400),
    "a head too large": (_post(b"X: " + b"x" * 40_000 + b"\r\n"), 431),
    "a head too large, without an end": (b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000, 431),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_can_be_misread_is_refused(serve, connect, echo, caplog, name):
    """One answer with its status, the end of the connection, nothing in the log."""
    data, status = REFUSED[name]
    client = await connect(await serve(echo))
    # What comes behind it must never be taken for a request.
    await client.send(data + b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
    rest = await client.rest()
    assert rest.startswith(b"HTTP/1.1 %d " % status)
    assert rest.count(b"HTTP/1.1") == 1
    assert b"connection: close" in rest
    assert caplog.records == []


async def test_a_refusal_after_the_answer_has_begun_ends_the_connection(serve, connect):
    """A bad chunk within a streamed answer: no second answer, and a disconnect."""
    seen = []
    over = trio.Event()

    async def app(scope, receive, send):
        seen.append(await receive())
        await send(START)
        await send(_chunk(b"one"))
        seen.append(await receive())
        await send(_chunk(b"two", more=False))
        over.set()

    client = await connect(await serve(app))
    await client.send(_post(CHUNKED, b"1\r\n1\r\n"))
    await client.read_until(b"one\r\n")
    await client.send(b"zz\r\n")
    assert b"HTTP/1.1" not in await client.rest()
    await over.wait()
    assert [each["type"] for each in seen] == ["http.request", "http.disconnect"]


async def test_an_answer_after_a_refusal_goes_nowhere(serve, connect, answer):
    """The refusal was the answer; what the application says later is dropped quietly."""
    over = trio.Event()

    async def app(scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass
        await answer(send, b"late")
        over.set()

    client = await connect(await serve(app))
    await client.send(_post(CHUNKED, b"1\r\n1\r\nzz\r\n"))
    rest = await client.rest()
    assert rest.startswith(b"HTTP/1.1 400")
    assert b"late" not in rest
    await over.wait()


async def test_chunked_bodies_are_read(serve, connect, echo):
    """With extensions and trailers, in pieces, and another request after it."""
    client = await connect(await serve(echo))
    await client.send(_post(CHUNKED, b"4;x=y\r\nWi"))
    await trio.testing.wait_all_tasks_blocked()
    await client.send(b"ki\r\n3\r\nped\r\n0\r\nTrailer: 1\r\n\r\n")
    assert await client.answer() == (200, b"Wikiped")
    await client.request(b"2")
    assert await client.answer() == (200, b"2")


@pytest.mark.parametrize(
    ("head", "path", "query"),
    [
        (b"POST http://x/mcp?a=b HTTP/1.1\r\nHost: x", "/mcp", b"a=b"),
        (b"POST HTTPS://X HTTP/1.1\r\nHost: x", "/", b""),
        (b"POST http://x?a=/b HTTP/1.1\r\nHost: x", "/", b"a=/b"),
        (b"POST http://x//y/mcp HTTP/1.1\r\nHost: x", "//y/mcp", b""),
        (b"POST //y/mcp HTTP/1.1\r\nHost: x", "//y/mcp", b""),
        (b"POST http://x/mcp HTTP/1.0", "/mcp", b""),
    ],
)
async def test_a_target_may_name_the_host(serve, connect, echo, head, path, query):
    """As it is written to a proxy; the application sees the path, and the host in `Host`."""
    scopes = []

    async def app(scope, receive, send):
        scopes.append(scope)
        await echo(scope, receive, send)

    client = await connect(await serve(app))
    await client.send(head + b"\r\nContent-Length: 1\r\n\r\n1")
    assert await client.answer() == (200, b"1")
    [scope] = scopes
    assert (scope["path"], scope["query_string"]) == (path, query)
    assert scope["raw_path"] == path.encode()
    assert [value for name, value in scope["headers"] if name == b"host"] == [b"x"]


async def test_a_body_in_crumbs_is_refused(serve, connect, echo, monkeypatch):
    """Many chunks are well, and many small ones are not."""
    monkeypatch.setattr(_crumbs, "PIECES", 100)
    host = await serve(echo)
    client = await connect(host)
    for _ in range(2):
        await client.send(_post(CHUNKED, b"1\r\nx\r\n" * 100 + b"0\r\n\r\n"))
        assert await client.answer() == (200, b"x" * 100)
    await client.send(_post(CHUNKED, (b"40\r\n" + b"x" * 64 + b"\r\n") * 200 + b"0\r\n\r\n"))
    assert await client.answer() == (200, b"x" * 64 * 200)
    await client.send(_post(CHUNKED, b"1\r\nx\r\n" * 101))
    rest = await client.rest()
    assert rest.startswith(b"HTTP/1.1 400")
    assert rest.count(b"HTTP/1.1") == 1


async def test_a_body_in_crumbs_leaves_others_their_turns(
    serve, connect, echo, crumbs_between_turns
):
    """What one read brings is not gone through in one go."""
    client = await connect(await serve(echo))
    async with crumbs_between_turns() as between:
        await client.send(_post(CHUNKED, b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\n"))
        assert await client.answer() == (200, b"x" * 10_000)
    assert 0 < max(between) <= 2 * _crumbs.TURN


async def test_http_1_0_is_served(serve, connect, echo):
    """Its connection is closed after the answer."""
    client = await connect(await serve(echo))
    await client.send(b"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\n1")
    assert (await client.rest()).endswith(b"\r\n\r\n1")


@given(st.binary(max_size=200), st.integers(min_value=0, max_value=100))
def test_no_head_is_too_strange_to_be_judged(data, limit):
    """Whatever was received, it is refused with one of two statuses, or left to the parser."""
    assert head_fault(data, limit) in {None, 400, 431}


@given(st.lists(st.sampled_from([b"a: 1", b"b: 2", b"content-length: 1"]), unique=True))
def test_a_plain_head_is_never_refused(lines):
    """Heads without anything that can be read in two ways pass."""
    head = b"".join(line + b"\r\n" for line in (b"POST / HTTP/1.1", *lines, b""))
    assert head_fault(head + b"\r\nbody\n \n", 1000) is None


async def test_a_slow_head_is_ended(serve, connect, echo, autojump_clock):
    """One byte a second does not buy more time, on a new connection or an old one."""
    host = await serve(echo, header_timeout=10.0, keep_alive_timeout=60.0)
    for used in (False, True):
        client = await connect(host)
        if used:
            await client.request(b"1")
            assert await client.answer() == (200, b"1")
            await trio.sleep(30)
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_drip, client, b"GET / HTTP/1.1\r\nHost: example\r\n\r\n")
            status, headers = await client.head()
            nursery.cancel_scope.cancel()
        assert (status, headers["connection"]) == (408, "close")
        assert trio.current_time() - start == pytest.approx(10, abs=1.1)


async def _drip(client, data):
    for byte in data:
        await client.send(bytes([byte]))
        await trio.sleep(1)


async def test_a_client_that_says_nothing_is_closed(serve, connect, echo, autojump_clock):
    """A connection without a request, or between two, has its time."""
    host = await serve(echo, header_timeout=10.0, keep_alive_timeout=60.0)
    client = await connect(host)
    start = trio.current_time()
    assert await client.rest() == b""
    assert trio.current_time() - start == pytest.approx(10)
    client = await connect(host)
    await client.request(b"1")
    assert await client.answer() == (200, b"1")
    start = trio.current_time()
    with trio.fail_after(100):
        assert await client.stream.receive_some() == b""
    assert trio.current_time() - start == pytest.approx(60)


async def test_a_slow_body_is_a_disconnect(serve, connect, read_body, answer, autojump_clock):
    """Too few bytes in their time: the application may say so, and the connection ends."""

    async def app(scope, receive, send):
        assert await read_body(receive) is None
        await answer(send, status=408)

    client = await connect(await serve(app, body_timeout=30.0))
    start = trio.current_time()
    await client.send(_post(b"Content-Length: 1000\r\n"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_drip, client, b"x" * 1000)
        assert await client.answer() == (408, b"")
        nursery.cancel_scope.cancel()
    assert trio.current_time() - start == pytest.approx(30)
    await client.stream.aclose()


@pytest.mark.parametrize("begun", [False, True])
async def test_a_slow_body_is_answered_for(serve, connect, read_body, begun, autojump_clock):
    """An application that says nothing to a disconnect has not said 408, either."""

    async def app(scope, receive, send):
        if begun:
            await send(START)
            await send(_chunk(b"one"))
        assert await read_body(receive) is None

    client = await connect(await serve(app, body_timeout=30.0))
    await client.send(_post(b"Content-Length: 1000\r\n"))
    rest = await client.rest()
    if begun:
        assert rest.endswith(b"3\r\none\r\n")
    else:
        assert rest.startswith(b"HTTP/1.1 408")
        assert b"connection: close" in rest


async def test_a_slow_client_may_leave_an_application_that_does_not_answer(
    serve, connect, read_body, answer, leave, until, autojump_clock
):
    """What it sends after its time is dropped; its place is free when it has gone."""
    go_on, over = trio.Event(), trio.Event()

    async def app(scope, receive, send):
        assert await read_body(receive) is None
        over.set()
        await go_on.wait()
        await answer(send)

    host = await serve(app, body_timeout=30.0, max_connections=2)
    for how in ("drip", "leave", "drop"):
        client = await connect(host)
        await client.send(_post(b"Content-Length: 1000000\r\n"))
        over = trio.Event()
        await over.wait()
        await client.send(b"x" * 500_000)
        if how == "leave":
            await leave(client.stream, "close")
            await until(lambda: host.connections == 1)
        elif how == "drip":
            keep = client
    assert host.connections == 2
    await connect(host)
    assert await keep.rest() == b""
    go_on.set()
    assert await client.answer() == (200, b"")


async def test_a_body_at_a_steady_pace_may_take_long(serve, connect, echo, autojump_clock):
    """What counts is the pace, not the whole time."""
    client = await connect(await serve(echo, body_timeout=30.0))
    start = trio.current_time()
    await client.send(_post(b"Content-Length: 700000\r\n"))
    for _ in range(10):
        await trio.sleep(20)
        await client.send(b"x" * 70_000)
    status, body = await client.answer()
    assert (status, len(body)) == (200, 700_000)
    assert trio.current_time() - start == pytest.approx(200)


async def test_a_client_that_reads_nothing_is_cut_off(serve, connect, autojump_clock):
    """It loses its connection after the time for a write; the application sees a disconnect."""
    seen = []
    over = trio.Event()

    async def app(scope, receive, send):
        await receive()
        await send(START)
        start = trio.current_time()
        await send(_chunk(b"x" * 50_000_000))
        seen.append(trio.current_time() - start)
        seen.append(await receive())
        await send(_chunk(b"", more=False))
        over.set()

    host = await serve(app, write_timeout=30.0)
    client = await connect(host, receive_buffer=4096)
    await client.request()
    with trio.fail_after(100):
        await over.wait()
    assert seen == [pytest.approx(30), {"type": "http.disconnect"}]
    await trio.testing.wait_all_tasks_blocked()
    assert host.connections == 0


async def test_a_slow_reader_is_cut_off_and_a_steady_one_is_not(
    serve, connect, answer, autojump_clock
):
    """A few bytes at a time are no progress; enough of them are."""
    body = b"x" * 1_000_000

    async def app(scope, receive, send):
        await answer(send, body)

    host = await serve(app, write_timeout=30.0)
    for size, whole in ((1, False), (500_000, True)):
        client = await connect(host, receive_buffer=4096)
        await client.request()
        start, got = trio.current_time(), 0
        while trio.current_time() - start < 600 and host.connections:
            await trio.sleep(1)
            got += len(await client.stream.receive_some(size))
            if got > len(body):
                break
        assert (got > len(body)) is whole
        await trio.aclose_forcefully(client.stream)


async def test_an_application_that_gives_up_a_write_breaks_the_connection(
    serve, connect, autojump_clock
):
    """Half a chunk must not be taken for the start of the next."""
    over = trio.Event()

    async def app(scope, receive, send):
        await send(START)
        with trio.move_on_after(5):
            await send(_chunk(b"x" * 50_000_000))
        await send(_chunk(b"y", more=False))
        over.set()

    client = await connect(await serve(app), receive_buffer=4096)
    await client.request()
    await over.wait()
    assert not (await client.rest()).endswith(b"y")


async def test_what_is_sent_ahead_is_bounded(serve, connect, answer):
    """Requests beyond what is kept wait in the client; none is lost."""
    go_on = trio.Event()

    async def app(scope, receive, send):
        while (await receive())["more_body"]:
            pass
        await go_on.wait()
        await answer(send, b"1")

    client = await connect(await serve(app), receive_buffer=4096)
    one = b"POST / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 30_000 + b"\r\nContent-Length: 0\r\n\r\n"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.send, one * 400)
        with trio.move_on_after(0.3):
            await trio.sleep_forever()
        assert len(nursery.child_tasks) == 1
        go_on.set()
        for _ in range(400):
            assert await client.answer() == (200, b"1")


async def test_the_end_is_seen_behind_what_is_sent_ahead(serve, connect):
    """A client that goes while a second request waits is gone for the first one, too."""
    over = trio.Event()

    async def app(scope, receive, send):
        await receive()
        assert (await receive())["type"] == "http.disconnect"
        over.set()

    client = await connect(await serve(app))
    await client.request()
    await client.request()
    await trio.testing.wait_all_tasks_blocked()
    await client.stream.aclose()
    with trio.fail_after(10):
        await over.wait()
