"""Bytes to and from one client, in order and with timeouts, plain or with TLS."""

import contextlib
import socket
import ssl
import struct
from typing import Final

import trio

from ._options import PACE, HostOptions

#: Maximum bytes read from a socket at once.
MAX_RECEIVE: Final = 64 * 1024
# SO_LINGER: on, for 0 seconds. Closing then drops unsent bytes.
_NO_LINGER: Final = struct.pack("ii", 1, 0)


class ClientSocket:
    """A connection without TLS, and the base class of one with TLS.

    A write that was stopped by a timeout or a cancellation leaves an incomplete answer, so it
    breaks the connection.

    Args:
        connection: The socket, non-blocking; closed by `close`.
        options: The options of the host.

    Attributes:
        broken: True once nothing can be written.
    """

    __slots__ = ("_lock", "_options", "_socket", "broken")

    def __init__(self, connection: socket.socket, options: HostOptions) -> None:
        self.broken = False
        self._socket = connection
        self._options = options
        self._lock: trio.Lock | None = None  # of writers; most never have to wait

    async def open(self) -> bool:
        """Do the TLS handshake, if there is one; False if the client failed."""
        return True

    def receive_nowait(self) -> bytes:
        """Return bytes received before `open`; empty if there are none, or with TLS."""
        try:
            return self._socket.recv(MAX_RECEIVE)
        except OSError:
            return b""

    async def receive(self) -> bytes:
        """Wait for bytes of the client; empty at the end of the connection, for any reason."""
        while not self.broken:
            try:
                # Wait first: usually nothing has arrived yet, and a failed `recv` takes time. This
                # also lets other tasks run between two requests.
                await trio.lowlevel.wait_readable(self._socket)
                return self._socket.recv(MAX_RECEIVE)
            except BlockingIOError:
                continue
            except (OSError, trio.ClosedResourceError):
                break
        return b""

    @property
    def is_busy(self) -> bool:
        """True while a write is in progress."""
        return self._lock is not None and self._lock.locked()

    @property
    def is_free(self) -> bool:
        """True if `write` can write."""
        return not self.broken and (self._lock is None or not self._lock.locked())

    def write(self, *pieces: bytes) -> int:
        """Write the bytes that the system accepts at once; return their number, 0 if not free."""
        if not self.is_free:
            return 0
        try:
            return self._socket.send(*pieces) if len(pieces) == 1 else self._socket.sendmsg(pieces)
        except BlockingIOError:
            return 0
        except OSError:
            self.abort()
            return 0

    async def send(self, *pieces: bytes | memoryview) -> None:
        """Write everything, after earlier writes. `broken` is True if it failed."""
        self._lock = self._lock or trio.Lock()
        try:
            async with self._lock:
                for piece in pieces:
                    await self._send_all(memoryview(piece))
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self.abort()
        except BaseException:
            self.abort()
            raise

    async def linger(self) -> None:
        """Close the direction to the client; then read and drop its bytes, with a timeout."""
        self._end()
        with trio.move_on_after(self._options.linger_timeout):
            while await self.receive():
                pass

    def abort(self) -> None:
        """Close at once and drop the bytes that are not sent."""
        if not self.broken:
            # Otherwise unsent bytes would stay in the system's memory if a client does not read.
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.close()

    def close(self) -> None:
        """Close. Written bytes are still sent."""
        if not self.broken:
            self.broken = True
            # A task that waits for this socket wakes up and finds it closed.
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    async def _send_all(self, data: memoryview) -> None:
        # Slices of a view are no copies.
        for start in range(0, len(data), PACE):
            if self.broken:
                return
            with trio.move_on_after(self._options.write_timeout) as scope:
                await self._send_piece(data[start : start + PACE])
            if scope.cancelled_caught:
                self.abort()

    async def _send_piece(self, piece: memoryview) -> None:
        while piece:
            try:
                piece = piece[self._socket.send(piece) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)


class TlsContext(ssl.SSLContext):
    """A context that knows the buffer to which its last connection writes.

    `trio.SSLStream` drops the alert of a failed handshake, which is still in that buffer.
    """

    outgoing: ssl.MemoryBIO

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Make the TLS side of a connection; see `ssl.SSLContext.wrap_bio`."""
        self.outgoing = outgoing
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)


class TlsClientSocket(ClientSocket):
    """A connection with TLS.

    Args:
        connection: As for `ClientSocket`.
        options: As for `ClientSocket`.
        context: The certificate and the settings of the server.
    """

    __slots__ = ("_outgoing", "_tls")

    def __init__(
        self, connection: socket.socket, options: HostOptions, context: TlsContext
    ) -> None:
        super().__init__(connection, options)
        # A trio socket with the same descriptor; this class closes it.
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(connection))
        self._tls = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        self._outgoing = context.outgoing

    def receive_nowait(self) -> bytes:
        return b""

    async def open(self) -> bool:
        with trio.move_on_after(self._options.handshake_timeout) as scope:
            try:
                await self._tls.do_handshake()
            except trio.BrokenResourceError:
                # The alert tells the client what is wrong: no common version, no certificate.
                with contextlib.suppress(OSError):
                    self._socket.send(self._outgoing.read())
                return False
            except trio.ClosedResourceError:
                return False
        return not scope.cancelled_caught

    async def receive(self) -> bytes:
        try:
            return bytes(await self._tls.receive_some(MAX_RECEIVE))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    @property
    def is_free(self) -> bool:
        return False  # TLS may have to wait for the client first

    async def _send_piece(self, piece: memoryview) -> None:
        await self._tls.send_all(piece)

    def _end(self) -> None:
        # TLS cannot close one direction. The end of the answer shows that nothing follows.
        pass
