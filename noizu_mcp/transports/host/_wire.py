"""The bytes to and from one client: in order and bounded in time, plain or with TLS."""

import contextlib
import socket
import ssl
import struct
from typing import Final

import trio

from ._options import PACE, HostOptions

#: Bytes taken from a socket at once.
MAX_RECEIVE: Final = 64 * 1024
# SO_LINGER: on, for 0 seconds. Closing drops unsent bytes then.
_NO_LINGER: Final = struct.pack("ii", 1, 0)


class ClientSocket:
    """A connection without TLS, and the base of one with it.

    A write that is given up half-way leaves half of an answer, so it breaks the connection, whether
    a timeout or a cancelled task gave it up.

    Args:
        connection: The socket, non-blocking; closed by `close`.
        options: The options of the host.

    Attributes:
        broken: True once nothing more can be written.
    """

    __slots__ = ("_lock", "_options", "_socket", "broken")

    def __init__(self, connection: socket.socket, options: HostOptions) -> None:
        self.broken = False
        self._socket = connection
        self._options = options
        self._lock: trio.Lock | None = None  # of those that write; most never have to wait

    async def open(self) -> bool:
        """Do the handshake of TLS, if there is one; False if the client failed at it."""
        return True

    def receive_nowait(self) -> bytes:
        """Return the bytes that have come before `open`; empty without any, or with TLS."""
        try:
            return self._socket.recv(MAX_RECEIVE)
        except OSError:
            return b""

    async def receive(self) -> bytes:
        """Wait for bytes of the client; none come at the end of the connection, however it ends."""
        while not self.broken:
            try:
                # Waiting first: mostly nothing has come yet, and a failed `recv` is not for free.
                # It also gives every other task its turn between two requests.
                await trio.lowlevel.wait_readable(self._socket)
                return self._socket.recv(MAX_RECEIVE)
            except BlockingIOError:
                continue
            except (OSError, trio.ClosedResourceError):
                break
        return b""

    @property
    def is_busy(self) -> bool:
        """True while something is being written."""
        return self._lock is not None and self._lock.locked()

    @property
    def is_free(self) -> bool:
        """True if `write` writes."""
        return not self.broken and (self._lock is None or not self._lock.locked())

    def write(self, *pieces: bytes) -> int:
        """Write the bytes that the system takes at once; return their number, 0 if not free."""
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
        """Write everything, after earlier writes; `broken` tells if it failed."""
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
        """Close the direction to the client; then read and drop its bytes, for a bounded time."""
        self._end()
        with trio.move_on_after(self._options.linger_timeout):
            while await self.receive():
                pass

    def abort(self) -> None:
        """Close at once and drop the bytes that the client has not taken."""
        if not self.broken:
            # A client that reads nothing would keep what is unsent in the memory of the system.
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.close()

    def close(self) -> None:
        """Close; bytes that were written still go out."""
        if not self.broken:
            self.broken = True
            # A task that waits for this socket wakes, and finds it closed.
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
    """A context that tells which buffer its last connection writes to.

    `trio.SSLStream` drops the alert of a handshake that fails; it is still in that buffer then.
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
        context: The certificate and the rules of the server.
    """

    __slots__ = ("_outgoing", "_tls")

    def __init__(
        self, connection: socket.socket, options: HostOptions, context: TlsContext
    ) -> None:
        super().__init__(connection, options)
        # A socket of trio's with the same descriptor; this class closes it.
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
                # The alert tells the client what is wrong: no version in common, no certificate.
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
        # TLS cannot close one direction. The end of the answer says that nothing more will come.
        pass
