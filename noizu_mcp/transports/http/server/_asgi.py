"""The ASGI side: the head of a request, its body within bounds, and plain answers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final

from ....engine import TaskScope
from ....jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, ErrorResponse, Id, encode_error
from ..._asgi_extension import WRITE_NOWAIT, WriteNowait

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON: Final[Header] = (b"content-type", b"application/json")
TEXT: Final[Header] = (b"content-type", b"text/plain; charset=utf-8")


class Refused(Exception):
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
        id: The id of the request, once that is known.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        code: int,
        data: Mapping[str, Any] | None = None,
        headers: Iterable[Header] = (),
    ) -> None:
        super().__init__(text)
        self.status = status
        self.headers = [JSON, *headers]
        self.id: Id | None = None
        self._code = code
        self._data = data

    @property
    def body(self) -> bytes:
        """The error."""
        return encode_error(ErrorResponse(self.id, self._code, str(self), self._data))


def unavailable(text: str, seconds: float) -> Refused:
    """Refuse a request that may be repeated later (503).

    Args:
        text: The reason.
        seconds: Seconds after which the client may try again.
    """
    # Whole seconds: `Retry-After` has no fractions (RFC 9110 section 10.2.3).
    retry = (b"retry-after", b"%d" % seconds)
    return Refused(503, f"{text}; try again later", code=INTERNAL_ERROR, headers=[retry])


class Disconnected(Exception):
    """The client went away before it had sent its whole request."""


class HttpRequest:
    """One HTTP request: its head, and both directions of its connection.

    Args:
        scope: The ASGI scope.
        receive: Returns its body in parts, and a message when the client has gone.
        send: Takes the parts of the answer.

    Attributes:
        method: `POST` and the like.
        path: The path below the mount point of the application, without a slash at its end.
        headers: The headers by lower-case name, as text without white space around it; the values
            of a repeated one are joined by commas.
        principal: The verified principal; None where nobody is verified.
        extra: Headers that every answer to it has.
        size: Bytes of the body that was read.
        entered: The scope around the task that answers a POST; see `TaskScope`.
    """

    __slots__ = (
        "entered",
        "extra",
        "headers",
        "method",
        "path",
        "principal",
        "receive",
        "scope",
        "send",
        "size",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"][len(_mount_of(scope)) :].rstrip("/") or "/"
        self.headers: dict[str, str] = {}
        self.principal: Any = None
        self.extra: tuple[Header, ...] = ()
        self.size = 0
        self.entered: TaskScope | None = None
        headers = self.headers
        for raw, value in scope["headers"]:
            # latin-1 has a character for each byte: no header fails to decode, and none is changed.
            name = raw.decode("latin-1")
            # Only these two surround a value (RFC 9110 section 5.6.3); `strip()` alone would take
            # a no-break space as well.
            text = value.decode("latin-1").strip(" \t")
            headers[name] = f"{headers[name]}, {text}" if name in headers else text

    @property
    def whole_path(self) -> str:
        """The path from the root of the host, without a slash at its end."""
        path: str = self.scope["path"]
        root = "" if _mount_of(self.scope) else self.scope.get("root_path", "")
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

    async def read(self, limit: int, hold: Callable[[int], None]) -> bytes:
        """Read the whole body.

        Args:
            limit: Bytes that it may have.
            hold: Called with the length of each part, before it is kept.

        Raises:
            Refused: It is longer (413), or `hold` refuses it.
            Disconnected: The client went away.
        """
        body = bytearray()
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part: bytes = message.get("body", b"")
            # Before the part is kept: a limit that is checked afterwards is exceeded already.
            hold(len(part))
            self.size += len(part)
            if self.size > limit:
                raise Refused(413, f"The body is over {limit} bytes", code=INVALID_REQUEST)
            more = message.get("more_body", False)
            # Most bodies come in one part, which needs no copy.
            if not more and not body:
                return part
            body += part
            if not more:
                return bytes(body)

    async def gone(self) -> None:
        """Wait until the client has gone; once the body is read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def respond(
        self, status: int, body: bytes = b"", headers: Iterable[Header] = (JSON,)
    ) -> None:
        """Send a whole answer; to a client that has gone, nothing.

        Args:
            status: The HTTP status.
            body: The body.
            headers: The headers but for its length, and for `extra`.
        """
        length = (b"content-length", b"%d" % len(body))
        head = [*headers, *self.extra, length]
        try:
            await self.send({"type": "http.response.start", "status": status, "headers": head})
            await self.send({"type": "http.response.body", "body": body})
        except OSError:  # raised by hosts once the client has gone (ASGI 2.4)
            return


def _mount_of(scope: Scope) -> str:
    """Return the mount point if the path begins with it, as it does since version 2.4 of ASGI."""
    # Only at a whole segment: `/mcp` is no prefix of `/mcp-other`.
    path, root = scope["path"], scope.get("root_path", "")
    is_in_front = path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/")
    return root if is_in_front else ""
