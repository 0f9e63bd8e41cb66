"""The messages of JSON-RPC 2.0 as frozen values."""

from collections.abc import Mapping
from typing import Any, NamedTuple

#: A request id. `1` and `"1"` are two ids (MCP `basic/index`, "Requests").
Id = str | int


class Rendered(bytes):
    """A JSON value that is already text: UTF-8, compact, without a newline."""

    __slots__ = ()


class Encoded(bytes):
    """The bytes of a request or notification, with the message that they encode.

    A transport that sends each message by itself (HTTP) needs the id and method of every message;
    parsing our own bytes again would cost as much as parsing an answer.

    Attributes:
        message: The message.
    """

    # No slots: a subclass of `bytes` cannot have any.
    message: "Request | Notification"


class Request(NamedTuple):
    """A message that expects exactly one answer."""

    id: Id
    method: str
    params: dict[str, Any] | None = None


class Notification(NamedTuple):
    """A message that expects no answer."""

    method: str
    params: dict[str, Any] | None = None


class Response(NamedTuple):
    """The answer to the request with the same id."""

    id: Id
    result: Mapping[str, Any] | Rendered


class ErrorResponse(NamedTuple):
    """The answer to a failed request; `id` is None only if the id of the request was unreadable."""

    id: Id | None
    code: int
    message: str
    data: Any = None


class Malformed(NamedTuple):
    """Bytes that are no message.

    Attributes:
        error: The error to answer.
        answer: False when it looks like a response: answering those could go on for ever.
    """

    error: ErrorResponse
    answer: bool = True


class Batch(NamedTuple):
    """A JSON array of messages; only revision 2025-03-26 has them."""

    messages: "tuple[Message | Malformed, ...]"


Message = Request | Notification | Response | ErrorResponse
Decoded = Message | Malformed | Batch


class Received(NamedTuple):
    """One message as a stream received it: decoded, once and for all.

    Attributes:
        message: The message, or the refusal of something that is no message.
        data: Its bytes; of a message over the size limit only the first ones.
        size: The number of its bytes; None for a message over the size limit.
    """

    message: Decoded
    data: bytes
    size: int | None
