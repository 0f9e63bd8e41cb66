"""Requests: what is accepted and refused, and how slowly clients may send."""

import sys

import pytest
import trio
import trio.testing

from noizu_mcp.transports import host

START = {"type": "http.response.start", "status": 200, "headers": []}
HOST = b"Host: x\r\n"


def _chunk(body, *, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


def _post(headers, body=b"", version=b"1.1"):
    return b"POST / HTTP/" + version + b"\r\n" + HOST + headers + b"\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked\r\n"


def _chunked(body):
    return _post(CHUNKED, body)


REFUSED = {
    "two empty lines": (b"\r\n\r\n", 400),
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "garbage without an end": (b"\x16\x03\x01", 400),
    "a method that nobody knows": (b"FOO / HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "a tunnel": (b"CONNECT x:80 HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "a method with a space": (b" GET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "two spaces in the request line": (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a tab in the request line": (b"GET\t/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a space after the version": (b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n", 400),
    "a fragment": (b"GET /#a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a target that is no path": (b"GET a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a target with another scheme": (b"GET ftp://x/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a star for GET": (b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no version": (b"GET /\r\n" + HOST + b"\r\n", 400),
    "a version in small letters": (b"GET / http/1.1\r\n" + HOST + b"\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (_post(HOST), 400),
    "two different hosts": (_post(b"Host: y\r\n"), 400),
    "a list of hosts": (b"GET / HTTP/1.1\r\nHost: x, y\r\n\r\n", 400),
    "a host with a user": (b"GET / HTTP/1.1\r\nHost: a@x\r\n\r\n", 400),
    "a host with a path": (b"GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", 400),
    "two hosts in HTTP/1.0": (_post(HOST, version=b"1.0"), 400),
    "version 2": (_post(b"", version=b"2.0"), 505),
    "version 1.2": (_post(b"", version=b"1.2"), 505),
    "version 0.9": (_post(b"", version=b"0.9"), 505),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "a space before the colon": (_post(b"X : 1\r\n"), 400),
    "a tab before the colon": (_post(b"X\t: 1\r\n"), 400),
    "a space in a name": (_post(b"X Y: 1\r\n"), 400),
    "a length behind a space": (_post(b"Content-Length : 5\r\n", b"12345"), 400),
    "a coding behind a control character": (_post(b"\x0bTransfer-Encoding: chunked\r\n"), 400),
    "an empty name": (_post(b": 1\r\n"), 400),
    "a line without a colon": (_post(b"X\r\n"), 400),
    "a name that is no token": (_post(b"(X): 1\r\n"), 400),
    "a name with a byte beyond ASCII": (_post(b"X\xe4: 1\r\n"), 400),
    "a control character": (_post(b"X: \x01\r\n"), 400),
    "a null": (_post(b"X: \0\r\n"), 400),
    "DEL": (_post(b"X: \x7f\r\n"), 400),
    "a bare CR": (_post(b"X: 1\rY: 2\r\n"), 400),
    "a bare CR at the end": (_post(b"X: 1\r\r\n"), 400),
    "a bare LF": (_post(b"X: 1\nY: 2\r\n"), 400),
    "only bare LFs": (b"GET / HTTP/1.1\nHost: x\n\n", 400),
    "a bare LF at the end of the head": (b"GET / HTTP/1.1\r\nHost: x\r\n\n", 400),
    "a folded line": (_post(b"X: 1\r\n 2\r\n"), 400),
    "a folded line with a tab": (_post(b"X: 1\r\n\t2\r\n"), 400),
    "a folded coding": (_post(b"Transfer-Encoding:\r\n chunked\r\n", b"0\r\n\r\n"), 400),
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
    "a user in the target of HTTP/1.0": (b"GET http://a@x/ HTTP/1.0\r\n\r\n", 400),
    "a signed length": (_post(b"Content-Length: +1\r\n", b"1"), 400),
    "a negative length": (_post(b"Content-Length: -1\r\n", b"1"), 400),
    "a length in hex": (_post(b"Content-Length: 0x1\r\n", b"1"), 400),
    "a length in letters": (_post(b"Content-Length: ten\r\n"), 400),
    "an empty length": (_post(b"Content-Length:\r\n"), 400),
    "a length with a space in it": (_post(b"Content-Length: 1 0\r\n", b"0123456789"), 400),
    "a length that overflows": (_post(b"Content-Length: 18446744073709551617\r\n", b"1"), 400),
    "two codings": (_post(CHUNKED + CHUNKED, b"0\r\n\r\n"), 400),
    "chunked twice": (_post(b"Transfer-Encoding: chunked, chunked\r\n", b"0\r\n\r\n"), 400),
    "chunked, but not last": (_post(b"Transfer-Encoding: chunked, gzip\r\n", b"0\r\n\r\n"), 400),
    "no coding": (_post(b"Transfer-Encoding:\r\n"), 400),
    "almost chunked": (_post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"), 400),
    "identity": (_post(b"Transfer-Encoding: identity\r\n"), 400),
    "chunked with a parameter": (_post(b"Transfer-Encoding: chunked;a\r\n", b"0\r\n\r\n"), 400),
    "an unknown coding": (_post(b"Transfer-Encoding: gzip, chunked\r\n"), 501),
    "a coding in HTTP/1.0": (_post(CHUNKED, b"0\r\n\r\n", version=b"1.0"), 400),
    "a chunk without a size": (_chunked(b"\r\n1\r\n"), 400),
    "a chunk of a negative size": (_chunked(b"-1\r\n1\r\n"), 400),
    "a chunk size with a sign": (_chunked(b"+1\r\n1\r\n"), 400),
    "a chunk size with a prefix": (_chunked(b"0x1\r\n1\r\n"), 400),
    "a chunk size with an underscore": (_chunked(b"1_0\r\n0123456789abcdef\r\n"), 400),
    "a chunk size before a space": (_chunked(b"1 \r\n1\r\n0\r\n\r\n"), 400),
    "a chunk size behind a space": (_chunked(b" 1\r\n1\r\n0\r\n\r\n"), 400),
    "a chunk size of many digits": (_chunked(b"0" * 15 + b"1\r\n1\r\n0\r\n\r\n"), 400),
    "a chunk size that overflows": (_chunked(b"10000000000000001\r\n1\r\n0\r\n\r\n"), 400),
    "a chunk too long for its size": (_chunked(b"1\r\n12\r\n"), 400),
    "a bare LF after a chunk size": (_chunked(b"1\n1\r\n0\r\n\r\n"), 400),
    "a bare CR after a chunk size": (_chunked(b"1\r1\r\n0\r\n\r\n"), 400),
    "a bare LF after a chunk": (_chunked(b"1\r\n1\n0\r\n\r\n"), 400),
    "a bare LF after the last chunk": (_chunked(b"0\n\r\n"), 400),
    "a bare LF at the end of the chunks": (_chunked(b"0\r\n\n"), 400),
    "an extension without a name": (_chunked(b"1;\r\n1\r\n0\r\n\r\n"), 400),
    "an extension without a value": (_chunked(b"1;a=\r\n1\r\n0\r\n\r\n"), 400),
    "an extension behind a space": (_chunked(b"1 ;a\r\n1\r\n0\r\n\r\n"), 400),
    "an extension with an open quote": (_chunked(b'1;a="b\r\n1\r\n0\r\n\r\n'), 400),
    "an extension with a bare CR": (_chunked(b"1;a\rb\r\n1\r\n0\r\n\r\n"), 400),
    "an extension with a bare LF": (_chunked(b"1;a\nb\r\n1\r\n0\r\n\r\n"), 400),
    "a bare LF within quotes": (_chunked(b'1;a="\n"\r\n1\r\n0\r\n\r\n'), 400),
    "an extension that is long": (_chunked(b"1;" + b"a" * 255 + b"\r\n1\r\n0\r\n\r\n"), 400),
    "an extension without an end": (_chunked(b"1;" + b"a" * 1000), 400),
    "a trailer without a colon": (_chunked(b"0\r\nX\r\n\r\n"), 400),
    "a trailer with a space": (_chunked(b"0\r\nX : 1\r\n\r\n"), 400),
    "a trailer with a bare LF": (_chunked(b"0\r\nX: a\n\n"), 400),
    "a trailer with a bare CR": (_chunked(b"0\r\nX: a\rb\r\n\r\n"), 400),
    "a folded trailer": (_chunked(b"0\r\nX: a\r\n b\r\n\r\n"), 400),
    "trailers that are long": (_chunked(b"0\r\n" + b"X: 1234567\r\n" * 400 + b"\r\n"), 400),
    "a trailer that is long": (_chunked(b"0\r\nX: " + b"1" * 5000 + b"\r\n\r\n"), 400),
    "a head too large": (_post(b"X: " + b"x" * 40_000 + b"\r\n"), 431),
    "a head too large, without an end": (b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000, 431),
    "too many headers": (_post(b"".join(b"X%d: 1\r\n" % each for each in range(200))), 431),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_can_be_misread_is_refused(serve, connect, echo, caplog, name):
    """It gets one response with its status, the connection ends, and nothing is logged."""
    data, status = REFUSED[name]
    client = await connect(await serve(echo))
    # The bytes after it must never be taken for a request.
    await client.send(data + b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
    rest = await client.rest()
    assert rest.startswith(b"HTTP/1.1 %d " % status)
    assert rest.count(b"HTTP/1.1") == 1
    assert b"connection: close" in rest
    assert caplog.records == []


async def test_a_refusal_after_the_answer_has_begun_ends_the_connection(serve, connect):
    """A bad chunk during a streamed response causes a disconnect, and no second response."""
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
    """The refusal is the response; what the application sends later is dropped silently."""
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
    """Extensions, trailers and any splitting are accepted, and another request follows."""
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
    """A target in absolute form is for proxies; the application gets its path, and `Host`."""
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


async def test_a_body_in_crumbs_is_refused(serve, connect, echo):
    """Many chunks are accepted, and more than 16,384 small ones are not."""
    most = 16 * 1024
    host = await serve(echo)
    client = await connect(host)
    for _ in range(2):
        await client.send(_post(CHUNKED, b"1\r\nx\r\n" * most + b"0\r\n\r\n"))
        assert await client.answer() == (200, b"x" * most)
    await client.send(_post(CHUNKED, (b"40\r\n" + b"x" * 64 + b"\r\n") * (most + 1) + b"0\r\n\r\n"))
    assert await client.answer() == (200, b"x" * 64 * (most + 1))
    await client.send(_post(CHUNKED, b"1\r\nx\r\n" * (most + 1)))
    rest = await client.rest()
    assert rest.startswith(b"HTTP/1.1 400")
    assert rest.count(b"HTTP/1.1") == 1


ACCEPTED = {
    "an empty line before": (b"\r\n" + _post(b"Content-Length: 1\r\n", b"1"), b"1"),
    "white space around values": (_post(b"Content-Length:\t 1 \t\r\nX:  a \r\n", b"1"), b"1"),
    "values beyond ASCII": (_post(b"X: \xe4\r\nContent-Length: 1\r\n", b"1"), b"1"),
    "an empty host": (b"POST / HTTP/1.1\r\nHost:\r\nContent-Length: 1\r\n\r\n1", b"1"),
    "an address": (b"POST / HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 1\r\n\r\n1", b"1"),
    "an asterisk": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1", b"1"),
    "headers that repeat": (_post(b"Connection: a\r\nConnection: b\r\nX: 1\r\nX: 2\r\n"), b""),
    "a coding in large letters": (_post(b"TRANSFER-ENCODING: Chunked\r\n", b"0\r\n\r\n"), b""),
    "a size with zeros": (_chunked(b"0001\r\n1\r\n000\r\n\r\n"), b"1"),
    "sizes in hex": (
        _chunked(b"a\r\n0123456789\r\nB\r\n01234567890\r\n0\r\n\r\n"),
        b"0123456789" * 2 + b"0",
    ),
    "an extension": (_chunked(b"1;a\r\n1\r\n0;b;c=d\r\n\r\n"), b"1"),
    "an extension in quotes": (_chunked(b'1;a="b;\\"\t\\\\";c\r\n1\r\n0\r\n\r\n'), b"1"),
    "trailers": (_chunked(b"1\r\n1\r\n0\r\nX: 1\r\nContent-Length: 5\r\nY:\r\n\r\n"), b"1"),
}


@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.parametrize("step", [1, 7, 10_000])
async def test_a_request_is_read_however_it_is_cut(serve, connect, echo, name, step):
    """However its bytes are split, a request gets one response, and the next one is found."""
    data, body = ACCEPTED[name]
    client = await connect(await serve(echo))
    for start in range(0, len(data), step):
        await client.send(data[start : start + step])
        await trio.testing.wait_all_tasks_blocked()
    assert await client.answer() == (200, body)
    await client.request(b"next")
    assert await client.answer() == (200, b"next")


@pytest.mark.parametrize(
    "last", [b"Connection: close", b"connection: x , Close", b"Connection: x ,\tclose", None]
)
async def test_the_last_request_is_answered_whatever_follows_it(serve, connect, echo, last):
    """Stray bytes after it are not a request, and no reason to refuse it."""
    client = await connect(await serve(echo))
    version, line = (b"1.1", last + b"\r\n") if last else (b"1.0", b"")
    await client.send(_post(b"Content-Length: 1\r\n" + line, b"1", version))
    await client.send(b"stray\n\n\x00" + _post(b"Content-Length: 0\r\n"))
    rest = await client.rest()
    assert rest.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nconnection: close\r\n" in rest
    assert rest.endswith(b"\r\n\r\n1")
    assert rest.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "beginning",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01", b"SSH-2.0-x\n", b"GET / HTTP/1.1\nHost", b"A\rB\r"],
)
async def test_another_protocol_is_refused_at_once(serve, connect, echo, beginning):
    """A TLS client on the port is refused without waiting for the deadline of a head."""
    client = await connect(await serve(echo, header_timeout=1000.0))
    await client.send(beginning)
    assert (await client.rest()).startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_http_1_0_is_served(serve, connect, echo):
    """The connection of an HTTP/1.0 client is closed after the response."""
    client = await connect(await serve(echo))
    await client.send(b"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\n1")
    assert (await client.rest()).endswith(b"\r\n\r\n1")


async def test_the_library_may_be_missing(monkeypatch, echo):
    """The error says what to install, before anything is opened."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.transports.host._connection", None)
    monkeypatch.delattr(host, "_connection", raising=False)
    with pytest.raises(ImportError, match=r"needs httptools: pip install 'noizu-mcp\[http\]'"):
        await host.serve_asgi(echo)


async def test_a_slow_head_is_ended(serve, connect, echo, autojump_clock):
    """The deadline of a head does not move with each byte, on new and on reused connections."""
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
    """A connection is closed if it is idle for too long, before or after a request."""
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
    """A body below the minimum rate causes a disconnect; then the connection ends."""

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
    # Each byte was worth half a millisecond.
    assert trio.current_time() - start == pytest.approx(30, abs=0.1)
    await client.stream.aclose()


@pytest.mark.parametrize("begun", [False, True])
async def test_a_slow_body_is_answered_for(serve, connect, read_body, begun, autojump_clock):
    """If the application does not answer a disconnect, the host does not send 408 either."""

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
    """Bytes after the deadline are dropped; the slot is free once the client has gone."""
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
    """The rate counts, not the total time."""
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
    """After `write_timeout` the connection is closed, and the application gets a disconnect."""
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
    """A few bytes at a time are too slow; enough of them are not."""
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
    """A cancelled write ends the connection, so that half a chunk is not read as the next one."""
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
    """Pipelined requests beyond the buffer wait at the client; none is lost."""
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
    """A disconnect behind a pipelined request is seen by the first request."""
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
    with trio.fail_after(60):
        await over.wait()


async def test_an_application_may_change_the_headers_of_its_scope(serve, connect, answer):
    """A changed list of headers does not change a later request with the same head."""

    async def app(scope, receive, send):
        count = len(scope["headers"])
        scope["headers"].append((b"x-more", b"1"))
        await answer(send, b"%d" % count)

    client = await connect(await serve(app))
    for _ in range(3):
        await client.request()
        assert await client.answer() == (200, b"2")


@pytest.mark.parametrize("size", [1, 4000])
async def test_heads_that_differ_are_told_apart(serve, connect, answer, size):
    """Each request gets its own target and headers, also where heads are alike or long."""

    async def app(scope, receive, send):
        value = dict(scope["headers"])[b"x"]
        await answer(send, b"%b %b" % (scope["raw_path"], value[-1:]))

    client = await connect(await serve(app))
    for path, value in [(b"/a", b"1"), (b"/b", b"1"), (b"/a", b"2"), (b"/a", b"1")]:
        padded = value.rjust(size, b"0")
        await client.send(b"GET %b HTTP/1.1\r\nHost: y\r\nX: %b\r\n\r\n" % (path, padded))
        assert await client.answer() == (200, path + b" " + value)
