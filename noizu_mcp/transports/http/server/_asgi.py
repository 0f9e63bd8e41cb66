"""The ASGI side: the head of a request, its body within limits, and plain answers.

Hosts differ when an answer ends before the body of its request. The built-in host reads the rest as
needed. hypercorn 0.18 fails on HTTP/2 at the next part of the body; on HTTP/1.1 it keeps the
connection forever. So on other hosts the last part of an answer waits for the end of the body
(`HttpRequest.unread`). Only the end of the answer waits, not the answer itself.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from math import inf
from typing import Any, Final

import trio

from ...._value import JSONMapping
from ....engine import TaskScope
from ....jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, ErrorResponse, Id, encode_error
from ....types import Principal

AsgiScope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
HttpHeader = tuple[bytes, bytes]

#: An ASGI extension of the built-in host: writes a part of the body of an answer without waiting,
#: in the loop's thread. Otherwise each change would wake one task for each stream, which costs
#: twice as much.
#:
#: Returns the number of bytes left, which the host writes before the next part that is sent
#: normally, possibly an empty one. None if nothing could be written now.
WriteNowait = Callable[[bytes], int | None]
#: An ASGI extension of the built-in host: the answer continues after the application has returned.
#: A task that waits in the application would take more memory than the rest of a stream.
#:
#: Takes a function that is called if the client disconnects before the answer has ended. Returns a
#: function that the application calls when it has sent everything; an answer without its end is
#: then incomplete.
HandOver = Callable[[Callable[[], object]], Callable[[], None]]
#: The extensions are attributes of `send` with these names. Middleware that changes messages passes
#: another `send` without them, so it sees every message.
WRITE_NOWAIT: Final = "write_nowait"
HAND_OVER: Final = "hand_over"
#: An ASGI extension of both hosts, in the scope: the seconds from the start of a request for which
#: the end of its answer waits for the rest of its body.
UNREAD_BODY: Final = "noizu_mcp.unread_body"
#: An ASGI extension of the built-in host, in the scope: `has_body`, True if the whole body has
#: arrived, and `task`, the `TaskScope` that runs the application.
HOSTED: Final = "noizu_mcp.hosted"

#: The header with the revision of a request, in lower case as in ASGI.
VERSION: Final = b"mcp-protocol-version"
JSON: Final[HttpHeader] = (b"content-type", b"application/json")
TEXT: Final[HttpHeader] = (b"content-type", b"text/plain; charset=utf-8")


class HttpRefusal(Exception):
    """A request that is refused before it reaches the protocol.

    Args:
        status: The HTTP status.
        text: The message of the JSON-RPC error in the body.
        code: The code of that error.
        data: The data of that error.
        headers: Further headers besides the content type.

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
        """Return the error as JSON.

        Args:
            id_: The id of the request, if known.
        """
        return encode_error(ErrorResponse(id_, self._code, str(self), self._data))


def unavailable(text: str, seconds: float) -> HttpRefusal:
    """Make the refusal of a request that may be repeated later (503).

    Args:
        text: The reason.
        seconds: Seconds after which the client may try again.
    """
    # Whole seconds: `Retry-After` has no fractions (RFC 9110 section 10.2.3).
    retry = (b"retry-after", b"%d" % seconds)
    return HttpRefusal(503, f"{text}; try again later", code=INTERNAL_ERROR, headers=[retry])


def out_of_memory() -> HttpRefusal:
    """Make the refusal of a request for lack of memory (503)."""
    return unavailable("Too many bytes are held for clients", 1)


def body_too_long(limit: int) -> HttpRefusal:
    """Make the refusal of a request whose body exceeds the limit (413)."""
    return HttpRefusal(413, f"The body is over {limit} bytes", code=INVALID_REQUEST)


class Disconnected(Exception):
    """The client disconnected before it had sent its whole request."""


