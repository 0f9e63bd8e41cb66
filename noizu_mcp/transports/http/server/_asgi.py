"""The ASGI side: the head of a request, its body within bounds, and plain answers.

Hosts differ in how they take an answer that ends before the body of its request. Our own host reads
what it must. hypercorn 0.18 fails on HTTP/2 at the next part of the body; on HTTP/1.1 it keeps the
connection for ever. So on other hosts the last part of an answer waits for the end of the body
(`HttpRequest.unread`). The answer itself does not wait: only its end does.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from math import inf
from typing import Any, Final

import trio

from ....engine import TaskScope
from ....jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, ErrorResponse, Id, encode_error
from ....types import Principal

AsgiScope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
HttpHeader = tuple[bytes, bytes]

#: An extension of ASGI by our own host: it writes a part of the body of an answer at once, in the
#: loop's thread. Otherwise each change would wake one task for each stream, which costs twice as
#: much.
#:
#: Returns the number of bytes that are left; the host writes them before the next part that is sent
#: in the usual way, which may be empty. None: it cannot be written now, and nothing was.
WriteNowait = Callable[[bytes], int | None]
#: An extension of ASGI by our own host: the answer goes on after the application has returned. A
#: task that waits in the application would take more memory than everything else of a stream.
#:
#: Takes a function that is called if the client disconnects before the answer has ended. Returns a
#: function that the application calls when it has nothing more to send; an answer without its end
#: breaks off.
HandOver = Callable[[Callable[[], object]], Callable[[], None]]
#: Their names as attributes of `send`. Middleware that changes messages has a `send` of its own
#: without them, so it sees every message.
WRITE_NOWAIT: Final = "write_nowait"
HAND_OVER: Final = "hand_over"
#: An extension of ASGI by our hosts, in the scope: the seconds from the beginning of a request in
#: which the end of its answer waits for the rest of its body.
UNREAD_BODY: Final = "noizu_mcp.unread_body"
#: An extension of ASGI by our own host, in the scope: `has_body`, True if the whole body of the
#: request has come, and `task`, the `TaskScope` that runs the application.
HOSTED: Final = "noizu_mcp.hosted"

#: The header that names the revision of a request, in lower case as ASGI hands it over.
VERSION: Final = b"mcp-protocol-version"
JSON: Final[HttpHeader] = (b"content-type", b"application/json")
TEXT: Final[HttpHeader] = (b"content-type", b"text/plain; charset=utf-8")


class HttpRefusal(Exception):
    """A request that is answered before it reaches the protocol.

    Args:
        status: The HTTP status.
        text: The message of the JSON-RPC error in the body.
        code: The code of that error.
        data: The data of that error.
        headers: Headers beside the content type.

    Attributes:
        status: See Args.
        headers: All headers.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        code: int,
        data: Mapping[str, object] | None = None,
        headers: Iterable[HttpHeader] = (),
    ) -> None:
        super().__init__(text)
        self.status = status
        self.headers = [JSON, *headers]
        self._code = code
        self._data = data

    def body(self, id_: Id | None) -> bytes:
        """Write the error.

        Args:
            id_: The id of the request, if that is known.
        """
        return encode_error(ErrorResponse(id_, self._code, str(self), self._data))


def unavailable(text: str, seconds: float) -> HttpRefusal:
    """Refuse a request that may be repeated later (503).

    Args:
        text: The reason.
        seconds: Seconds after which the client may try again.
    """
    # Whole seconds: `Retry-After` has no fractions (RFC 9110 section 10.2.3).
    retry = (b"retry-after", b"%d" % seconds)
    return HttpRefusal(503, f"{text}; try again later", code=INTERNAL_ERROR, headers=[retry])


def out_of_memory() -> HttpRefusal:
    """Refuse a request for which no memory is left (503)."""
    return unavailable("Too many bytes are held for clients", 1)


def body_too_long(limit: int) -> HttpRefusal:
    """Refuse a request whose body is longer than the limit (413)."""
    return HttpRefusal(413, f"The body is over {limit} bytes", code=INVALID_REQUEST)


class Disconnected(Exception):
    """The client went away before it had sent its whole request."""


