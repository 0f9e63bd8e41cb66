"""Requests drawn from a grammar in which every piece is well-formed or ambiguous.

A request of well-formed pieces is answered, and so is the request after it. One ambiguous piece
causes a refusal and the end of the connection: the bytes after it are never taken for a request.
"""

import tempfile
from functools import partial

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.transports.host import HostOptions, serve_asgi

SECOND = b"GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def _pick(good, bad):
    """Make two strategies for a piece: for well-formed ones and for ambiguous ones."""
    return st.sampled_from(good), st.sampled_from(bad)


END = _pick([b"\r\n"], [b"\n", b"\r", b"\r\r\n", b"\n\r\n", b" \n"])
LINE = _pick(
    [b"POST /first HTTP/1.1", b"PUT http://x/first HTTP/1.1", b"\r\nPOST /first?a=b HTTP/1.1"],
    [
        *(b"POST  /first HTTP/1.1", b"POST /first HTTP/1.1 x", b"POST /fi\x00rst HTTP/1.1"),
        *(b"POST /first", b"\nPOST /first HTTP/1.1", b"POST\t/first HTTP/1.1"),
        *(b"POST http://y/first HTTP/1.1", b"POST /first HTTP/2.0", b"\x80 /first HTTP/1.1"),
    ],
)
HEADER = _pick(
    [b"X: 1", b"x-y:", b"Accept: \xff", b"Z:\t1 \t", b"Connection: keep-alive", b"TE: trailers"],
    [
        *(b"X : 1", b"X\x00: 1", b" X: 1", b"X", b": 1", b"X: \x01", b"X: 1\r 2", b"Host: y"),
        *(b"Content-Length: 3, 3", b"Transfer-Encoding: identity", b"Content-Length : 1"),
        *(b"Transfer-Encoding\t: chunked", b"X: 1\r\n\tTransfer-Encoding: chunked", b"Host: x"),
    ],
)
LENGTH = _pick(
    [b"Content-Length: 5", b"content-length:5", b"Content-Length: 05"],
    [
        *(b"Content-Length: +5", b"Content-Length: 5 5", b"Content-Length: 0x5"),
        *(b"Content-Length: -5", b"Content-Length: 5\r\nContent-Length: 5", b"Content-Length: 5,"),
        *(b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"Content-Length: \x0b5"),
    ],
)
CODING = _pick(
    [b"Transfer-Encoding: chunked", b"transfer-encoding:  CHUNKED "],
    [
        *(b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: \x0bchunked"),
        *(b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"Transfer-Encoding: x"),
        *(
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            b"Transfer-Encoding: ,chunked",
        ),
    ],
)
EXTENSION = _pick(
    [b"", b"", b";a", b";a=b", b';a="b;\\"c"'],
    [b";", b" ", b";a=", b" ;a", b';a="', b";a\nb", b";a\rb", b";" + b"a" * 300, b"\t", b";\x00"],
)
SIZE = _pick([b"3", b"03"], [b"", b"-3", b"+3", b"0x3", b"3_", b"3 ", b"3g", b"0" * 20 + b"3"])
TRAILER = _pick([b"X: 1", b"Y:", b"Host: y"], [b"X", b"X : 1", b" X: 1", b": 1", b"X: \x00"])


@st.composite
def _requests(draw):
    """Draw a request: its bytes, whether it is well-formed, and its body."""
    data, count = bytearray(), 0
    # At most one ambiguous piece: two may be well-formed together, like CR and LF.
    ambiguous = draw(st.integers(-5, 25))

    def add(*pieces):
        nonlocal count
        for good, bad in pieces:
            data.extend(draw(bad if count == ambiguous else good))
            count += 1

    add(LINE, END)
    data.extend(b"Host: x\r\n")
    for _ in range(draw(st.integers(0, 3))):
        add(HEADER, END)
    if draw(st.booleans()):
        add(LENGTH, END, END)
        data.extend(b"12345")
        return bytes(data), not 0 <= ambiguous < count, b"12345"
    add(CODING, END, END)
    chunks = draw(st.integers(0, 3))
    for _ in range(chunks):
        add(SIZE, EXTENSION, END)
        data.extend(b"abc")
        add(END)
    data.extend(b"0")
    add(EXTENSION, END)
    for _ in range(draw(st.integers(0, 2))):
        add(TRAILER, END)
    add(END)
    return bytes(data), not 0 <= ambiguous < count, b"abc" * chunks


async def _talk(data, cuts):
    """Send bytes in pieces; return the responses and the requests that the application received."""
    seen = []

    async def app(scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        seen.append((scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    # A socket path, not a port: a client of another program may still try a port.
    with tempfile.TemporaryDirectory() as folder:
        return await _exchange(app, f"{folder}/s", data, cuts), seen


async def _exchange(app, path, data, cuts):
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_asgi, app, config=HostOptions(uds=path)))
        stream = await trio.open_unix_socket(path)
        got = bytearray()
        async with stream:
            with trio.fail_after(60):
                try:
                    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                        await stream.send_all(data[start:end])
                        await trio.lowlevel.checkpoint()
                    await stream.send_eof()
                except trio.BrokenResourceError:
                    pass  # refused already
                try:
                    while part := await stream.receive_some():
                        got += part
                except trio.BrokenResourceError:
                    pass
        host.stop()
    return bytes(got)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(_requests(), st.data())
def test_one_ambiguous_piece_is_enough(request_, data):
    """Well-formed requests are answered; after an ambiguous piece none is."""
    first, fine, body = request_
    sent = first + SECOND
    cuts = sorted(data.draw(st.sets(st.integers(1, len(sent) - 1), max_size=4)))
    got, seen = trio.run(_talk, sent, cuts)
    if fine:
        assert seen == [("/first", body), ("/second", b"")]
        assert got.count(b"HTTP/1.1 200 OK\r\n") == 2
    else:
        assert "/second" not in [path for path, _ in seen]
        assert got.count(b"HTTP/1.1 ") <= 1
        assert b"HTTP/1.1 200" not in got


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", b"POST / HTTP/1.1\r\nHost: x\r\n"]))
def test_no_bytes_disturb_a_host(data, head):
    """There is at most one refusal, and the host ends normally."""
    got, _ = trio.run(_talk, head + data + b"\r\n\r\n", [])
    assert got.count(b"HTTP/1.1 4") <= 1
