"""`Http`: a server as a URL, and what goes along with every request to it."""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from .._value import Value

Headers = Mapping[str, str]
#: Called before each request: credentials that change are looked up when they are needed.
HeadersFactory = Callable[[], Awaitable[Headers]]
#: Seconds to connect: it covers the name, TCP and TLS.
CONNECT_TIMEOUT: Final = 10.0


def _parts(url: Any) -> Any:
    if not isinstance(url, str):
        raise TypeError(f"a URL must be text, got {url!r}")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"a URL must begin with http:// or https:// and a host: {url[:200]!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL must hold no credentials; put them into headers")
    if parts.fragment:
        raise ValueError("a URL of a server has no #fragment")
    return parts


def _check_headers(headers: Any) -> Any:
    if headers is None or callable(headers):
        return headers
    for name, value in dict(headers).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"headers must be text: {name!r}")
    return dict(headers)


@attrs.frozen(init=False, eq=False, repr=False)
class Http(Value):
    """A server that is spoken to over Streamable HTTP.

    Args:
        url: Its one URL, `https://api.example.com/mcp`.
        headers: Sent with every request, or an async function that gives them for each one. Those
            that the protocol needs are added.
        connect_timeout: Seconds to connect.
        tls: How its certificate is checked; None: against the authorities that the system trusts.

    Raises:
        TypeError: Something in it is no text.
        ValueError: It is no URL of a server, or holds credentials.
    """

    url: str
    headers: Headers | HeadersFactory | None
    connect_timeout: float
    tls: ssl.SSLContext | None

    def __init__(
        self,
        url: str,
        *,
        headers: Headers | HeadersFactory | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        _parts(url)
        self.__attrs_init__(url, _check_headers(headers), connect_timeout, tls)

    def __repr__(self) -> str:
        return f"Http({self.shown!r})"

    @property
    def shown(self) -> str:
        """The URL for messages: what follows the path may be secret, as headers may."""
        parts = _parts(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    async def current_headers(self) -> Headers:
        """Give the headers of the next request."""
        if callable(self.headers):
            return await self.headers()
        return self.headers or {}