class HttpRequest:
    """One HTTP request: its head, and both directions of its connection.

    Args:
        scope: The ASGI scope.
        receive: Returns its body in parts, and a message when the client has disconnected.
        send: Sends the parts of the answer.
        body_time: Maximum seconds for its body.

    Attributes:
        method: `POST` or another method.
        path: The path below the mount point of the application, without a trailing slash.
        headers: The headers as received, by lower-case name; repeated values are joined by commas.
            `header` reads one of them.
        version: The value of `MCP-Protocol-Version`; None if missing.
        has_body: True if the whole body had arrived at the start; see `HOSTED`.
        host_task: The `TaskScope` of the application on the built-in host; None on other hosts.
        unread: True while the end of an answer must wait for the rest of the body.
        body_since: When reading the body first had to wait, on trio's clock; else None.
        principal: The verified principal; None without authentication.
        extra: Headers of every answer to it.
        size: Bytes of the body, once it is read.
        id: The id of the JSON-RPC request in the body, once it is known.
    """

    # Class attributes as defaults: most requests do not set them.
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
        # Not decoded: most headers are never read.
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
        """Read a header as text, without surrounding white space; None if missing.

        Args:
            name: Its name in lower case.
        """
        value = self.headers.get(name)
        # Like `protocol.read_header`; a call would take twice as long.
        return None if value is None else value.decode("latin-1").strip(" \t")

    @property
    def whole_path(self) -> str:
        """The path from the root of the host, without a trailing slash."""
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
        """Writes a part of the answer without waiting, if supported; see `WriteNowait`."""
        # Middleware that replaces `send` hides the attribute, and so sees every message.
        return getattr(self.send, WRITE_NOWAIT, None)

    @property
    def hand_over(self) -> HandOver | None:
        """Lets the answer continue without its task, if the host supports it; see `HandOver`."""
        return getattr(self.send, HAND_OVER, None)

    async def drop_body(self) -> None:
        """Read and drop the rest of the body, within its time limit."""
        since = trio.current_time() if self.body_since is None else self.body_since
        with trio.move_on_at(since + self._unread_time()):
            while (await self.receive()).get("more_body", False):  # False for a disconnect
                pass
        self.unread = False

    def _unread_time(self) -> float:
        extensions: JSONMapping = self.scope.get("extensions") or {}
        if UNREAD_BODY in extensions:
            seconds: float = extensions[UNREAD_BODY]["seconds"]
            return seconds
        # A host can close a connection of HTTP/1. A stream of HTTP/2 stays until its client ends
        # it.
        return self._body_time if self.scope.get("http_version", "1.1").startswith("1") else inf

    async def wait_disconnect(self) -> None:
        """Wait until the client has disconnected. Call it after the body was read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def respond(
        self, status: int, body: bytes = b"", headers: Iterable[HttpHeader] = (JSON,)
    ) -> None:
        """Send a complete answer, unless the client has disconnected.

        Args:
            status: The HTTP status.
            body: The body; the answer to HEAD only has its length.
            headers: The headers, without the length and without `extra`.
        """
        length = (b"content-length", b"%d" % len(body))
        head = [*headers, *self.extra, length]
        if self.method == "HEAD":
            body = b""
        try:
            await self.send({"type": "http.response.start", "status": status, "headers": head})
            if self.unread:
                # The client gets the whole answer now, so that it may stop sending.
                await self.send({"type": "http.response.body", "body": body, "more_body": True})
                await self.drop_body()
                body = b""
            await self.send({"type": "http.response.body", "body": body})
        except OSError:  # raised by hosts once the client has disconnected (ASGI 2.4)
            return


def _join(pairs: Sequence[HttpHeader]) -> dict[bytes, bytes]:
    """Join the values of repeated headers (RFC 9110 section 5.2)."""
    joined: dict[bytes, bytes] = {}
    for name, value in pairs:
        joined[name] = b"%b, %b" % (joined[name], value) if name in joined else value
    return joined


def mount_of(scope: AsgiScope) -> str:
    """Return the mount point if the path begins with it, as it does since ASGI 2.4."""
    # Only for whole segments: `/mcp` is no prefix of `/mcp-other`.
    path, root = scope["path"], scope.get("root_path", "")
    is_in_front = path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/")
    return root if is_in_front else ""