class HttpRequest:
    """One HTTP request: its head, and both directions of its connection.

    Args:
        scope: The ASGI scope.
        receive: Returns its body in parts, and a message when the client has disconnected.
        send: Takes the parts of the answer.
        body_time: Seconds that its body may take.

    Attributes:
        method: `POST` and the like.
        path: The path below the mount point of the application, without a slash at its end.
        headers: The headers by lower-case name, as they came; the values of a repeated one are
            joined by commas. `header` reads one of them.
        version: The value of `MCP-Protocol-Version`; None if it was not sent.
        has_body: True if it was known at the start that the whole body has come; see `HOSTED`.
        host_task: The `TaskScope` in which our own host runs the application; None on other hosts.
        unread: True while the end of an answer must wait for the rest of the body.
        body_since: When the body was waited for first, on trio's clock; None before that.
        principal: The verified principal; None where nobody is verified.
        extra: Headers that every answer to it has.
        size: Bytes of the body that was read.
        id: The id of the JSON-RPC request in the body, once that is known.
    """

    # Defaults of the class: most requests need no store for them.
    principal: Principal | None = None
    extra: tuple[HttpHeader, ...] = ()
    size = 0
    id: Id | None = None
    has_body = False
    host_task: TaskScope | None = None
    unread = True
    body_since: float | None = None

    def __init__(
        self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend, body_time: float
    ) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        path: str = scope["path"]
        if scope.get("root_path"):
            path = path[len(mount_of(scope)) :]
        self.path = path.rstrip("/") or "/"
        pairs: Sequence[HttpHeader] = scope["headers"]
        # Not decoded: most headers of a request are never looked at.
        self.headers: dict[bytes, bytes] = dict(pairs)
        if len(self.headers) < len(pairs):
            self.headers = _join(pairs)
        self.version = self.header(VERSION)
        self._body_time = body_time
        extensions = scope.get("extensions")
        if extensions and HOSTED in extensions:
            hosted = extensions[HOSTED]
            self.has_body, self.host_task, self.unread = hosted["has_body"], hosted["task"], False

    def header(self, name: bytes) -> str | None:
        """Read a header, as text without white space around it; None if it was not sent.

        Args:
            name: Its name in lower case.
        """
        value = self.headers.get(name)
        # As `protocol.read_header` does; a call of that would double the cost.
        return None if value is None else value.decode("latin-1").strip(" \t")

    @property
    def whole_path(self) -> str:
        """The path from the root of the host, without a slash at its end."""
        path: str = self.scope["path"]
        root = "" if mount_of(self.scope) else self.scope.get("root_path", "")
        return (root + path).rstrip("/") or "/"

    @property
    def client(self) -> str:
        """The address of the client, for logs."""
        client = self.scope.get("client")
        return str(client[0]) if client else "unknown"

    @property
    def write_nowait(self) -> WriteNowait | None:
        """Writes a part of the answer at once, where the host can do that; see `WriteNowait`."""
        # Middleware that replaces `send` hides the attribute, and so sees every message.
        return getattr(self.send, WRITE_NOWAIT, None)

    @property
    def hand_over(self) -> HandOver | None:
        """Lets the answer go on without its task, where the host can do that; see `HandOver`."""
        return getattr(self.send, HAND_OVER, None)

    async def drop_body(self) -> None:
        """Read and drop the rest of the body, as long as the time for it allows."""
        since = trio.current_time() if self.body_since is None else self.body_since
        with trio.move_on_at(since + self._unread_time()):
            while (await self.receive()).get("more_body", False):  # False for a disconnect
                pass
        self.unread = False

    def _unread_time(self) -> float:
        extensions: Mapping[str, Any] = self.scope.get("extensions") or {}
        if UNREAD_BODY in extensions:
            seconds: float = extensions[UNREAD_BODY]["seconds"]
            return seconds
        # A host can end a connection of HTTP/1. A stream of HTTP/2 is kept until its client ends
        # it.
        return self._body_time if self.scope.get("http_version", "1.1").startswith("1") else inf

    async def wait_disconnect(self) -> None:
        """Wait until the client has disconnected; once the body is read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def respond(
        self, status: int, body: bytes = b"", headers: Iterable[HttpHeader] = (JSON,)
    ) -> None:
        """Send a whole answer; to a client that has disconnected, nothing.

        Args:
            status: The HTTP status.
            body: The body; the answer to HEAD has its length only.
            headers: The headers, without its length and without `extra`.
        """
        length = (b"content-length", b"%d" % len(body))
        head = [*headers, *self.extra, length]
        if self.method == "HEAD":
            body = b""
        try:
            await self.send({"type": "http.response.start", "status": status, "headers": head})
            if self.unread:
                # The client gets all of the answer now, so that it may stop sending.
                await self.send({"type": "http.response.body", "body": body, "more_body": True})
                await self.drop_body()
                body = b""
            await self.send({"type": "http.response.body", "body": body})
        except OSError:  # raised by hosts once the client has disconnected (ASGI 2.4)
            return


def _join(pairs: Sequence[HttpHeader]) -> dict[bytes, bytes]:
    """Join the values of headers that were sent more than once (RFC 9110 section 5.2)."""
    joined: dict[bytes, bytes] = {}
    for name, value in pairs:
        joined[name] = b"%b, %b" % (joined[name], value) if name in joined else value
    return joined


def mount_of(scope: AsgiScope) -> str:
    """Return the mount point if the path begins with it, as it does since version 2.4 of ASGI."""
    # Only at a whole segment: `/mcp` is no prefix of `/mcp-other`.
    path, root = scope["path"], scope.get("root_path", "")
    is_in_front = path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/")
    return root if is_in_front else ""
