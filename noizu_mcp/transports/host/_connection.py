"""One connection: its requests, one after the other, and the task that reads from its socket.

Theory of operation. One task runs a connection. It waits for a head, calls the application in the
same task, writes the rest of the answer, and waits for the next head. Bytes that the client sends
ahead stay in `data`, and are not parsed before the answer is complete, so there is never more than
one request at a time. If an application continues after its answer, another task takes over the
connection, and the task of the application no longer uses it.

While the application runs, its tasks may read from the socket (`ClientLink.more`). When the
application has returned, its reader is cancelled before the connection reads again. If the
application has handed its answer over, the task of the connection reads like one of these tasks,
until the answer ends.

Deadlines. Steps that happen once, or for slow clients only (the handshake, the first byte, a head
or a body in several parts, a write that must wait, the end), have their own timeouts. Every request
includes waiting for the next one; its deadline is enforced by one task of the pool.
"""

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final

import trio

from ...engine import MOST_CRASHES, SHOWN, TaskScope, ThrottledLog, split_cancellation
from ._client_link import ClientLink, HostShare
from ._exchange import HttpExchange
from ._head import TOO_LARGE, BadRequest, RequestHead, check_beginning
from ._options import logger
from ._wire import ClientSocket

#: Failures of applications, each logged at a limited rate per minute.
failures: Final = ThrottledLog(log=logger, shown=SHOWN, most=MOST_CRASHES)

_LINE_END: Final = b"\r\n"
_HEAD_END: Final = b"\r\n\r\n"
_REQUEST_TIMEOUT: Final = 408


