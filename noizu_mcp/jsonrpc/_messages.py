"""The messages of JSON-RPC 2.0 as frozen values, and the codes of their errors.

Sources: JSON-RPC 2.0 sections 4 and 5; MCP 2026-07-28 `basic/index` (reserved range
-32020..-32099).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from .._value import JSONObject

#: A request id. `1` and `"1"` are two ids (MCP `basic/index`, "Requests").
Id = str | int


#: A result in pieces of JSON text, UTF-8 and compact. They are joined once, with the rest of the
#: answer: each step that added something around a long text would have to copy it.
Rendered = tuple[bytes, ...]


class Request(NamedTuple):
    """A message that expects exactly one answer."""

    id: Id
    method: str
    params: JSONObject | None = None


class Notification(NamedTuple):
    """A message that expects no answer."""

    method: str
    params: JSONObject | None = None


class Response(NamedTuple):
    """The answer to the request with the same id."""

    id: Id
    result: Mapping[str, object] | Rendered


class ErrorResponse(NamedTuple):
    """The answer to a failed request; `id` is None only if the id of the request was unreadable."""

    id: Id | None
    code: int
    message: str
    data: object = None


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


# Error codes

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

#: Before 2026-07-28 only; that revision forbids it and answers INVALID_PARAMS instead.
RESOURCE_NOT_FOUND: Final = -32002
#: 2025-11-25 only; 2026-07-28 asks with an `InputRequiredResult` and must not send this code.
URL_ELICITATION_REQUIRED: Final = -32042

#: 2026-07-28 only: the reserved range admits the codes of the specification, and no others.
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

#: Our own code: MCP has none. It is outside of the range that JSON-RPC reserves (-32768..-32000),
#: as 2026-07-28 `basic/index` asks of applications. HTTP answers 403.
INSUFFICIENT_SCOPE: Final = -31403
#: The same: a policy has denied a prompt, a resource or a completion.
DENIED: Final = -31404

#: A client that sees one of these talks to a 2026-07-28 server (versioning: "recognised" errors).
MODERN_CODES: Final = frozenset({HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION})

CODE_NAMES: Final = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    RESOURCE_NOT_FOUND: "Resource not found",
    URL_ELICITATION_REQUIRED: "URL elicitation required",
    HEADER_MISMATCH: "Header mismatch",
    MISSING_CLIENT_CAPABILITY: "Missing required client capability",
    UNSUPPORTED_VERSION: "Unsupported protocol version",
    INSUFFICIENT_SCOPE: "Insufficient scope",
    DENIED: "Denied",
}

#: The HTTP status that 2026-07-28 demands for an error; every other code travels with 200.
HTTP_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
