"""Bounded HTTP requests of verifiers to URLs of the configuration."""

from typing import TYPE_CHECKING, Final, Protocol

import attrs
import trio

from .._limits import MIB
from ._configuration import read_count, read_seconds

if TYPE_CHECKING:
    import ssl

    import httpx2

#: Seconds for one exchange, from the first packet to the last byte.
FETCH_TIMEOUT: Final = 5.0
#: Largest answer, in bytes. Key sets have some kilobytes.
FETCH_SIZE: Final = MIB


class FetchError(Exception):
    """No answer came, or one that cannot be used."""


@attrs.frozen(kw_only=True)
class FetchRequest:
    """A request to a URL of the configuration.

    Attributes:
        url: The absolute URL.
        method: `GET` or `POST`.
        headers: Names and values.
        body: The bytes to send.
    """

    url: str
    method: str = "GET"
    # Left out of the repr: both may hold secrets.
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    body: bytes = attrs.field(default=b"", repr=False)


@attrs.frozen
class FetchResponse:
    """The answer to a request.

    Attributes:
        status: The status code.
        body: The whole body.
    """

    status: int
    body: bytes = attrs.field(default=b"", repr=False)

    @property
    def good_body(self) -> bytes:
        """The body of an answer with status 200.

        Raises:
            FetchError: The status is another one; a redirect counts as a failure.
        """
        if self.status != 200:
            raise FetchError(f"it answered {self.status}")
        return self.body


class Fetcher(Protocol):
    """The interface for requests; verifiers that fetch take one as `fetcher`."""

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Make one request; follow no redirect.

        Args:
            request: The request.

        Returns:
            The answer, with any status.

        Raises:
            FetchError: No answer came within the limits of time and size.
        """


class HTTPFetcher:
    """The default `Fetcher`: httpx2 on trio.

    Each request opens a connection and closes it, so there is nothing to close at the end; requests
    of verifiers are rare. Redirects are not followed: only the URL of the configuration is trusted.

    Args:
        timeout: Seconds for one exchange.
        max_size: Largest body, in bytes.
        ssl_context: The trusted certificates; by default those of the system.

    Raises:
        ValueError: `timeout` or `max_size` is not a number above 0.
        ImportError: httpx2 is not installed; the extra `auth` brings it.
    """

    def __init__(
        self,
        *,
        timeout: float = FETCH_TIMEOUT,
        max_size: int = FETCH_SIZE,
        ssl_context: "ssl.SSLContext | None" = None,
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
        # Reading the certificates takes milliseconds: once, here, not while requests wait.
        self._context = httpx2.create_ssl_context() if ssl_context is None else ssl_context

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Make one request; see `Fetcher.fetch`.

        Args:
            request: The request.

        Returns:
            The answer, with any status.

        Raises:
            FetchError: No answer came in time, it is too large, or the network failed.
        """
        try:
            with trio.fail_after(self._timeout):
                return await self._exchange(request)
        except trio.TooSlowError:
            raise FetchError(f"no answer within {self._timeout:g} s") from None
        except (self._library.HTTPError, self._library.InvalidURL, OSError) as error:
            raise FetchError(f"{type(error).__name__}: {error}") from error

    async def _exchange(self, request: FetchRequest) -> FetchResponse:
        # `fetch` limits the time of the whole exchange; the timeouts of httpx2 are for each step.
        client = self._library.AsyncClient(
            verify=self._context, timeout=None, follow_redirects=False
        )
        # A compressed body of a kilobyte can unpack to a gigabyte.
        headers = (("accept-encoding", "identity"), *request.headers)
        async with (
            client,
            client.stream(
                request.method, request.url, headers=list(headers), content=request.body or None
            ) as response,
        ):
            return FetchResponse(response.status_code, await self._body(response))

    async def _body(self, response: "httpx2.Response") -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise FetchError("the answer is compressed, which was not asked for")
        body = bytearray()
        # Breaking out of the loop would leave the nested async generators of httpx2 unfinished.
        # Cancelled while they wait for more, they run to their end.
        with trio.CancelScope() as enough:
            async for part in response.aiter_raw():
                body += part
                if len(body) > self._max_size:
                    enough.cancel()
        if len(body) > self._max_size:
            raise FetchError(f"the answer has more than {self._max_size} bytes")
        return bytes(body)
