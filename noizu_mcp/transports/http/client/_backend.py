"""The only module that uses the HTTP library: sends requests, and converts its errors."""

import zlib
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Mapping,
)
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from ...._errors import TransportError
from ...._http_log import unlogged
from ...._version import __version__
from ....engine import unwrap_single
from ..._http_target import Http

if TYPE_CHECKING:
    import httpx2

    from ....auth.client import RequestAuth

    SendRequest = Callable[[httpx2.Request], Awaitable[httpx2.Response]]

#: Seconds for a server to accept a part of a body. A call may take long, but receiving may not.
WRITE_TIMEOUT: Final = 30.0
#: Idle connections kept open for later requests.
IDLE_CONNECTIONS: Final = 20
#: Seconds for which they are kept. Servers close theirs after about five: a request on a connection
#: that is being closed would fail, and must not be repeated.
IDLE_SECONDS: Final = 4.0
#: Statuses that require other credentials, whatever the body says.
CHALLENGES: Final = (401, 403)
#: Supported encodings of a body. `zlib` decodes both with one argument.
_PACKINGS: Final = ("gzip", "deflate")
_ANY_HEAD: Final = 32 + zlib.MAX_WBITS
#: Maximum bytes of a decompressed part of a body.
PART: Final = 64 * 1024
#: Maximum bytes of the body of a refusal that are read.
ERROR_SIZE: Final = 64 * 1024
#: Seconds to read it before the credentials are asked for, which may take minutes.
REFUSAL_TIMEOUT: Final = 5.0
#: Redirects within one origin that one request follows.
MAX_MOVES: Final = 3
_MOVED: Final = (307, 308)  # the statuses that keep method and body
_DEFAULTS: Final = {
    "accept": "*/*",
    # Compression would delay events, and a small answer could expand to a large one.
    "accept-encoding": "identity",
    "user-agent": f"noizu-mcp/{__version__}",
}
_INSTALL: Final = "connecting to a URL needs httpx2: pip install 'noizu-mcp[http]'"


class NetworkFailure(Exception):
    """No complete answer arrived.

    Args:
        text: The reason.
        connected: False if the server was never reached, so that the request had no effect.
    """

    def __init__(self, text: str, *, connected: bool) -> None:
        super().__init__(text)
        self.connected = connected


class StreamedResponse:
    """The answer to one HTTP request. Its body is read as it arrives.

    Attributes:
        status: The HTTP status.
        headers: The headers; names are case-insensitive.
        media_type: The media type of the body, without parameters; empty without one.
        is_read: True once the whole body was read.
    """

    def __init__(self, response: "httpx2.Response") -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        kind = self.headers.get("content-type", "")
        self.media_type = kind.partition(";")[0].strip().lower()
        self._response = response
        # Bypasses the library, which splits a body into parts of a given size, decompresses each
        # part completely, and leaves generators open when a part is malformed.
        self._body = aiter(cast("AsyncIterable[bytes]", response.stream))
        # Compression is refused, but some proxies compress anyway.
        self._packing = self.headers.get("content-encoding", "identity").strip().lower()
        self._unpacker: Any = None
        self.is_read = False

    @property
    def title(self) -> str:
        """The status for messages: `404 Not Found`."""
        return f"{self.status} {self._response.reason_phrase}".strip()

    async def read_chunk(self) -> bytes:
        """Read the next part of the body; empty at its end.

        Raises:
            NetworkFailure: It is compressed in an unsupported way, or malformed.
        """
        if self._packing == "identity":
            chunk = await anext(self._body, b"")
            self.is_read = not chunk
            return chunk
        if self._packing not in _PACKINGS:
            text = f"the answer has the content encoding {self._packing[:20]!r}"
            raise NetworkFailure(f"{text}, which was not asked for", connected=True)
        return await self._unpack()

    async def _unpack(self) -> bytes:
        """Decompress the next part of the body, limited in size."""
        if self._unpacker is None:
            self._unpacker = zlib.decompressobj(_ANY_HEAD)
        while True:
            packed = self._unpacker.unconsumed_tail or await anext(self._body, b"")
            if packed and self._unpacker.eof:
                raise NetworkFailure("more than the packed answer came", connected=True)
            try:
                chunk: bytes = self._unpacker.decompress(packed, PART)
            except zlib.error as error:
                text = f"the answer is packed wrongly: {error}"
                raise NetworkFailure(text, connected=True) from None
            if chunk or not packed:
                self.is_read = not chunk
                return chunk

    async def read(self, limit: int) -> bytes | None:
        """Read the whole body; None if it has more bytes than the limit."""
        parts, left = [], limit
        while chunk := await self.read_chunk():
            left -= len(chunk)
            if left < 0:
                return None
            parts.append(chunk)
        return b"".join(parts)

    async def detach(self) -> None:
        """Read the body of a refusal into memory and close its connection.

        A server may close the connection long before a person has logged in. A body that is too
        long, or too slow, is then empty.
        """
        kept = None
        with trio.move_on_after(REFUSAL_TIMEOUT):
            kept = await self.read(ERROR_SIZE)
        await self.discard()
        await self._response.aclose()
        self._body = _replay(kept or b"")

    async def discard(self) -> None:
        """Drop the rest of the body.

        The library iterates through layers, not all of which close the one below: a generator
        suspended at a `yield` would be closed by the garbage collector. A cancellation inside ends
        all of them.
        """
        with trio.CancelScope(shield=True) as scope, suppress(Exception):
            scope.cancel()
            while await anext(self._body, b""):
                pass


