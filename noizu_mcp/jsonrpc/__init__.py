"""JSON-RPC 2.0: messages, their bytes, and newline framing. No I/O."""

from .._util import publish
from ._codec import MAX_BATCH as MAX_BATCH
from ._codec import MAX_DEPTH as MAX_DEPTH
from ._codec import decode as decode
from ._codec import encode as encode
from ._codec import encode_batch as encode_batch
from ._codec import encode_error as encode_error
from ._codec import encode_result as encode_result
from ._codec import is_larger as is_larger
from ._codec import parse_json as parse_json
from ._codec import read_message as read_message
from ._codec import render as render
from ._codec import too_deep as too_deep
from ._codec import too_large as too_large
from ._codes import CODE_NAMES as CODE_NAMES
from ._codes import HEADER_MISMATCH as HEADER_MISMATCH
from ._codes import HTTP_STATUS as HTTP_STATUS
from ._codes import INSUFFICIENT_SCOPE as INSUFFICIENT_SCOPE
from ._codes import INTERNAL_ERROR as INTERNAL_ERROR
from ._codes import INVALID_PARAMS as INVALID_PARAMS
from ._codes import INVALID_REQUEST as INVALID_REQUEST
from ._codes import METHOD_NOT_FOUND as METHOD_NOT_FOUND
from ._codes import MISSING_CLIENT_CAPABILITY as MISSING_CLIENT_CAPABILITY
from ._codes import MODERN_CODES as MODERN_CODES
from ._codes import PARSE_ERROR as PARSE_ERROR
from ._codes import RESOURCE_NOT_FOUND as RESOURCE_NOT_FOUND
from ._codes import UNSUPPORTED_VERSION as UNSUPPORTED_VERSION
from ._codes import URL_ELICITATION_REQUIRED as URL_ELICITATION_REQUIRED
from ._cost import holds_more_values as holds_more_values
from ._cost import memory_of as memory_of
from ._lines import MAX_MESSAGE as MAX_MESSAGE
from ._lines import LineBuffer as LineBuffer
from ._lines import Oversized as Oversized
from ._messages import Batch as Batch
from ._messages import Decoded as Decoded
from ._messages import Encoded as Encoded
from ._messages import ErrorResponse as ErrorResponse
from ._messages import Id as Id
from ._messages import Malformed as Malformed
from ._messages import Message as Message
from ._messages import Notification as Notification
from ._messages import Received as Received
from ._messages import Rendered as Rendered
from ._messages import Request as Request
from ._messages import Response as Response
from ._salvage import HEAD as HEAD
from ._salvage import malformed as malformed
from ._salvage import salvage_id as salvage_id
from ._salvage import unreadable as unreadable

__all__ = [
    "CODE_NAMES",
    "HEAD",
    "HEADER_MISMATCH",
    "HTTP_STATUS",
    "INSUFFICIENT_SCOPE",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "MAX_BATCH",
    "MAX_DEPTH",
    "MAX_MESSAGE",
    "METHOD_NOT_FOUND",
    "MISSING_CLIENT_CAPABILITY",
    "MODERN_CODES",
    "PARSE_ERROR",
    "RESOURCE_NOT_FOUND",
    "UNSUPPORTED_VERSION",
    "URL_ELICITATION_REQUIRED",
    "Batch",
    "Decoded",
    "Encoded",
    "ErrorResponse",
    "Id",
    "LineBuffer",
    "Malformed",
    "Message",
    "Notification",
    "Oversized",
    "Received",
    "Rendered",
    "Request",
    "Response",
    "decode",
    "encode",
    "encode_batch",
    "encode_error",
    "encode_result",
    "holds_more_values",
    "is_larger",
    "malformed",
    "memory_of",
    "parse_json",
    "read_message",
    "render",
    "salvage_id",
    "too_deep",
    "too_large",
    "unreadable",
]

publish(globals())
