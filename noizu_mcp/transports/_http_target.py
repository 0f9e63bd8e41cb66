"""`Http`: a server given by its URL, with headers and TLS settings."""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

import attrs

from .._value import Value

if TYPE_CHECKING:
    import httpcore2

TargetHeaders = Mapping[str, str]
#: Called before each request, so that credentials can change.
HeadersFactory = Callable[[], Awaitable[TargetHeaders]]
#: Seconds to connect, including name resolution, TCP and TLS.
CONNECT_TIMEOUT: Final = 10.0


def _split(url: Any) -> Any:
    if not isinstance(url, str):
        raise TypeError(f"url must be a string, not {url!r}")
    try:
        parts = urlsplit(url)
        # `urlsplit` accepts any port; this raises if it is not a number up to 65535.
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"a URL must begin with http:// or https:// and a host: {url[:200]!r}")
    # URLs are shown in logs and errors, so they must not contain credentials.
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL must not contain credentials; put them into headers")
    if parts.fragment:
        raise ValueError("the URL of a server must not have a #fragment")
    return parts


def _check_headers(headers: Any) -> Any:
    if headers is None or callable(headers):
        return headers
    for name, value in dict(headers).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"headers must map strings to strings; {name!r} does not")
    # A copy: the caller may change the mapping while connections are open.
    return dict(headers)


@attrs.frozen(init=False, eq=False, repr=False)
class Http(Value):
    """A server on Streamable HTTP.

    Args:
        url: The URL of its endpoint, `https://api.example.com/mcp`.
        headers: Headers of every request, or an async function that is called before each request
            and returns them. Headers of the protocol have priority.
        connect_timeout: Maximum seconds to connect.
        tls: Verifies the certificate of the server; None for the authorities that the system
            trusts.

    Raises:
        TypeError: The URL, or a header, is not a string.
        ValueError: The URL is not an HTTP URL, or contains credentials or a fragment.
    """

    url: str
    headers: TargetHeaders | HeadersFactory | None
    connect_timeout: float
    tls: ssl.SSLContext | None

    #: Opens the connections; None for TCP. Test kits have another one.
    network: ClassVar["httpcore2.AsyncNetworkBackend | None"] = None

    def __init__(
        self,
        url: str,
        *,
        headers: TargetHeaders | HeadersFactory | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        _split(url)
        self.__attrs_init__(url, _check_headers(headers), connect_timeout, tls)

    def __repr__(self) -> str:
        return f"Http({self.shown!r})"

    @property
    def shown(self) -> str:
        """The URL for error messages and logs, without its query, which may be secret."""
        parts = _split(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"
