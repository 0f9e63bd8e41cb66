"""The ASGI side: the head of a request, its body within bounds, and plain answers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ....engine import TaskScope
from ....jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, ErrorResponse, Id, encode_error
from ....types import Principal

if TYPE_CHECKING:
    from ._quotas import Hold

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

#: An extension of ASGI by our own host: it writes a part of the body of an answer at once, in the
#: loop's thread. Else a task would have to be woken for each stream that is told of a change, which
#: costs twice as much.
#:
#: Returns how many bytes are left; they are written before the next part that is sent in the usual
#: way, which may be empty. None: it cannot be written now, and nothing was.
WriteNowait = Callable[[bytes], int | None]
#: An extension of ASGI by our own host: the answer goes on after the application has returned. A
#: task that waits in the application would take more memory than everything else of a stream.
#:
#: Takes a function that is called if the client goes before the answer has ended. Returns one that
#: the application calls when it has nothing more to send; an answer without its end breaks off.
HandOver = Callable[[Callable[[], object]], Callable[[], None]]
#: Their names as attributes of `send`. Middleware that changes messages has a `send` of its own
#: without them, and so is not bypassed.
WRITE_NOWAIT: Final = "write_nowait"
HAND_OVER: Final = "hand_over"
#: Another one: True if the whole body of the request has come, so that nobody has to wait for it.
HAS_BODY: Final = "has_body"

#: The header that names the revision of a request, in lower case as ASGI hands it over.
VERSION: Final = b"mcp-protocol-version"
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
        self._code = code
        self._data = data

    def body(self, id_: Id | None) -> bytes:
        """Write the error.

        Args:
            id_: The id of the request, if that is known.
        """
        return encode_error(ErrorResponse(id_, self._code, str(self), self._data))


def unavailable(text: str, seconds: float) -> Refused:
    """Refuse a request that may be repeated later (503).

    Args:
        text: The reason.
        seconds: Seconds after which the client may try again.
    """
    # Whole seconds: `Retry-After` has no fractions (RFC 9110 section 10.2.3).
    retry = (b"retry-after", b"%d" % seconds)
    return Refused(503, f"{text}; try again later", code=INTERNAL_ERROR, headers=[retry])


def out_of_memory() -> Refused:
    """Refuse a request that there is no memory for (503)."""
    return unavailable("Too many bytes are held for clients", 1)


def _too_long(limit: int) -> Refused:
    return Refused(413, f"The body is over {limit} bytes", code=INVALID_REQUEST)


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
        headers: The headers by lower-case name, as they came; the values of a repeated one are
            joined by commas. `header` reads one of them.
        version: The value of `MCP-Protocol-Version`; None if it was not sent.
        has_body: True if it was known at the start that the whole body has come; see `HAS_BODY`.
        principal: The verified principal; None where nobody is verified.
        extra: Headers that every answer to it has.
        size: Bytes of the body that was read.
        id: The id of the JSON-RPC request in the body, once that is known.
        entered: The scope of the task that answers a POST.
        hold: Counts a POST, its bytes and those of its answer, until that is written.
        handed_over: True once the answer goes on without the task of the request.
    """

    # Defaults of the class: most requests need no store for them.
    principal: Principal | None = None
    extra: tuple[Header, ...] = ()
    size = 0
    id: Id | None = None
    handed_over = False
    entered: TaskScope
    hold: "Hold"

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        path: str = scope["path"]
        if scope.get("root_path"):
            path = path[len(mount_of(scope)) :]
        self.path = path.rstrip("/") or "/"
        pairs: Sequence[Header] = scope["headers"]
        # Not decoded: most headers of a request are never looked at.
        self.headers: dict[bytes, bytes] = dict(pairs)
        if len(self.headers) < len(pairs):
            self.headers = _join(pairs)
        self.version = self.header(VERSION)
        self.has_body: bool = getattr(send, HAS_BODY, False)

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

    async def read(self, limit: int) -> bytes:
        """Read the whole body; `hold` counts it.

        Args:
            limit: Bytes that it may have.

        Raises:
            Refused: It is longer (413), or there is no memory for it; see `too_large`.
            Disconnected: The client went away.
        """
        # Before the first part is asked for: a client that expects `100 Continue` must not send it.
        length = self.headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > limit:
            raise _too_long(limit)
        body = bytearray()
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part: bytes = message.get("body", b"")
            # Before the part is kept: a limit that is checked afterwards is exceeded already.
            if not self.hold.reserve(len(part)):
                raise self.too_large(len(part))
            self.size += len(part)
            if self.size > limit:
                raise _too_long(limit)
            more = message.get("more_body", False)
            # Most bodies come in one part, which needs no copy.
            if not more and not body:
                return part
            body += part
            if not more:
                return bytes(body)

    def too_large(self, size: int) -> Refused:
        """Refuse the request: there is no room for more bytes.

        Args:
            size: The bytes. If no client may hold as many the status is 413, else 503.
        """
        part = self.hold.account.accounts.part
        if self.hold.size + size > part:
            text = f"The request takes more memory than a client may use, {part} bytes"
            return Refused(413, text, code=INVALID_REQUEST)
        return out_of_memory()

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


def _join(pairs: Sequence[Header]) -> dict[bytes, bytes]:
    """Join the values of headers that were sent more than once (RFC 9110 section 5.2)."""
    joined: dict[bytes, bytes] = {}
    for name, value in pairs:
        joined[name] = b"%b, %b" % (joined[name], value) if name in joined else value
    return joined


def mount_of(scope: Scope) -> str:
    """Return the mount point if the path begins with it, as it does since version 2.4 of ASGI."""
    # Only at a whole segment: `/mcp` is no prefix of `/mcp-other`.
    path, root = scope["path"], scope.get("root_path", "")
    is_in_front = path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/")
    return root if is_in_front else ""
