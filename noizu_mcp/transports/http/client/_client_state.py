"""What the requests of one client share, and how their answers are read."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs
import trio

from ...._errors import AuthError, McpError, ProtocolError, TransportError
from ...._limits import Limits
from ....engine import SessionEnded
from ....jsonrpc import ErrorResponse, decode
from ....protocol import HANDSHAKE_VERSIONS
from ._backend import Answer, Backend
from ._event_reader import EventParser, EventTooLarge
from ._received import Inbox

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
SESSION: Final = "Mcp-Session-Id"
VERSION: Final = "MCP-Protocol-Version"
#: Other credentials are wanted, whatever else is said.
CHALLENGES: Final = (401, 403)
#: Bytes of an error that are looked at.
ERROR_SIZE: Final = 64 * 1024
SHOWN: Final = 200
#: Seconds before coming back to a stream that says nothing about it, and at most.
RETRY: Final = 1.0
MAX_RETRY: Final = 60.0


@attrs.define(eq=False)
class Shared:
    """What the requests of one client share.

    Attributes:
        shown: The URL for messages.
        backend: Sends them.
        inbox: Where what comes goes.
        limits: Of one message.
        session: The id that the server gave; None: none, or no handshake yet.
        version: The revision of the handshake; None before it.
        reached: True once the server has answered anything.
        ended: Set once the server says, with no request asked, that the session is over.
    """

    shown: str
    backend: Backend
    inbox: Inbox
    limits: Limits
    session: str | None = None
    version: str | None = None
    reached: bool = False
    ended: trio.Event = attrs.field(factory=trio.Event)

    def begin(self, head: Mapping[str, str], result: Any) -> None:
        """Note what `initialize` was answered with, for all that follows.

        Args:
            head: The headers of the answer.
            result: Its result.
        """
        version = result.get("protocolVersion") if isinstance(result, Mapping) else None
        self.version = version if version in HANDSHAKE_VERSIONS else None
        self.session = head.get(SESSION)

    def headers(self) -> dict[str, str]:
        """Write what every request has once there is a session (2025-11-25 `basic/transports`)."""
        headers = {}
        if self.session is not None:
            headers[SESSION] = self.session
        if self.version is not None:
            headers[VERSION] = self.version
        return headers

    def is_over(self, headers: Mapping[str, str]) -> bool:
        """Tell whether a session has begun since these headers were written.

        The answer to a question of an earlier one would be taken for that to another question.
        """
        return SESSION in headers and headers[SESSION] != self.session


async def read_events(
    answer: Answer, parser: EventParser, take: Callable[[bytes], Awaitable[None]]
) -> None:
    """Read an event stream to its end.

    Args:
        answer: Its body is the stream.
        parser: Keeps the place in it.
        take: Gets each message.

    Raises:
        ProtocolError: A message is over the size limit.
        NetworkFailure: The stream broke, from the block that holds the answer.
    """
    parser.begin()
    try:
        while chunk := await answer.next():
            for event in parser.feed(chunk):
                if event.type == "message" and event.data:
                    await take(event.data)
    except EventTooLarge:
        raise ProtocolError("the server sent an event over the size limit") from None


def pause(parser: EventParser, failures: int) -> float:
    """Say how long to wait before coming back to a stream.

    Args:
        parser: Knows what the stream has said about it.
        failures: Attempts that failed since it last went well.
    """
    first = RETRY if parser.retry is None else parser.retry
    return min(max(first, RETRY * failures) * 2.0 ** min(failures, 10), max(first, MAX_RETRY))


async def read_error(answer: Answer) -> tuple[bytes, ErrorResponse | None]:
    """Read the body of a refusal.

    Returns:
        The body, and the JSON-RPC error that it is, if it is one.
    """
    body = await answer.read(ERROR_SIZE) or b""
    message = decode(body) if answer.kind == JSON else None
    return body, message if isinstance(message, ErrorResponse) else None


def refusal(
    shared: Shared, answer: Answer, error: ErrorResponse | None, *, in_session: bool
) -> Exception:
    """Make the exception for an answer that is none.

    Args:
        shared: Whose it is.
        answer: The answer.
        error: What it says.
        in_session: The request named a session.
    """
    said = "" if error is None else f": {error.message[:SHOWN]}"
    text = f"{shared.shown} answered {answer.title}{said}"
    if answer.status in CHALLENGES:
        return AuthError(text)
    if answer.status == 404 and in_session:
        return SessionEnded(f"the server has ended the session ({text})")
    if error is not None and answer.status < 500:
        return McpError(error.code, error.message, error.data)
    if 300 <= answer.status < 400:
        text += f"; it has moved to {answer.headers.get('location', 'nowhere')[:SHOWN]}"
    return TransportError(text, status=answer.status)