async def _replay(body: bytes) -> AsyncIterator[bytes]:
    # An empty part would be taken for the end, and leave the generator unfinished.
    if body:
        yield body


class Backend:
    """Sends HTTP requests to one server, with a pool of connections.

    Args:
        target: The server.
        auth: The credentials of the client, if it has any.

    Attributes:
        auth: See above.

    Raises:
        TransportError: The HTTP library is not installed.
    """

    def __init__(self, target: Http, auth: "RequestAuth | None" = None) -> None:
        try:
            import httpx2

            from . import _network
        except ImportError:
            raise TransportError(_INSTALL) from None
        from http.cookiejar import CookieJar, DefaultCookiePolicy  # the library has loaded these
        from urllib.request import getproxies

        self.auth = auth
        self._sent: frozenset[tuple[str, str]] = frozenset()
        self._library = httpx2
        self._make_body = _network.SentBody
        self._target = target
        # Parsed here and not for each request, which would take a tenth of the time of a call.
        self._url = httpx2.URL(target.url)
        limits = httpx2.Limits(
            # Requests in flight are limited elsewhere. With a pool limit, a long call or an event
            # stream would block all others.
            max_connections=None,
            max_keepalive_connections=IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
        )
        timeout = httpx2.Timeout(None, connect=target.connect_timeout, write=WRITE_TIMEOUT)
        self._timeout = timeout.as_dict()
        # Loading the system's authorities takes 20 ms, and plain HTTP does not need them.
        verify = (target.tls or True) if self._url.scheme == "https" else False
        if getproxies() and target.network is None:
            # The library uses proxies of the environment only with its own transport, which only
            # its client makes. That client would keep the cookies of all answers, without a limit;
            # none is sent, since a client of a gateway serves many users.
            none = CookieJar(DefaultCookiePolicy(allowed_domains=()))
            client = httpx2.AsyncClient(limits=limits, timeout=timeout, verify=verify, cookies=none)
            self._send: SendRequest = partial(client.send, stream=True)
            self._close = client.aclose
        else:
            # Without the client of the library, which checks redirects, credentials and hooks: a
            # tenth of the time of a call.
            context = httpx2.create_ssl_context(verify) if verify else None
            transport = _network.JoiningTransport(context, limits, target.network)
            self._send, self._close = transport.handle_async_request, transport.aclose

    @asynccontextmanager
    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        on_written: Callable[[], object] = lambda: None,
        on_refused: Callable[[], str] | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Send one request; repeat it with other credentials if it is refused and they can be had.

        Args:
            method: `POST` or another method.
            headers: Headers of the protocol; they override headers of the target.
            body: The bytes of the body.
            on_written: Called each time that the whole body was written.
            on_refused: Called with each refusal that the credentials handle; returns the subject of
                the request for them.

        Yields:
            The answer. Leaving the block drops its unread rest.

        Raises:
            NetworkFailure: No answer arrived, or it ended early while the block was reading it.
            AuthError: The server refused the credentials, and no others could be obtained.
        """
        merged = await self._merge(headers, body)
        moves = refusals = 0
        try:
            while moves <= MAX_MOVES:
                given = await self._authorize(method)
                everything = {**merged, **given} if given else merged
                response = await self._exchange(method, everything, body, on_written)
                try:
                    if self._follow(response):
                        moves += 1
                        continue
                    answer = StreamedResponse(response)
                    try:
                        attempt = refusals + 1
                        if await self._improve(method, answer, given, on_refused, attempt=attempt):
                            refusals = attempt
                            continue
                        yield answer
                    finally:
                        if not answer.is_read:
                            await answer.discard()
                finally:
                    await response.aclose()
                return
            raise NetworkFailure("it redirects in circles", connected=True)
        except (self._library.ConnectError, self._library.ProxyError) as error:
            raise NetworkFailure(_reason(error), connected=False) from error
        except self._library.ConnectTimeout as error:
            text = f"no connection within {self._target.connect_timeout:g} s"
            raise NetworkFailure(text, connected=False) from error
        except self._library.RequestError as error:
            raise NetworkFailure(_reason(error), connected=True) from error

    async def _exchange(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None,
        on_written: Callable[[], object],
    ) -> "httpx2.Response":
        """Send one request; return when the head of the answer has arrived."""
        # Built here, since `build_request` merges and parses constant values again.
        request = self._library.Request(
            method,
            self._url,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            stream=None if body is None else self._make_body(body, on_written),
            extensions={"timeout": self._timeout},
        )
        with unlogged():
            response = await self._send(request)
        response.request = request
        return response

    @property
    def credentials(self) -> Hashable:
        """The headers of `auth` in the last request, without the proof, which differs each time.

        None if a function makes headers: they may belong to another user each time.
        """
        return None if callable(self._target.headers) else self._sent

    async def _authorize(self, method: str) -> Mapping[str, str]:
        """Return the headers of the credentials for a request, and store the credentials used."""
        if self.auth is None:
            return {}
        given = await self.auth.headers(method, str(self._url))
        self._sent = frozenset(given.items()) - {("dpop", given.get("dpop", ""))}
        return given

    async def _improve(
        self,
        method: str,
        answer: StreamedResponse,
        given: Mapping[str, str],
        on_refused: Callable[[], str] | None,
        *,
        attempt: int,
    ) -> bool:
        """Pass an answer to the credentials; return whether to send the request again."""
        if self.auth is None:
            return False
        self.auth.note(str(self._url), answer)
        if answer.status not in CHALLENGES:
            return False
        await answer.detach()
        operation = "" if on_refused is None else on_refused()
        return await self.auth.handle(
            method, str(self._url), answer, sent=given, operation=operation, attempt=attempt
        )

    async def _merge(self, headers: Mapping[str, str], body: bytes | None) -> dict[str, str]:
        given = self._target.headers
        if callable(given):
            given = await given()  # credentials that change are looked up for each request
        # All in lower case, so that a later header replaces an earlier one in any spelling.
        merged = dict(_DEFAULTS)
        for each in (given or {}, headers):
            merged.update((name.lower(), value) for name, value in each.items())
        if body is not None:
            # The library adds no headers to a caller's stream, and reads them only once.
            merged.setdefault("host", self._url.netloc.decode())
            merged["content-length"] = str(len(body))
        return merged

    def _follow(self, response: "httpx2.Response") -> bool:
        """Follow a redirect within the origin only: another origin would get the credentials."""
        if response.status_code not in _MOVED:
            return False
        try:
            url = response.url.join(response.headers.get("location", ""))
        except self._library.InvalidURL:
            return False
        there, here = ((each.scheme, each.host, each.port) for each in (url, response.url))
        # `Authorization` and the session id must not reach another origin.
        if there != here or url.userinfo:
            return False
        # Later requests use the new URL directly.
        self._url = url
        return True

    async def aclose(self) -> None:
        """Close every connection."""
        await self._close()


def _reason(error: Exception) -> str:
    return str(unwrap_single(error)) or type(error).__name__
