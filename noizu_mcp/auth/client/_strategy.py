"""The interface between the HTTP client and credentials, and `Bearer`, the simplest strategy.

`connect(url, auth=strategy)` binds the strategy to the server, once. The resulting credentials
return headers for each request, and get better headers after a refusal.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, runtime_checkable
from urllib.parse import urlsplit

import attrs

from .._challenge import AuthChallenge
from .._configuration import check_url, read_text

#: Characters of a token in a header (RFC 6750 section 2.1).
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


@attrs.frozen
class ProtectedServer:
    """The MCP server that credentials are for.

    Attributes:
        url: The URL of its endpoint, with query.
        tls: Verifies its certificate; None for the authorities of the system.
    """

    url: str
    tls: ssl.SSLContext | None = None

    @property
    def origin(self) -> str:
        """Scheme, host and port: `https://api.example.com`."""
        return origin_of(self.url)

    @property
    def shown(self) -> str:
        """The URL without the query, which may be secret."""
        return self.url.partition("?")[0]


@attrs.frozen
class ClientRequest:
    """An HTTP request to the server that is about to be sent.

    Attributes:
        method: `POST`, `GET` or `DELETE`.
        url: The URL, with query.
    """

    method: str
    url: str


@attrs.frozen(kw_only=True)
class Refusal:
    """The answer 401 or 403 to a request, which the server has not processed.

    Attributes:
        request: The request.
        status: 401 or 403.
        challenges: The challenges of `WWW-Authenticate`; empty if it is missing or malformed.
        headers: All headers of the answer; names are case-insensitive.
        sent: The headers that the credentials gave for the request, names in lower case. If they
            are older than the current headers, the request can be sent again at once.
        operation: The subject of the request, such as `tools/call echo`; for counting attempts.
        attempt: The number of refusals of this request, from 1.
        pause: Stops the timeouts of the client's requests while its block runs; credentials use it
            to wait for a person, and for nothing else.
    """

    request: ClientRequest
    status: int
    challenges: tuple[AuthChallenge, ...] = ()
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    sent: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    operation: str = ""
    attempt: int = 1
    pause: Callable[[], AbstractContextManager[object]] = attrs.field(
        default=nullcontext, repr=False
    )

    def challenge(self, scheme: str = "Bearer") -> AuthChallenge | None:
        """Find the first challenge of a scheme, or None."""
        return next((each for each in self.challenges if each.is_scheme(scheme)), None)


class Credentials(Protocol):
    """The credentials of one client at one server.

    The client never runs the methods concurrently. Each must end by itself; its task is cancelled
    when the request times out. An optional third method, `note_answer(url, headers)`, is called
    with each answer.
    """

    async def headers(self, request: ClientRequest) -> Mapping[str, str]:
        """Return the headers of a request; called before each one.

        It must not ask a person. Without a valid token it returns no header: the server then
        answers with a challenge.

        Args:
            request: The request, at the origin of the bound server.

        Returns:
            Names and values, such as `{"Authorization": "Bearer …"}`.

        Raises:
            AuthError: No credentials can be obtained.
        """

    async def handle(self, refusal: Refusal) -> bool:
        """Get better credentials after a refusal.

        Args:
            refusal: The answer of the server.

        Returns:
            True to send the request again, with new headers; False without better credentials: the
            client raises an `AuthError` that quotes the server.

        Raises:
            AuthError: No better credentials could be obtained; the text says why, and what to do.
        """


@runtime_checkable
class AuthStrategy(Protocol):
    """A way to obtain credentials, for any number of servers."""

    def bind(self, server: ProtectedServer) -> Credentials:
        """Make the credentials of one client; called by `connect`, before the first request.

        Args:
            server: The server.

        Returns:
            The credentials.

        Raises:
            ValueError: The strategy does not fit the server: its URL is not https, for example.
        """


@attrs.frozen
class Bearer:
    """An `AuthStrategy` for a fixed token; a refusal is final.

    A token that changes is given by an async function as `Http(url, headers=…)`.

    Args:
        token: The token (RFC 6750).

    Raises:
        ValueError: It is not a token that a header can carry.
    """

    token: str = attrs.field(repr=False)

    def __attrs_post_init__(self) -> None:
        if not _TOKEN.fullmatch(read_text(self.token, "token")):
            raise ValueError("token must be the token alone, without spaces, quotes or `Bearer`")

    def bind(self, server: ProtectedServer) -> Credentials:
        """Make the credentials of one client; see `AuthStrategy`.

        Raises:
            ValueError: The URL is neither https nor that of a loopback address.
        """
        check_url(server.url, "the URL of the server")
        return _FixedToken({"Authorization": f"Bearer {self.token}"})


@attrs.frozen
class _FixedToken:
    """The credentials of `Bearer`."""

    given: Mapping[str, str] = attrs.field(repr=False)

    async def headers(self, request: ClientRequest) -> Mapping[str, str]:
        """Return the same header each time."""
        return self.given

    async def handle(self, refusal: Refusal) -> bool:
        """Return False: there is no other token."""
        return False


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, lower case, without the default port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    default = {"https": 443, "http": 80}.get(parts.scheme)
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"
