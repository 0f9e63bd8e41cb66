"""The head of a request: parsed by llhttp, after every ambiguous form is refused.

A proxy in front of the host may find other boundaries between requests than the host does, and then
lets a second request pass inside of the first one (RFC 9112 section 11.2, request smuggling). So
every head that two parsers could read differently is refused: its sender is an attacker, or broken.
llhttp alone is not strict enough; the checks before and after it enforce the rules of RFC 9112
sections 2.2, 3, 5 and 6.
"""

import re
from typing import Final
from urllib.parse import unquote

import httptools

#: HTTP statuses of refusals (RFC 9110 section 15.5; RFC 6585 for 431).
BAD_REQUEST: Final = 400
TOO_LARGE: Final = 431
NOT_IMPLEMENTED: Final = 501
VERSION_NOT_SUPPORTED: Final = 505
#: Maximum headers of one request. Each takes more memory than its bytes on the wire, so a limit on
#: bytes is not enough; browsers and proxies send about forty.
MAX_HEADERS: Final = 200

#: A request line with single spaces (RFC 9112 section 3), and a target without a fragment.
_REQUEST_LINE: Final = re.compile(
    rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!\"$-~]+) HTTP/([0-9]\.[0-9])\r\n"
)
_ABSOLUTE_FORM: Final = re.compile(rb"https?://([^/?]+)(.*)", re.IGNORECASE)
#: The characters of a host and a port (RFC 3986 section 3.2). A comma would make it a list.
_HOST: Final = re.compile(rb"[A-Za-z0-9._~%!$&'()*+;=:\[\]-]*")
#: All bytes except the control characters, which some parsers take for line ends (RFC 9110 section
#: 5.5).
_TEXT: Final = bytes(each for each in range(256) if each == 9 or 32 <= each != 127)  # 9: a tab
#: Headers that the host interprets.
_MEANINGFUL: Final = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"connection", b"expect"}
)
#: Interpreted headers that are lists, and may be repeated.
_LISTS: Final = (b"connection", b"expect")


class BadRequest(Exception):
    """Bytes that are not an acceptable request. Nothing after them can be trusted.

    Args:
        status: The HTTP status of the answer, after which the connection closes.
    """

    def __init__(self, status: int = BAD_REQUEST) -> None:
        super().__init__(status)
        self.status = status