class HostConnection(ClientLink):
    """A connection of one client; see `ClientLink` for the arguments."""

    __slots__ = ("_exchange", "_owner", "_requests", "_waits")

    def __init__(
        self,
        host: HostShare,
        wire: ClientSocket,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
    ) -> None:
        super().__init__(host, wire, client, server)
        self._requests = 0
        self._exchange: HttpExchange | None = None
        self._owner: trio.lowlevel.Task | None = None
        self._waits = False  # the application has waited for something

    def run(self) -> Awaitable[None]:
        """Serve the client until one of the two ends the connection. Returns an awaitable."""
        # Not a coroutine function, which would keep one more frame for each open connection.
        return self._own(self._open)

    def watch(self) -> None:
        """Watch for the client's disconnect, for an application that works for long."""
        if self._reader is None:
            self.host.nursery.start_soon(self._watch, self._exchange)
        else:
            self._watched = True  # by the application, as long as it receives

    async def _watch(self, exchange: HttpExchange | None) -> None:
        while exchange is not None and self._exchange is exchange and not self.gone:
            if exchange.late:
                self.data = b""
            await self.more()

    async def _own(self, begin: Callable[[], Awaitable[None]]) -> None:
        """Run as the task of the connection until its end, or until another task takes over."""
        self._owner = task = trio.lowlevel.current_task()
        # One scope for all requests: entering one takes as long as parsing a head.
        entered = TaskScope(self._note_wait, keeps=self.host.keeps_scope)
        try:
            try:
                await begin()
                with entered:
                    await self._serve_all(entered)
            except BadRequest as error:
                self.owed = True
                await self.refuse(error.status)
            if self._owner is task:
                await self._leave()
        finally:
            if self._owner is task:
                self.wire.close()
                self.host.pool.remove(self)

    async def _serve_all(self, entered: TaskScope) -> None:
        try:
            while self.data and await self._serve_next(entered):
                if self.data:
                    # A client that sends many requests ahead must not block the loop.
                    await trio.lowlevel.checkpoint()
                else:
                    await self._wait_for_request()
        finally:
            entered.keeps = False

    async def _open(self) -> None:
        """Do the TLS handshake, and wait for the first bytes."""
        self.host.pool.begin(self)
        # Most clients have sent their request before the connection is accepted.
        self.data = self.wire.receive_nowait()
        if not self.data and await self.wire.open():
            with trio.move_on_after(self.host.options.header_timeout):
                self.data = await self.wire.receive()

    async def _take_over(self) -> None:
        """Continue with the next request while the application still runs in another task."""
        await self._stop_reading()
        if self.closing:
            self.data = b""  # bytes after the last request are ignored
        elif not self.data:
            await self._wait_for_request()

    async def _wait_for_request(self) -> None:
        """Wait for the first bytes of the next request; empty at the end of the connection."""
        if not self.host.dropping:
            # the pool closes it when its time is over
            self.host.pool.idle[self] = trio.current_time()
            self.data = await self.wire.receive()

    async def _serve_next(self, entered: TaskScope) -> bool:
        """Serve the next request; False if this task has nothing left to do."""
        if self.data == _LINE_END:
            self.data = b""
            return True
        head = self._take_head() or await self._complete_head()
        if head is None:
            return False
        self.host.pool.idle.pop(self, None)
        self._requests += 1
        self.closing = head.closes or self._requests >= self.host.options.max_requests
        exchange = self._exchange = HttpExchange(self, head)
        # In this task: an answer without waiting needs no other task.
        scope = exchange.scope(head, entered)
        await entered.run(self._call(exchange, scope))
        del head, scope  # a handed-over answer may last for hours, and needs neither
        if self._exchange is not exchange:
            return False  # another task has taken over
        if exchange.is_handed_over:
            await self._wait_for_end(exchange)
        if not exchange.answered:
            await exchange.finish()
        exchange.close()
        self._end_exchange()
        await self._stop_reading()
        return not self.closing

    async def _wait_for_end(self, exchange: HttpExchange) -> None:
        """Wait until a handed-over answer ends or its client disconnects."""
        try:
            while exchange.is_handed_over and not self.gone:
                await self.more()
        finally:
            exchange.note_gone()

    def _note_wait(self) -> bool:
        """Record that the application waits; True to be called again."""
        exchange = self._exchange
        if exchange is not None and exchange.answered:
            # Its work continues after the answer, for any time; the next request does not wait for
            # it.
            exchange.close()
            self._end_exchange()
            self._owner = None
            self.host.nursery.start_soon(self._own, self._take_over)
            return False
        if not self._waits:
            self._waits = True
            self.host.pool.note_working(self)
        return True

    def _end_exchange(self) -> None:
        self._exchange = None
        if self._waits:
            self._waits = self._watched = False
            self.host.pool.working.pop(self, None)

    async def _stop_reading(self) -> None:
        """Wait until no task of the last exchange reads or waits."""
        self.tell()
        while self._reader is not None:
            self._reader.cancel()
            await self.more()

    async def _complete_head(self) -> RequestHead | None:
        """Read the rest of a head that comes in several parts, with a timeout."""
        self.host.pool.idle[self] = inf
        head: RequestHead | None = None
        with trio.move_on_after(self.host.options.header_timeout) as scope:
            while head is None:
                data = await self.wire.receive()
                if not data:
                    return None
                self.data += data
                head = self._take_head()
        if scope.cancelled_caught:
            if self.data:
                await self.refuse(_REQUEST_TIMEOUT)
            return None
        return head

    def _take_head(self) -> RequestHead | None:
        """Take a complete head from `data`; None if it is not complete.

        Raises:
            BadRequest: It is not an acceptable head, and cannot become one.
        """
        # Old clients send one empty line before a request (RFC 9112 section 2.2).
        data = self.data = self.data.removeprefix(_LINE_END)
        limit = self.host.options.max_header_size
        end = data.find(_HEAD_END, 0, limit + len(_HEAD_END))
        if end >= 0:
            end += len(_HEAD_END)
            self.data = data[end:]
            return RequestHead(data[:end])
        if data not in (b"", b"\r"):
            check_beginning(data[: limit + 1])
        if len(data) > limit:
            raise BadRequest(TOO_LARGE)
        return None

    async def _call(self, exchange: HttpExchange, scope: dict[str, Any]) -> None:
        try:
            await self.host.app(scope, exchange.receive, exchange)
        except BaseException as error:
            crash, going_on = split_cancellation(error)
            if crash is None:
                raise
            # As sent: decoded, it could contain lines that look like log records.
            path, method = scope["raw_path"].decode(), scope["method"]
            failures.crash(method, "the application failed at %s %s", method, path, error=crash)
            if going_on is not None:
                raise going_on from None

    async def _leave(self) -> None:
        """Let the client read the last answer before the connection is closed."""
        if self.gone or self.wire.broken:
            return
        self.host.pool.idle[self] = inf
        # Closing a socket with unread bytes resets the connection, and the client may lose the
        # answer. When the host ends, it does not wait for clients that have sent everything.
        if self.closing and (self.owed or not self.host.dropping):
            await self.wire.linger()
