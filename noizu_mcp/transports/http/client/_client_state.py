"""State shared by all HTTP requests of one client: the session, the inbox, and refusals."""

from collections.abc import Callable, Mapping
from typing import Final

import attrs
import trio

from ...._errors import AuthError, McpError, ProtocolError, TransportError
from ...._limits import RAISE_LIMIT, Limits
from ....engine import SessionEnded, Unanswered, throttled_log
from ....jsonrpc import INVALID_REQUEST, ErrorResponse, Malformed, Received, decode, read_message
from ..._inbox import Inbox
from ._backend import CHALLENGES, ERROR_SIZE, Backend, StreamedResponse
from ._event_reader import EventParser, EventSizeError

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
SESSION: Final = "Mcp-Session-Id"
VERSION: Final = "MCP-Protocol-Version"
#: Maximum characters of a server's text that error messages and logs show.
SHOWN: Final = 200


@attrs.define(eq=False)
class ClientState:
    """State shared by all HTTP requests of one client.

    Attributes:
        shown: The URL of the server for error messages, without secrets.
        backend: Sends the requests.
        inbox: Gets the messages of all answers. A reader of an event stream waits for room after
            each message; a complete answer is in memory already, and requests in flight are
            limited.
        limits: The limits of one message of the server.
        session: The session id from the server; None before a handshake, and with a server without
            sessions.
        version: The revision of the handshake; None before it.
        reached: True once the server has answered any request.
        session_ended: Set when the GET stream finds that the session has ended.
        tell_gap: Called when the GET stream is resumed and may have lost messages.
    """

    shown: str
    backend: Backend
    inbox: Inbox[Received | Unanswered]
    limits: Limits
    session: str | None = None
    version: str | None = None
    reached: bool = False
    session_ended: trio.Event = attrs.field(factory=trio.Event)
    tell_gap: Callable[[], object] = attrs.field(default=lambda: None)

    def start_session(self, head: Mapping[str, str]) -> None:
        """Begin a session. Its revision is known once the client has accepted it.

        Args:
            head: The headers of the answer to `initialize`.
        """
        self.session, self.version = head.get(SESSION), None

    def session_headers(self) -> dict[str, str]:
        """Return the headers of every request in a session (2025-11-25 `basic/transports`)."""
        headers = {}
        if self.session is not None:
            headers[SESSION] = self.session
        if self.version is not None:
            headers[VERSION] = self.version
        return headers

    def is_stale(self, headers: Mapping[str, str]) -> bool:
        """Tell whether request headers name another session than the current one.

        Requests of the server on such a stream must not be answered: ids restart in each session,
        so the answer would be taken for the answer to another request.
        """
        return SESSION in headers and headers[SESSION] != self.session

    async def read_event_stream(
        self, answer: StreamedResponse, parser: EventParser, deliver: Callable[[Received], None]
    ) -> None:
        """Read an event stream to its end and deliver its messages.

        An event that is not JSON-RPC is logged and skipped: the answer may still follow.

        Args:
            answer: The answer whose body is the stream.
            parser: Keeps the place in the stream, for a later resumption.
            deliver: Called with each message.

        Raises:
            ProtocolError: An event is over the size limit.
            NetworkFailure: The stream broke; raised by the block that owns the answer.
        """
        parser.begin()
        try:
            while chunk := await answer.read_chunk():
                for event in parser.feed(chunk):
                    if event.type != "message" or not event.data:
                        continue
                    received = read_message(event.data, self.limits)
                    if isinstance(received.message, Malformed):
                        text = "skipped an event that is not a JSON-RPC message: %r"
                        throttled_log.warning(text, text, event.data[:SHOWN])
                    else:
                        deliver(received)
                        await self.inbox.room()
        except EventSizeError:
            raise ProtocolError(f"an event of the server {over(self.limits)}") from None

    def refusal(
        self, answer: StreamedResponse, error: ErrorResponse | None, *, in_session: bool
    ) -> Exception:
        """Make the exception for an HTTP status that refuses a request.

        Args:
            answer: The answer of the server.
            error: The JSON-RPC error in its body, if there is one.
            in_session: The request named a session; then 404 means that it has ended.
        """
        said = "" if error is None else f": {error.message[:SHOWN]}"
        text = f"{self.shown} answered {answer.title}{said}"
        if answer.status in CHALLENGES:
            from ....auth.client import explain_refusal

            wanted = explain_refusal(answer.headers, had_auth=self.backend.auth is not None)
            return AuthError(text + wanted)
        if answer.status == 404 and in_session:
            return SessionEnded(f"the server has ended the session ({text})")
        if answer.status == 404 and (error is None or error.code == INVALID_REQUEST):
            return TransportError(self._explain_404(text, error), status=404)
        # A 5xx often comes from a proxy. Its body is not the server's answer to the request.
        if error is not None and answer.status < 500:
            return McpError(error.code, error.message, error.data)
        if 300 <= answer.status < 400:
            text += f"; it has moved to {answer.headers.get('location', 'nowhere')[:SHOWN]}"
        return TransportError(text, status=answer.status)

    def _explain_404(self, text: str, error: ErrorResponse | None) -> str:
        """Name the endpoint in the text, if it is known."""
        data = None if error is None else error.data
        endpoint = data.get("endpoint") if isinstance(data, Mapping) else None
        if isinstance(endpoint, str):
            return f"nothing is at {self.shown}; the endpoint is {endpoint[:SHOWN]}"
        # Only for a URL without a path: a guess would mislead users with the right path.
        has_path = "/" in self.shown.partition("://")[2].rstrip("/")
        return text if has_path else f"{text}; most servers are at /mcp"


def over(limits: Limits) -> str:
    """Return the error text for an answer over the size limit."""
    text = f"is over the size limit of {limits.message_size} bytes"
    return f"{text}; {RAISE_LIMIT.format('message_size')}"


async def read_refusal(answer: StreamedResponse) -> tuple[bytes, ErrorResponse | None]:
    """Read the body of a refusal.

    Returns:
        The body, and the JSON-RPC error in it; None if it is something else.
    """
    # A long body, such as an HTML page of a proxy, is not read: the status is enough.
    body = await answer.read(ERROR_SIZE) or b""
    message = decode(body) if answer.media_type == JSON else None
    return body, message if isinstance(message, ErrorResponse) else None