class RequestHead:
    """The parsed head of a request; also the object to which llhttp reports its headers.

    Args:
        data: A head, including the empty line at its end.

    Attributes:
        method: The method.
        version: `1.1` or `1.0`.
        path: The path of its target, decoded.
        raw_path: The same, as sent.
        query: The query of its target, as sent.
        headers: The headers, with names in lower case and values without surrounding white space.
        length: Bytes of the body; None if it is chunked.
        closes: True if the client wants the connection to close after the answer.
        expects_continue: True if the client waits for `100 Continue` before it sends the body.

    Raises:
        BadRequest: It is malformed or ambiguous, or uses a feature that is not implemented.
    """

    def __init__(self, data: bytes) -> None:
        line = _REQUEST_LINE.match(data)
        if line is None or not _is_clean(data):
            raise BadRequest
        method, target, version = line.groups()
        if version not in (b"1.1", b"1.0"):
            raise BadRequest(VERSION_NOT_SUPPORTED)
        self.method = method.decode("ascii")
        self.version = version.decode("ascii")
        self.headers: list[tuple[bytes, bytes]] = []
        self._complete = False
        self._parse(data)
        self._frame()
        if target[0] != 0x2F:  # a slash
            target = self._without_host(target)
        raw_path, _, query = target.partition(b"?")
        self.raw_path: bytes = raw_path
        self.query: bytes = query
        path = raw_path.decode("ascii")
        self.path = unquote(path) if "%" in path else path

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; called by llhttp."""
        self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Record that llhttp has found the end of the head."""
        self._complete = True

    def _parse(self, data: bytes) -> None:
        try:
            httptools.HttpRequestParser(self).feed_data(data)
        except httptools.HttpParserUpgrade:
            # A server may ignore an upgrade (RFC 9110 section 7.8), as this one does: WebSocket and
            # h2c would bypass the rules of a proxy.
            pass
        except httptools.HttpParserInvalidMethodError:
            raise BadRequest(NOT_IMPLEMENTED) from None
        except httptools.HttpParserError:
            raise BadRequest from None
        # One header per line, so no header was folded (RFC 9112 section 5.2).
        if not self._complete or len(self.headers) != data.count(b"\n") - 2:
            raise BadRequest
        if len(self.headers) > MAX_HEADERS:
            raise BadRequest(TOO_LARGE)
        if self.method == "CONNECT":
            raise BadRequest(NOT_IMPLEMENTED)  # this is not a proxy

    def _frame(self) -> None:
        """Find the length of the body, and whether the connection stays open."""
        seen, is_old = dict(self.headers), self.version == "1.0"
        if len(seen) < len(self.headers):
            self._join_repeated(seen)
        host = seen.get(b"host")
        # RFC 9112 section 3.2: each request of HTTP/1.1 must name its host.
        if _HOST.fullmatch(host or b"") is None or (host is None and not is_old):
            raise BadRequest
        coding = seen.get(b"transfer-encoding")
        if coding is None:
            self.length: int | None = int(seen.get(b"content-length", b"0"))
        elif is_old:
            raise BadRequest  # HTTP/1.0 has no transfer codings (RFC 9112 section 6.1)
        elif coding.lower() == b"chunked":
            self.length = None
        else:
            raise BadRequest(NOT_IMPLEMENTED)  # llhttp has refused everything except `…, chunked`
        options = seen.get(b"connection", b"").lower()
        # White space around an option is spaces and tabs (RFC 9110 section 5.6.1).
        self.closes = is_old or (
            b"close" in options and b"close" in options.translate(None, b" \t").split(b",")
        )
        expected = seen.get(b"expect", b"").lower()
        self.expects_continue = expected == b"100-continue" and self.length != 0 and not is_old

    def _join_repeated(self, seen: dict[bytes, bytes]) -> None:
        for name in _MEANINGFUL & seen.keys():
            values = [value for each, value in self.headers if each == name]
            if len(values) > 1 and name not in _LISTS:
                # Two lengths or codings, even equal ones, or two hosts: parsers differ in which one
                # they use (RFC 9112 sections 3.2 and 6.3).
                raise BadRequest
            seen[name] = b",".join(values)

    def _without_host(self, target: bytes) -> bytes:
        """Remove the host from a target in absolute form (RFC 9112 section 3.2.2).

        It must equal `Host`. A server should ignore that header then, but a proxy in front, or
        later code, may not: two different hosts are refused.
        """
        if target == b"*" and self.method == "OPTIONS":
            return target
        match = _ABSOLUTE_FORM.fullmatch(target)
        if match is None:
            raise BadRequest
        host, rest = match.groups()
        named = dict(self.headers).get(b"host")
        if named is None:  # HTTP/1.0
            if _HOST.fullmatch(host) is None:
                raise BadRequest
            self.headers.insert(0, (b"host", host))
        elif named.lower() != host.lower():
            raise BadRequest
        return rest if rest.startswith(b"/") else b"/" + rest


def check_beginning(data: bytes) -> None:
    """Refuse the start of a head if it cannot become acceptable.

    Clients that speak TLS or another protocol then need not wait for the deadline.

    Raises:
        BadRequest: It cannot be the start of a head.
    """
    # The last byte may be the first half of a line end. A folded line is one header for some
    # parsers and two for others (RFC 9112 section 5.2).
    lines = data.removesuffix(b"\r")
    if data[:1] in b"\r\n" or not _is_clean(lines) or b"\n " in lines or b"\n\t" in lines:
        raise BadRequest


def _is_clean(data: bytes) -> bool:
    """Tell whether bytes have no control characters except complete line ends."""
    return len(data.translate(None, _TEXT)) == 2 * data.count(b"\r\n")
