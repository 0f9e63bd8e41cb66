"""The network below the HTTP library: a small request is sent in one write.

The library writes the head of a request and its body separately. Each write costs a system call, a
turn of the loop, and a turn of the server, which waits for the body. Here bytes are held until the
library reads, when it has written the whole request. This works for HTTP/1.1 only; in HTTP/2 a task
reads while others write.

Without TLS and without a timeout the socket is used directly: the library's streams enter a cancel
scope for each read and each write, which took a fifth of the time of a call.

Imported with the first URL, like the library.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Final, cast

import httpcore2
import httpx2
import trio

_ERRORS: Final = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
)

#: Bytes of a request that are held. The system accepts as many at once, however slow the server is.
SMALL: Final = 8 * 1024


class SentBody(httpx2.AsyncByteStream):
    """The body of a request.

    Args:
        data: The bytes.
        on_written: Called each time that the library has written them.
    """

    def __init__(self, data: bytes, on_written: Callable[[], object]) -> None:
        self._data = data
        self._on_written = on_written

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data
        self._on_written()  # the library asks for more only after writing


class JoiningTransport(httpx2.AsyncBaseTransport):
    """A transport on a network that joins writes.

    The library's transport makes a pool to which no network can be passed.

    Args:
        ssl_context: For `https`; None for the authorities of the system.
        limits: The limits of the pool.
        network: Opens the connections; None for TCP.
    """

    def __init__(
        self,
        ssl_context: ssl.SSLContext | None,
        limits: httpx2.Limits,
        network: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Network(network or httpcore2.TrioBackend()),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; return when the head of the answer has arrived.

        Raises:
            httpx2.TransportError: No answer arrived.
        """
        url = request.url
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = await self._pool.handle_async_request(sent)
        except _ERRORS as error:
            raise _error_of_the_library(error) from error
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_AnswerBody(cast(httpx2.AsyncByteStream, answer.stream)),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _AnswerBody(httpx2.AsyncByteStream):
    """The body of an answer.

    Args:
        stream: The stream of the pool.
    """

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                yield part
        except _ERRORS as error:
            raise _error_of_the_library(error) from error

    async def aclose(self) -> None:
        """Return the connection to the pool."""
        await self._stream.aclose()


def _error_of_the_library(error: Exception) -> Exception:
    """Convert an error of the pool to the library's error of the same name."""
    made: Exception = getattr(httpx2, type(error).__name__)(str(error))
    return made


class _Network(httpcore2.AsyncNetworkBackend):
    """Opens connections that join writes.

    Args:
        inner: Opens the connections.
    """

    def __init__(self, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> "_Stream":
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return _Stream(stream, stream.get_extra_info("socket"))


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection that holds small writes until the next read.

    Args:
        inner: The connection.
        socket: Its socket; None with TLS.
    """

    def __init__(
        self, inner: httpcore2.AsyncNetworkStream, socket: trio.socket.SocketType | None = None
    ) -> None:
        self._inner = inner
        self._socket = socket
        self._held = b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        data = self._held + buffer if self._held else buffer
        self._held = b""
        if len(data) > SMALL:
            await self._inner.write(data, timeout)
        else:
            self._held = data

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._held:
            data, self._held = self._held, b""
            # Without a deadline, which would cost more than the write. A server may have answered
            # and closed the connection early; the read shows this.
            with suppress(httpcore2.WriteError, OSError, trio.ClosedResourceError):
                await self._write_now(data)
        if self._socket is None or timeout is not None:
            return await self._inner.read(max_bytes, timeout)
        try:
            return await self._socket.recv(max_bytes)
        except (OSError, trio.ClosedResourceError) as error:
            raise httpcore2.ReadError(str(error)) from error

    async def _write_now(self, data: bytes) -> None:
        if self._socket is None:
            await self._inner.write(data)
            return
        while data:
            data = data[await self._socket.send(data) :]

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> "_Stream":
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)
