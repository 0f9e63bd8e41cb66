"""Checks of the `Host` and `Origin` headers, against DNS rebinding and foreign web pages.

A page of any web site can make its visitor's browser send requests to a local server, and with DNS
rebinding read the answers (2025-11-25 `basic/transports`, "Security Warning").
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ....engine import ThrottledLog
from ....jsonrpc import INVALID_REQUEST
from ._asgi import HttpHeader, HttpRefusal, HttpRequest

#: Allows every host, or every origin.
ANY: Final = "*"
#: A name or an address, and a port. No other characters, which browsers may read differently.
_HOST: Final = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
#: The option for each header, in Python and on the command line.
_OPTIONS: Final = {
    "Host": "allowed_hosts (--allow-host)",
    "Origin": "allowed_origins (--allow-origin)",
}
#: A scheme, a name and a port, as browsers send it. Pages without an origin send `null`.
_ORIGIN: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?/?|null"
)
#: Headers of the answer to a preflight from an allowed origin, cached for 600 seconds.
_ALLOWED: Final[tuple[HttpHeader, ...]] = (
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (b"access-control-max-age", b"600"),
)
_HEADERS: Final = (
    b"Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method,"
    b" Mcp-Name, Last-Event-ID"
)
#: The name of a parameter header of a tool (RFC 9110 section 5.6.2), in lower case.
_PARAM: Final = re.compile(r"mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+")
#: Scripts can read other headers only if they are exposed; a client needs these two.
_EXPOSED: HttpHeader = (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate")
#: A cache must not return the answer for one origin to a page of another one.
_VARY: HttpHeader = (b"vary", b"Origin")


def is_host(text: str) -> bool:
    """Tell whether a text can be a `Host`, or a part of one."""
    return _HOST.fullmatch(text.lower()) is not None


def is_origin(text: str) -> bool:
    """Tell whether a text can be an `Origin`."""
    return _ORIGIN.fullmatch(text.lower()) is not None


class OriginCheck:
    """Checks `Host` and `Origin`.

    Args:
        hosts: The allowed hosts; see `HttpOptions`.
        origins: The allowed origins; see `HttpOptions`.
    """

    def __init__(self, hosts: Sequence[str], origins: Sequence[str]) -> None:
        # A page can repeat a bad request any number of times: logging is throttled per reason.
        self._throttled_log = ThrottledLog()
        self._latest: bytes | None = None
        self._any_host = ANY in hosts
        self._any_origin = ANY in origins
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check(self, http: HttpRequest) -> tuple[HttpHeader, ...]:
        """Check a request.

        Returns:
            Response headers that let an allowed page read the answer.

        Raises:
            HttpRefusal: The host is not allowed (421), or the origin is not allowed (403).
        """
        # Usually the same host as in the previous request, which was allowed.
        sent = http.headers.get(b"host", b"")
        if sent != self._latest:
            # Host names and the scheme of an origin are case-insensitive.
            host = (http.header(b"host") or "").lower()
            if not (self._any_host or _is_among(host, self._hosts)):
                # 421 "Misdirected Request" (RFC 9110 section 15.5.20). After DNS rebinding `Host`
                # has the name of the foreign page, whatever its address.
                raise self._refuse(421, http, "Host", host)
            self._latest = sent
        # Only browsers send it; a request without it is allowed. A bad one is answered with 403
        # (2025-11-25 `basic/transports`, "Security Warning").
        if b"origin" not in http.headers:
            return ()
        origin = http.header(b"origin") or ""
        if not self._may_ask(origin.lower()):
            raise self._refuse(403, http, "Origin", origin)
        return ((b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED, _VARY)

    def _may_ask(self, origin: str) -> bool:
        if self._any_origin or origin in self._origins:
            return True
        scheme, _, host = origin.partition("://")
        # A page of an allowed host calls its own origin.
        return scheme in ("http", "https") and _is_among(host, self._hosts)

    def _refuse(self, status: int, http: HttpRequest, name: str, value: str) -> HttpRefusal:
        about, option = (name, ascii(value[:200])), _OPTIONS[name]
        text = "refused a request from %s: its %s %s is not in %s"
        self._throttled_log.warning(about, text, http.client, *about, option)
        text = f"{name} {about[1]} is not served here; the server's setting {option} decides"
        return HttpRefusal(status, text, code=INVALID_REQUEST)


def preflight(http: HttpRequest, tokens: Iterable[str] = ()) -> tuple[HttpHeader, ...]:
    """Return the response headers of a CORS preflight.

    Args:
        http: The `OPTIONS` request, checked.
        tokens: Names of the headers with tokens, in lower case.
    """
    # The names of `Mcp-Param-*` depend on the tools, so every name that the browser requests is
    # allowed. `*` never includes `Authorization` (Fetch standard).
    asked = (http.header(b"access-control-request-headers") or "").lower().split(",")
    params = {name for each in asked if _PARAM.fullmatch(name := each.strip())}
    more = [*(name for name in tokens if name != "authorization"), *sorted(params)]
    names = b", ".join([_HEADERS, *(name.encode("latin-1") for name in more)])
    return (*_ALLOWED, (b"access-control-allow-headers", names))


def _is_among(host: str, allowed: frozenset[str]) -> bool:
    match = _HOST.fullmatch(host)
    return match is not None and (host in allowed or match[1] in allowed)
