"""The connection of one client, as its requests use it: received bytes, and who reads them.

Theory of operation. While the application runs, its tasks may read from the socket (`more`). One
task reads at a time, and the others wait for its result. So a socket never has two readers, and no
bytes are lost between them.
"""

import abc
import time
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Final
from wsgiref.handlers import format_date_time

import attrs
import trio

from ._options import PACE, Application, HostOptions
from ._pool import ConnectionPool
from ._wire import ClientSocket

SERVER: Final = b"server: noizu-mcp\r\n"


@attrs.define(eq=False)
class HostShare:
    """The part of a host that its connections share.

    Attributes:
        app: The application.
        options: The options of the host.
        pool: All connections.
        nursery: Runs the connections.
        keeps_scope: True if the scope of one request may stay entered for the next one: the
            application enters it before any other, as `HttpApp` does without middleware.
        stopping: True once connections close after their next answers.
        dropping: True once connections close that wait for a request.
    """

    app: Application
    options: HostOptions
    pool: ConnectionPool
    nursery: trio.Nursery
    keeps_scope: bool = False
    stopping: bool = False
    dropping: bool = False


class ClientLink(abc.ABC):
    """A connection of one client, as its requests use it.

    Args:
        host: The part of the host that connections share.
        wire: The bytes; closed at the end.
        client: The address of the client; None on a Unix socket.
        server: The address that the client connected to.

    Attributes:
        host: See Args.
        wire: See Args.
        client: See Args.
        server: See Args.
        data: Received bytes that are not parsed yet; at most `PACE` plus one read.
        gone: True once the client has closed the connection.
        closing: True once the connection closes after this answer.
        owed: True if the client may still be sending bytes that will not be read.
    """

    __slots__ = (
        "_news",
        "_reader",
        "_watched",
        "client",
        "closing",
        "data",
        "gone",
        "host",
        "owed",
        "server",
        "wire",
    )

    def __init__(
        self,
        host: HostShare,
        wire: ClientSocket,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
    ) -> None:
        self.host = host
        self.wire = wire
        self.client = client
        self.server = server
        self.data = b""
        self.gone = False
        self.closing = False
        self.owed = False
        self._watched = False  # the application receives, and so notices the disconnect
        self._reader: trio.CancelScope | None = None  # scope of the task that reads for a request
        self._news: trio.Event | None = None  # for the other tasks that wait

    @abc.abstractmethod
    def watch(self) -> None:
        """Watch for the client's disconnect, for an application that works for long."""

    def drop(self) -> None:
        """Close at once, without an answer."""
        self.wire.close()

    async def refuse(self, status: int) -> None:
        """Answer in place of the application, and close the connection."""
        self.closing = True
        await self.write(refusal(status))

    async def write(self, before: bytes, body: bytes = b"", after: bytes = b"") -> None:
        """Write pieces of an answer in order, in one system call if possible."""
        # Large bodies are not copied. For small ones joining the pieces is cheaper.
        pieces = (before, body, after) if len(body) > PACE else (before + body + after,)
        written = self.wire.write(*pieces)
        if written < sum(map(len, pieces)):
            rest = []
            for piece in pieces:
                rest.append(memoryview(piece)[written:])
                written = max(0, written - len(piece))
            await self.wire.send(*rest)

    async def more(self) -> None:
        """Wait for new bytes or the disconnect of the client, during an exchange; for any task.

        Returns when bytes were added to `data`, when the client is gone, and when another task has
        read or stopped reading; the caller must check again.
        """
        if self._reader is not None or len(self.data) > PACE:
            if self._news is None:
                self._news = trio.Event()
            await self._news.wait()
            return
        try:
            with trio.CancelScope() as self._reader:
                data = await self.wire.receive()
                if data:
                    self.data += data
                else:
                    self._note_gone()
        finally:
            self._reader = None
            self.tell()
            if self._watched:
                self._watched = False
                self.host.pool.note_working(self)

    def interrupt(self) -> None:
        """Wake all tasks that wait in `more`."""
        self.tell()
        if self._reader is not None:
            self._reader.cancel()

    def tell(self) -> None:
        """Wake the tasks that wait in `more`, without reading."""
        if self._news is not None:
            self._news.set()
            self._news = None

    def _note_gone(self) -> None:
        self.gone = self.closing = True
        # The client may have closed one direction only: an answer that is being written continues.
        # Otherwise nothing is kept for a client that is gone, however long the application works.
        if not self.wire.is_busy:
            self.wire.close()
            self.host.pool.remove(self)


def refusal(status: int) -> bytes:
    """Make a complete answer without a body, after which the connection closes."""
    rest = b"content-length: 0\r\nconnection: close\r\n\r\n"
    return b"".join((status_line(status), date_line(), SERVER, rest))


@cache
def status_line(status: int) -> bytes:
    if type(status) is not int or not 200 <= status <= 999:
        raise ValueError(f"the status of an answer must be an integer from 200, not {status!r}")
    known = status in HTTPStatus.__members__.values()
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase if known else ''}\r\n".encode()


def date_line() -> bytes:
    return _date_line_at(int(time.time()))


@lru_cache(maxsize=1)
def _date_line_at(now: int) -> bytes:
    return b"date: %b\r\n" % format_date_time(now).encode()
