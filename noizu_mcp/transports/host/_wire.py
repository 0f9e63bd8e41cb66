"""Bytes to and from one client: writes in order and bounded, plain or TLS."""

import contextlib
import socket
import ssl
import struct
from typing import Final

import trio

from ._options import PACE, HostOptions

#: Bytes taken from a socket at once.
MAX_RECEIVE: Final = 64 * 1024
# Close at once, and forget what was not sent: on, 0 seconds.
_NO_LINGER: Final = struct.pack("ii", 1, 0)


class Wire:
    """A connection without TLS, and what both kinds share.

    A write that is given up half-way leaves half a frame, so it breaks the connection: whoever
    gives it up, be it the clock or a cancelled task.

    Args:
        connection: The socket, non-blocking; closed by `close`.
        options: Those of the host.

    Attributes:
        broken: Nothing can be written any more.
        secure: Whether it is TLS.
        protocol: The protocol that was negotiated, in the words of ALPN.
    """

    secure = False
    protocol: str | None = None

    def __init__(self, connection: socket.socket, options: HostOptions) -> None:
        self.broken = False
        self._socket = connection
        self._options = options
        self._lock = trio.Lock()

    async def open(self) -> bool:
        """Do what comes before the first byte; False: the client failed at it."""
        await trio.lowlevel.checkpoint()
        return True

    async def receive(self) -> bytes:
        """Receive what there is; nothing at the end, however it came."""
        while not self.broken:
            try:
                await trio.lowlevel.wait_readable(self._socket)
                return self._socket.recv(MAX_RECEIVE)
            except BlockingIOError:
                continue
            except (OSError, trio.ClosedResourceError):
                break
        return b""

    async def send(self, data: bytes) -> None:
        """Write; see `broken` for how it went. No checkpoint where the system takes it at once."""
        if self.broken:
            return
        try:
            if not self._lock.locked():
                data = data[self._send_nowait(data) :]
            if data:
                async with self._lock:
                    await self._send_all(data)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self.abort()
        except BaseException:
            self.abort()
            raise

    @property
    def is_free(self) -> bool:
        """True while nothing is being written, and `write` writes."""
        return not (self.broken or self._lock.locked())

    def write(self, data: bytes) -> int:
        """Write what the system takes at once, while the wire is free; returns how much that is.

        A wire that breaks at it takes nothing, and says so when the rest is sent.
        """
        try:
            return self._send_nowait(data)
        except OSError:
            return 0

    async def linger(self) -> None:
        """Say that nothing more will come; read and drop what does, for a bounded time."""
        self._end()
        with trio.move_on_after(self._options.linger_timeout):
            await self.skip()

    async def skip(self) -> None:
        """Read and drop what comes, until the client ends the connection."""
        while await self.receive():
            pass

    async def flush(self) -> None:
        """Wait for what is being written."""
        async with self._lock:
            pass

    def abort(self) -> None:
        """Close at once and drop what the client has not taken."""
        if not self.broken:
            # A client that reads nothing would keep what is unsent in the memory of the system.
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.close()

    def close(self) -> None:
        """Close; what was written still goes out."""
        if not self.broken:
            self.broken = True
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    def _send_nowait(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def _send_all(self, data: bytes) -> None:
        for start in range(0, len(data), PACE):
            if self.broken:
                return
            with trio.move_on_after(self._options.write_timeout) as scope:
                await self._send_piece(data[start : start + PACE])
            if scope.cancelled_caught:
                self.abort()

    async def _send_piece(self, piece: bytes) -> None:
        while piece:
            await trio.lowlevel.wait_writable(self._socket)
            piece = piece[self._send_nowait(piece) :]

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)


class TlsWire(Wire):
    """A connection with TLS.

    Args:
        connection: As for `Wire`.
        options: As for `Wire`.
        context: What the server is to be in TLS.
    """

    secure = True

    def __init__(
        self, connection: socket.socket, options: HostOptions, context: ssl.SSLContext
    ) -> None:
        super().__init__(connection, options)
        # A socket of trio's with the same descriptor: closing that is left to this class.
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(connection))
        self._tls = trio.SSLStream(stream, context, server_side=True, https_compatible=True)

    @property
    def is_free(self) -> bool:
        return False  # TLS may have to wait for the client first

    async def open(self) -> bool:
        with trio.move_on_after(self._options.handshake_timeout) as scope:
            try:
                await self._tls.do_handshake()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
        if scope.cancelled_caught:
            return False
        self.protocol = self._tls.selected_alpn_protocol()
        return True

    async def receive(self) -> bytes:
        try:
            return bytes(await self._tls.receive_some(MAX_RECEIVE))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    def _send_nowait(self, data: bytes) -> int:  # noqa: ARG002 - nothing goes out without TLS
        return 0

    async def _send_piece(self, piece: bytes) -> None:
        await self._tls.send_all(piece)

    def _end(self) -> None:
        """TLS has no half of a connection to close: the end of the answer says as much."""
