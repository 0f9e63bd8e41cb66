"""The one seam to the HTTP library: requests out, answers in, its exceptions as ours."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import trio

from ...._errors import TransportError
from ...._version import __version__
from ....engine import unwrap_single
from ..._http_target import Http

if TYPE_CHECKING:
    import httpx2

#: Seconds for a server to take a part of what we send.
WRITE_TIMEOUT: Final = 30.0
#: Connections that are kept open while nothing travels on them.
IDLE_CONNECTIONS: Final = 20
#: Seconds that they are kept; servers close theirs after about five, and a call must not meet that.
IDLE_SECONDS: Final = 4.0
#: Moves within one origin that one request follows.
MAX_MOVES: Final = 3
_MOVED: Final = (307, 308)  # those that keep method and body
_WRITTEN: Final = ("http11.send_request_body.complete", "http2.send_request_body.complete")
#: Compression would hold events back, and a small answer could become a large one.
_DEFAULTS: Final = {"accept-encoding": "identity", "user-agent": f"noizu-mcp/{__version__}"}
_INSTALL: Final = "connecting to a URL needs httpx2: pip install 'noizu-mcp[http]'"


class NetworkFailure(Exception):
    """No answer, or only a part of one.

    Args:
        text: Why.
        connected: False if the server was never reached, so that it cannot have done anything.
    """

    def __init__(self, text: str, *, connected: bool) -> None:
        super().__init__(text)
        self.connected = connected


class Answer:
    """The answer to one request; its body is read as it comes.

    Attributes:
        status: The HTTP status.
        headers: Its headers; names in any case.
    """

    def __init__(self, response: "httpx2.Response") -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._body = aiter(response.aiter_bytes())

    @property
    def kind(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def title(self) -> str:
        """The status for messages: `404 Not Found`."""
        return f"{self.status} {self._response.reason_phrase}".strip()

    async def next(self) -> bytes:
        """Read the next part of the body; nothing at its end."""
        return await anext(self._body, b"")

    async def read(self, limit: int) -> bytes | None:
        """Read the whole body; None if it is longer than that."""
        parts, left = [], limit
        while chunk := await self.next():
            left -= len(chunk)
            if left < 0:
                return None
            parts.append(chunk)
        return b"".join(parts)

    async def leave(self) -> None:
        """Read no more of it.

        The library iterates through layers, not all of which close the one below: what is left at
        a `yield` would be closed by the garbage collector. Cancelled inside, all of them end.
        """
        with trio.CancelScope(shield=True) as scope, suppress(Exception):
            scope.cancel()
            while await self.next():
                pass


class Backend:
    """Sends requests to one server.

    Args:
        target: The server.

    Raises:
        TransportError: The HTTP library is not installed.
    """

    def __init__(self, target: Http) -> None:
        try:
            import httpx2
        except ImportError:
            raise TransportError(_INSTALL) from None
        self._library = httpx2
        self._target = target
        self._url = target.url
        limits = httpx2.Limits(
            max_connections=None,
            max_keepalive_connections=IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
        )
        timeout = httpx2.Timeout(None, connect=target.connect_timeout, write=WRITE_TIMEOUT)
        secure = target.url.startswith("https:")
        # The authorities of the system take 20 ms to load: plain HTTP needs none.
        verify = (target.tls or True) if secure else False
        self._client = httpx2.AsyncClient(limits=limits, timeout=timeout, verify=verify)

    @asynccontextmanager
    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        on_written: Callable[[], object] | None = None,
    ) -> AsyncIterator[Answer]:
        """Send one request.

        Args:
            method: `POST` and the like.
            headers: Beside those of the target, which they win over.
            body: What it carries.
            on_written: Called once all of it is written.

        Yields:
            The answer; leaving the block gives up what was not read of it.

        Raises:
            NetworkFailure: There is none, or the block was reading it when it broke off.
        """
        merged = await self._merge(headers)
        try:
            for _ in range(MAX_MOVES + 1):
                async with self._client.stream(
                    method,
                    self._url,
                    content=body,
                    headers=merged,
                    extensions=_traced(on_written),
                ) as response:
                    if self._has_moved(response):
                        continue
                    answer = Answer(response)
                    try:
                        yield answer
                    finally:
                        await answer.leave()
                    return
            raise NetworkFailure("it moves in circles", connected=True)
        except (self._library.ConnectError, self._library.ProxyError) as error:
            raise NetworkFailure(_why(error), connected=False) from error
        except self._library.ConnectTimeout as error:
            text = f"no connection within {self._target.connect_timeout:g} s"
            raise NetworkFailure(text, connected=False) from error
        except self._library.RequestError as error:
            raise NetworkFailure(_why(error), connected=True) from error

    async def _merge(self, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        given = await self._target.current_headers()
        merged = dict(_DEFAULTS)
        for each in (given, headers):
            merged.update((name.lower(), value) for name, value in each.items())
        return [(name.encode(), value.encode()) for name, value in merged.items()]

    def _has_moved(self, response: "httpx2.Response") -> bool:
        """Follow a move within the origin; anything else would take the credentials elsewhere."""
        if response.status_code not in _MOVED:
            return False
        try:
            url = response.url.join(response.headers.get("location", ""))
        except self._library.InvalidURL:
            return False
        there, here = ((each.scheme, each.host, each.port) for each in (url, response.url))
        if there != here or url.userinfo:
            return False
        self._url = str(url)
        return True

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()


def _traced(on_written: Callable[[], object] | None) -> dict[str, Any]:
    if on_written is None:
        return {}

    async def trace(name: str, _info: Any) -> None:
        if name in _WRITTEN:
            on_written()

    return {"trace": trace}


def _why(error: Exception) -> str:
    return str(unwrap_single(error)) or type(error).__name__
