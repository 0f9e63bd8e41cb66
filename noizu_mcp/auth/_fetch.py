"""The one seam to an HTTP client library: a bounded request to a configured URL."""

from typing import TYPE_CHECKING, Final, Protocol

import attrs
import trio

from .._limits import MIB
from ._options import read_count, read_seconds

if TYPE_CHECKING:
    import ssl

    import httpx2

#: Seconds for one exchange, from the first packet to the last byte.
FETCH_TIMEOUT: Final = 5.0
#: Bytes of one answer. Key sets have some kilobytes.
FETCH_SIZE: Final = MIB


class FetchError(Exception):
    """There is no answer, or none that can be used."""


@attrs.frozen(kw_only=True)
class FetchRequest:
    """A request to a URL that the configuration names.

    Attributes:
        url: Absolute.
        method: `GET` or `POST`.
        headers: Names and values.
        body: What is sent.
    """

    url: str
    method: str = "GET"
    # Not shown: secrets stand in both.
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    body: bytes = attrs.field(default=b"", repr=False)


@attrs.frozen
class FetchResponse:
    """The answer to a request.

    Attributes:
        status: The status code, whichever it is.
        body: All of it.
    """

    status: int
    body: bytes = attrs.field(default=b"", repr=False)

    @property
    def good_body(self) -> bytes:
        """The body of a 200.

        Raises:
            FetchError: It is another status; redirects are, too.
        """
        if self.status != 200:
            raise FetchError(f"it answered {self.status}")
        return self.body


class Fetcher(Protocol):
    """What makes a request; another one can be given to each verifier that fetches."""

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Make one request; follow no redirect.

        Args:
            request: The request.

        Returns:
            The answer, whatever its status.

        Raises:
            FetchError: There is no answer within the limits.
        """


class HTTPFetcher:
    """The `Fetcher` that is used unless another one is given: httpx2 on trio.

    Requests are few and far between, so a connection is opened for each and closed after it:
    nothing has to be closed at the end. Redirects are not followed: the URL of a configuration is
    the one that is meant.

    Args:
        timeout: Seconds for one exchange.
        max_size: Bytes of a body.
        ssl_context: Whom to trust; the system's certificates unless given.

    Raises:
        ValueError: `timeout` or `max_size` is no number above 0.
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
        # Certificates are read once, here, not while requests wait.
        self._context = httpx2.create_ssl_context() if ssl_context is None else ssl_context

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Make one request; see `Fetcher.fetch`.

        Args:
            request: The request.

        Returns:
            The answer, whatever its status.

        Raises:
            FetchError: There is none within the time, it is too large, or the network failed.
        """
        try:
            with trio.fail_after(self._timeout):
                return await self._exchange(request)
        except trio.TooSlowError:
            raise FetchError(f"no answer within {self._timeout:g} s") from None
        except (self._library.HTTPError, self._library.InvalidURL, OSError) as error:
            raise FetchError(f"{type(error).__name__}: {error}") from error

    async def _exchange(self, request: FetchRequest) -> FetchResponse:
        # One time limit holds for all of it; those of the library are for each step.
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
        # Leaving the loop would leave the library's nested generators unfinished; cancelled while
        # they wait for more, they end in order.
        with trio.CancelScope() as enough:
            async for part in response.aiter_raw():
                body += part
                if len(body) > self._max_size:
                    enough.cancel()
        if len(body) > self._max_size:
            raise FetchError(f"the answer has more than {self._max_size} bytes")
        return bytes(body)
