"""One request and its answer, as an ASGI application uses them.

Theory of operation. The application is called in the task of the connection with the two sides of
an `HttpExchange`: `receive`, and the exchange itself as `send`. Nothing else reads from the client
while the application runs; bytes are read when the application asks for them:

- A body that came with its head is there already. Otherwise `receive` reads the next part from the
  socket, so a body that the application does not read stays in the client.
- After the body, `receive` waits for the disconnect of the client. Meanwhile it stores later
  requests, up to `PACE` bytes. Any number of tasks may wait in it; `ClientLink.more` lets one of
  them read.

The answer has these states: *not started*; *started*, when the application has sent the start, and
nothing is written; *begun*, when the head and the first part are written together; *complete*.
Until it has begun, a failure can still be answered with an error. Later the connection is closed
before the answer is complete, so that the client notices.

An application may return before its answer is complete if it hands the answer over (`hand_over`).
The connection then waits for the end of the answer or for the disconnect instead of a task of the
application, so an open stream keeps no frame of the application.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import inf
from typing import Any, Final

import trio

from ...engine import TaskScope
from ._body import RequestBody
from ._client_link import SERVER, ClientLink, date_line, status_line
from ._head import BadRequest, RequestHead
from ._options import PACE

#: Answers up to this size are written together with their head, which copies them once.
_COPIED: Final = PACE
#: Before ASGI 2.4 `send` does nothing once the client is gone; since then it raises.
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
#: The end of an answer need not wait for the rest of the body: `HttpExchange` drops the received
#: part, and closes the connection if there is more.
_UNREAD_BODY: Final = {"seconds": 0.0}
#: Replaces the start of an answer once its head is written.
_STARTED: Final[dict[str, Any]] = {}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
#: Response headers that the host interprets. It writes these itself, unless an application sets the
#: date or the name of the server.
_FRAMING: Final = (b"connection", b"content-length", b"transfer-encoding")
_INTERNAL_ERROR: Final = 500
_REQUEST_TIMEOUT: Final = 408
_NO_CONTENT: Final = 204
_NOT_MODIFIED: Final = 304


class HttpExchange:
    """One request and its answer. When called, it is the `send` of ASGI.

    Args:
        connection: The connection.
        head: The head of the request. The body follows in `ClientLink.data`.

    Attributes:
        late: True once the body took too long. The rest of it is dropped.
        answered: True once the whole answer was written.
    """

    __slots__ = (
        "_begun",
        "_behind",
        "_body",
        "_chunked",
        "_complete",
        "_connection",
        "_delivered",
        "_expected",
        "_is_head",
        "_is_old",
        "_left",
        "_muted",
        "_on_gone",
        "_over",
        "_partial",
        "_start",
        "_unsent",
        "answered",
        "late",
    )

    def __init__(self, connection: ClientLink, head: RequestHead) -> None:
        self.late = False
        self.answered = False
        self._connection = connection
        self._is_head = head.method == "HEAD"
        self._is_old = head.version == "1.0"
        self._body = RequestBody(head.length)
        self._expected = head.expects_continue  # `100 Continue` is not sent yet
        self._partial = False  # a part of the body was delivered
        self._delivered = False  # the whole body was delivered
        self._behind = 0.0  # seconds that the body is late
        self._start: Any = None
        self._begun = False
        self._complete = False
        self._chunked = False
        self._muted = False  # the answer has no body (RFC 9112 section 6.3)
        self._left: int | None = None  # promised bytes of the answer that are not sent
        self._unsent = b""
        self._over = False  # the application has returned, or the host has answered
        self._on_gone: Callable[[], object] | None = None  # while the answer is handed over

    def scope(self, head: RequestHead, task: TaskScope) -> dict[str, Any]:
        """Make the scope of ASGI.

        Args:
            head: The head of the request.
            task: Runs the application.
        """
        connection = self._connection
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": head.version,
            "method": head.method,
            "scheme": connection.host.options.scheme,
            "path": head.path,
            "raw_path": head.raw_path,
            "query_string": head.query,
            "root_path": "",
            "headers": head.headers,
            "client": connection.client,
            "server": connection.server,
            "extensions": {
                "noizu_mcp.unread_body": _UNREAD_BODY,
                "noizu_mcp.hosted": {
                    "has_body": self._body.is_in(len(connection.data)),
                    "task": task,
                },
            },
        }

    # The request

    async def receive(self) -> dict[str, Any]:
        """Receive as an ASGI application does; not a checkpoint if a message is there already."""
        connection = self._connection
        if self._partial and not (self._delivered or self._over):
            # A client that sends quickly must not block the loop.
            await trio.lowlevel.checkpoint()
        body = self._body
        while not (self._over or self.late):
            if not self._delivered:
                try:
                    part, connection.data = body.read(connection.data)
                except BadRequest as refusal:
                    await self._refuse(refusal.status)
                    break
                connection.tell()
                if part or body.complete:
                    self._partial, self._delivered = True, body.complete
                    return {"type": "http.request", "body": part, "more_body": not body.complete}
            if connection.gone:
                break
            if self._delivered:
                await connection.more()
            else:
                await self._wait_for_body()
        return {"type": "http.disconnect"}

    async def _wait_for_body(self) -> None:
        """Wait for more of the body, as long as the minimum pace allows.

        Each byte earns a share of time: `PACE` bytes earn `body_timeout`. Time beyond that adds up,
        so a client that sends single bytes gets almost no extra time.
        """
        connection = self._connection
        if self._expected:
            # Only now: a client whose request is refused by its head need not send the body.
            self._expected = False
            if not self._begun:
                await connection.write(_CONTINUE)
        host, size, start = connection.host, len(connection.data), trio.current_time()
        patience = host.options.body_timeout
        host.pool.owing[connection] = start - self._behind
        try:
            with trio.move_on_after(patience - self._behind) as scope:
                await connection.more()
        finally:
            host.pool.owing.pop(connection, None)
        worth = (len(connection.data) - size) * patience / PACE
        self._behind = max(0.0, self._behind + trio.current_time() - start - worth)
        if scope.cancelled_caught:
            self.late = connection.closing = True
            # From now on this connection may be closed to make room.
            host.pool.idle[connection] = inf
            connection.tell()

    # The answer

    async def __call__(self, message: Any) -> None:
        """Send as an ASGI application does. Does nothing once the client is gone."""
        more = message.get("more_body", False)
        if not (self._over or self._connection.gone):
            if message["type"] == "http.response.body":
                pieces = self._compose(message.get("body", b""), more)
                await self._connection.write(*pieces)
                self.answered = self._complete
            elif message["type"] != "http.response.start" or self._start is not None:
                raise RuntimeError(f"{message['type']} must not be sent here")
            else:
                self._start = message
        if more:
            # An application that streams to a fast client must not block the loop.
            await trio.lowlevel.checkpoint()

    def write_nowait(self, data: bytes) -> int | None:
        """Write a part of a streamed answer without waiting; see `WriteNowait`."""
        wire = self._connection.wire
        is_open = self._begun and not (self._complete or self._over or self._muted)
        if not is_open or self._unsent or self._left is not None or not wire.is_free:
            return None
        part = b"%x\r\n%b\r\n" % (len(data), data) if self._chunked and data else data
        self._unsent = part[wire.write(part) :]
        return len(self._unsent)

    def hand_over(self, on_gone: Callable[[], object]) -> Callable[[], None]:
        """Continue the answer after the application has returned; see `HandOver`."""
        self._on_gone = on_gone
        return self._let_go

    def _let_go(self) -> None:
        self._on_gone = None
        self._connection.interrupt()

    @property
    def is_handed_over(self) -> bool:
        """True while the application may still send although it has returned."""
        return self._on_gone is not None

    def note_gone(self) -> None:
        """Tell the application that the client of a handed-over answer has disconnected."""
        on_gone, self._on_gone = self._on_gone, None
        if on_gone is not None:
            on_gone()

    def _compose(self, body: bytes, more: bool) -> tuple[bytes, bytes, bytes]:
        """Frame a part of the answer: the bytes before it, the part, the bytes after it."""
        if self._start is None or self._complete:
            when = "after the end of the answer" if self._complete else "before http.response.start"
            raise RuntimeError(f"http.response.body must not be sent {when}")
        before = self._unsent if self._begun else self._compose_head(body, more)
        if self._muted:
            body = b""
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the body is not as long as its content-length")
        after = b""
        if self._chunked:
            if body:
                before, after = before + b"%x\r\n" % len(body), b"\r\n"
            if not more:
                after += b"0\r\n\r\n"
        self._unsent, self._begun, self._complete = b"", True, not more
        return before, body, after

    def _compose_head(self, body: bytes, more: bool) -> bytes:
        """Make the head of the answer, once the first part of its body is known."""
        connection = self._connection
        status: int = self._start["status"]
        lines, own = _read_headers(tuple(map(tuple, self._start.get("headers", ()))))
        frame = self._frame(status, own.get(b"content-length"), body, more)
        if not (more or self._body.complete):
            self._skip_body()
        if connection.host.stopping or b"close" in own.get(b"connection", b"").lower():
            connection.closing = True
        close = b"connection: close\r\n" if connection.closing else b""
        date = b"" if b"date" in own else date_line()
        server = b"" if b"server" in own else SERVER
        self._start = _STARTED  # a stream may last for hours, and does not need its headers
        return b"".join((status_line(status), lines, frame, close, date, server, b"\r\n"))

    def _frame(self, status: int, length: bytes | None, body: bytes, more: bool) -> bytes:
        """Choose how the client finds the end of the body (RFC 9112 section 6.3)."""
        self._muted = status in (_NO_CONTENT, _NOT_MODIFIED) or self._is_head
        size = None if length is None else int(length)
        if size is None and not more and (body or not self._muted):
            size = len(body)
        if size is not None:
            self._left = None if self._muted else size
            # 204 has no length (RFC 9110 section 8.6); the answer to HEAD has the length of GET.
            return b"" if status == _NO_CONTENT else b"content-length: %d\r\n" % size
        # A client of HTTP/1.0 reads the body until the connection closes.
        self._chunked = not (self._muted or self._is_old)
        return b"transfer-encoding: chunked\r\n" if self._chunked else b""

    def _skip_body(self) -> None:
        """Drop the received part of an unread body: the next request follows it."""
        connection, body = self._connection, self._body
        try:
            while not body.complete and connection.data:
                _, rest = body.read(connection.data)
                if rest == connection.data:
                    break
                connection.data = rest
        except BadRequest:
            pass  # the next request cannot be found: the connection closes
        if not body.complete:
            connection.closing = connection.owed = True

    async def finish(self) -> None:
        """End an answer that is incomplete after the application has returned or failed."""
        connection = self._connection
        if not (self._over or connection.gone):
            if not self._begun:
                await self._refuse(_REQUEST_TIMEOUT if self.late else _INTERNAL_ERROR)
            else:
                # The client must notice that something is missing. Only an answer that ends with
                # its connection needs a reset for that.
                connection.closing = True
                if not self._chunked and self._left is None:
                    connection.wire.abort()

    def close(self) -> None:
        """Ignore further sending and receiving of the application."""
        self._over = True
        if not self._body.complete:
            self._skip_body()

    async def _refuse(self, status: int) -> None:
        """Answer in place of the application, if it has not begun to, and end the connection."""
        self._over = True
        if self._begun:
            self._connection.closing = True
        else:
            await self._connection.refuse(status)


@lru_cache(maxsize=256)
def _read_headers(
    headers: tuple[tuple[bytes, bytes], ...],
) -> tuple[bytes, Mapping[bytes, bytes]]:
    """Write the headers of an answer, except for those that the host writes itself.

    Returns:
        Their lines; and all headers by their names in lower case.

    Raises:
        ValueError: A header has a line end or a null in it.
    """
    # Applications repeat the headers of their answers.
    lines = [b"%b: %b\r\n" % each for each in headers if each[0].lower() not in _FRAMING]
    text, count = b"".join(lines), len(lines)
    # A line end in a header could add headers, or a second answer.
    if text.count(b"\n") != count or text.count(b"\r") != count or b"\0" in text:
        raise ValueError("a header of the answer has a line end or a null in it")
    return text, {name.lower(): value for name, value in headers}
