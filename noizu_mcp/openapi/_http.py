"""HTTP requests of the tools of one API: bounded in size, without redirects.

Imported with the first `OpenAPI`, since the library is.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar
from typing import Final, NamedTuple

import httpx2
import trio

from .._errors import ToolError, TransportError
from .._http_body import BodyError, read_body
from .._http_log import unlogged
from .._version import __version__
from ._bodies import FormPart
from ._operations import ApiRequest

#: Seconds to connect, and for the API to take a part of a body.
STEP_TIMEOUT: Final = 30.0
#: A file in the words of the library: name, content, media type, headers.
_FileField = tuple[str | None, bytes, str | None, dict[str, str]]
#: Methods that change nothing, so that a request may be sent again (RFC 9110 9.2.1, 9.2.2).
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
#: The ends of a connection that an API closes as we send: it was idle, or its last answer an error.
_BROKEN: Final = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
_FAILURES: Final = (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError)


class ApiResponse(NamedTuple):
    """The answer to a request.

    Attributes:
        status: Status and reason: `404 Not Found`.
        media_type: The media type of the body, with its parameters.
        body: The whole body.
    """

    status: str
    media_type: str
    body: bytes


class ApiConnections:
    """Connections to an API.

    Args:
        client: The client of the HTTP library.
        max_size: Bytes of an answer.
    """

    def __init__(self, client: httpx2.AsyncClient, max_size: int) -> None:
        self._client = client
        self._max_size = max_size

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Send one request; a redirect is an answer like any other.

        A request that changes nothing is sent once more if its connection breaks.

        Args:
            request: The request.

        Raises:
            ToolError: No answer came, or it is too large or compressed; the text is for a model.
        """
        try:
            try:
                return await self._exchange(request)
            except _BROKEN:
                if request.method not in _SAFE:
                    raise
                return await self._exchange(request)
        except _FAILURES as error:
            reason = str(error) or type(error).__name__
            raise ToolError(f"{request.label}: no answer: {reason}") from error

    async def _exchange(self, request: ApiRequest) -> ApiResponse:
        stream = self._client.stream(
            request.method,
            request.url,
            headers=list(request.headers),
            content=request.body,
            files=[_file(part) for part in request.parts] or None,
        )
        with unlogged():
            async with stream as response:
                try:
                    body = await read_body(response, self._max_size)
                except BodyError as error:
                    raise ToolError(f"{request.label}: {error}") from None
                status = f"{response.status_code} {response.reason_phrase}".strip()
                return ApiResponse(status, response.headers.get("content-type", ""), body)


class _NoCookies(CookieJar):
    """A jar that stays empty: one client of the library sends the requests of all callers."""

    def extract_cookies(self, response: object, request: object) -> None:
        """Keep no cookie of an answer."""


def _file(part: FormPart) -> tuple[str, _FileField]:
    """Convert a part to the form of the library."""
    headers = {"content-transfer-encoding": part.encoding} if part.encoding else {}
    return part.name, (part.filename, part.content, part.media_type, headers)


@asynccontextmanager
async def open_connections(
    tls: ssl.SSLContext | None, max_size: int, *, secure: bool
) -> AsyncIterator[ApiConnections]:
    """Open connections for as long as the block runs.

    Args:
        tls: The trusted certificates; None: the certificates of the system.
        max_size: Bytes of an answer.
        secure: False if no URL is `https`: reading the certificates takes tens of milliseconds.
    """
    verify: ssl.SSLContext | bool = False
    if secure:
        if tls is None:
            tls = await trio.to_thread.run_sync(httpx2.create_ssl_context)
        verify = tls
    timeout = httpx2.Timeout(None, connect=STEP_TIMEOUT, write=STEP_TIMEOUT)
    headers = {"user-agent": f"noizu-mcp/{__version__}", "accept-encoding": "identity"}
    async with httpx2.AsyncClient(
        verify=verify,
        timeout=timeout,
        headers=headers,
        cookies=_NoCookies(),
        follow_redirects=False,
    ) as client:
        yield ApiConnections(client, max_size)


async def fetch_document(url: str, tls: ssl.SSLContext | None, max_size: int) -> bytes:
    """Fetch a document.

    Raises:
        TransportError: It did not come.
    """
    request = ApiRequest(label=f"GET {url.partition('?')[0]}", method="GET", url=url)
    async with open_connections(tls, max_size, secure=url.startswith("https:")) as connections:
        try:
            answer = await connections.send(request)
        except ToolError as error:
            raise TransportError(str(error)) from error
    if not answer.status.startswith("200"):
        raise TransportError(f"{request.label}: {answer.status}")
    return answer.body
