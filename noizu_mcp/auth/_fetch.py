"""HTTP requests of verifiers and of OAuth clients, with limits.

Verifiers fetch URLs of their configuration. Clients fetch URLs that a server sends, which could
point into the network of the client (server-side request forgery): `public_only` prevents this.
"""

import base64
import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

import attrs
import trio

from .._errors import McpException
from .._http_body import BodyError, read_body
from .._http_log import unlogged
from .._limits import MIB
from ._configuration import read_count, read_seconds

if TYPE_CHECKING:
    import ssl

#: Seconds for one exchange, from the first packet to the last byte.
FETCH_TIMEOUT: Final = 5.0
#: Maximum size of a response in bytes. Key sets have some kilobytes.
FETCH_SIZE: Final = MIB
_PORTS: Final = {"https": 443, "http": 80}
# IPv6 networks whose addresses contain IPv4 addresses in the last 32 bits (RFC 6052).
_TRANSLATED: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))


class FetchError(McpException):
    """There was no response, or it cannot be used."""


@attrs.frozen(kw_only=True)
class FetchRequest:
    """A request of a verifier or a client.

    Attributes:
        url: The absolute URL.
        method: `GET` or `POST`.
        headers: Names and values.
        body: The bytes to send.
    """

    url: str
    method: str = "GET"
    # Not in the repr: both may contain secrets.
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    body: bytes = attrs.field(default=b"", repr=False)


@attrs.frozen
class FetchResponse:
    """The answer to a request.

    Attributes:
        status: The status code.
        body: The whole body.
        headers: The headers, names in lower case.
    """

    status: int
    body: bytes = attrs.field(default=b"", repr=False)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    @property
    def good_body(self) -> bytes:
        """The body of an answer with status 200.

        Raises:
            FetchError: The status is different; a redirect is a failure, too.
        """
        if self.status != 200:
            raise FetchError(f"it answered {self.status}")
        return self.body


def basic_authorization(client_id: str, secret: str) -> tuple[str, str]:
    """Make the header that authenticates a client with a secret (RFC 6749 section 2.3.1)."""
    # Both are form-encoded first, so that a colon in them stays in them; a space as %20, since not
    # every server reads + as a space.
    pair = ":".join(quote(each, safe="") for each in (client_id, secret))
    return "authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"


class Fetcher(Protocol):
    """The interface for requests. Verifiers and strategies have it as option `fetcher`."""

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Send one request, without following redirects.

        Args:
            request: The request.

        Returns:
            The answer, with any status.

        Raises:
            FetchError: There was no answer within the limits of time and size.
        """


class HTTPFetcher:
    """The default `Fetcher`: httpx2 on trio.

    Each request opens a connection and closes it, so there is nothing to close at the end; requests
    of verifiers are rare. Redirects are not followed: only the URL of the request is trusted.

    Args:
        timeout: Seconds for one exchange.
        max_size: Largest body, in bytes.
        ssl_context: The trusted certificates; by default the system's.
        public_only: True to refuse addresses of private networks, of this machine and similar ones.
            The name is resolved once, and the connection uses the checked address.

    Raises:
        ValueError: `timeout` or `max_size` is not a number above 0.
        ImportError: httpx2 is not installed; it is part of the extra `auth`.
    """

    def __init__(
        self,
        *,
        timeout: float = FETCH_TIMEOUT,
        max_size: int = FETCH_SIZE,
        ssl_context: "ssl.SSLContext | None" = None,
        public_only: bool = False,
    ) -> None:
        try:
            import httpx2
        except ImportError as error:
            raise ImportError(
                "fetching keys and answers needs httpx2: pip install 'noizu-mcp[auth]'"
            ) from error
        self._library = httpx2
        self._timeout = read_seconds(timeout, "timeout")
        self._max_size = read_count(max_size, "max_size")
        self._public_only = public_only
        self._context = ssl_context

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Make one request; see `Fetcher.fetch`.

        Args:
            request: The request.

        Returns:
            The answer, with any status.

        Raises:
            FetchError: There was no answer in time, it is too large, or the network failed.
        """
        try:
            with trio.fail_after(self._timeout), unlogged():
                return await self._exchange(request)
        except trio.TooSlowError:
            raise FetchError(f"no answer within {self._timeout:g} s") from None
        except (self._library.HTTPError, self._library.InvalidURL, OSError) as error:
            raise FetchError(f"{type(error).__name__}: {_reason(error)}") from error

    async def _exchange(self, request: FetchRequest) -> FetchResponse:
        url, extensions = self._library.URL(request.url), {}
        # `fetch` limits the time of the whole exchange; the timeouts of httpx2 are for each step.
        client = self._library.AsyncClient(
            verify=await self._certificates(url.scheme), timeout=None, follow_redirects=False
        )
        headers = [("accept-encoding", "identity"), *request.headers]
        if self._public_only:
            # Resolving again could return another address: the checked address is used.
            address = await public_address(url.host, url.port or _PORTS.get(url.scheme, 0))
            headers.append(("host", url.netloc.decode()))
            extensions = {"sni_hostname": url.host}
            url = url.copy_with(host=address)
        async with (
            client,
            client.stream(
                request.method,
                url,
                headers=headers,
                content=request.body or None,
                extensions=extensions,
            ) as response,
        ):
            found = {name.lower(): value for name, value in response.headers.items()}
            try:
                body = await read_body(response, self._max_size)
            except BodyError as error:
                raise FetchError(str(error)) from None
            return FetchResponse(response.status_code, body, found)

    async def _certificates(self, scheme: str) -> "ssl.SSLContext | bool":
        if scheme != "https":
            return False
        # Reading the certificates of the system takes tens of milliseconds: once, in a thread.
        if self._context is None:
            self._context = await trio.to_thread.run_sync(self._library.create_ssl_context)
        return self._context


def _reason(error: BaseException) -> str:
    """Return the text of an error; the library's is often empty, but that of its cause is not."""
    cause = error.__cause__ or error.__context__
    return str(error) or ("no reason given" if cause is None else _reason(cause))


def is_public(address: str) -> bool:
    """Tell whether an address is public: not of a private network or this machine, not reserved.

    Args:
        address: An IPv4 or IPv6 address.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        # The embedded IPv4 address decides.
        inside = found.ipv4_mapped or found.sixtofour
        if any(found in network for network in _TRANSLATED):
            inside = ipaddress.IPv4Address(found.packed[-4:])
        if inside is not None:
            return is_public(str(inside))
    return found.is_global and not found.is_multicast


async def addresses_of(host: str, port: int) -> list[str]:
    """Resolve the name of a host.

    Args:
        host: A name or an address.
        port: The port of the service.

    Raises:
        FetchError: The name is unknown.
    """
    try:
        found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(f"{host} has no address: {error}") from error
    return [str(each[4][0]) for each in found]


async def public_address(host: str, port: int) -> str:
    """Resolve the name of a host to a public address.

    Args:
        host: A name or an address.
        port: The port of the service.

    Raises:
        FetchError: The name is unknown, or has an address that is not public.
    """
    addresses = await addresses_of(host, port)
    hidden = [each for each in addresses if not is_public(each)]
    if hidden:
        raise FetchError(
            f"{host} is at {hidden[0]}, which is no public address; allow_private=True permits it"
        )
    return addresses[0]
