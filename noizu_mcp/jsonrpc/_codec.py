"""JSON text, and JSON-RPC messages: from bytes and back.

Strict on the way in: UTF-8, no NaN or Infinity, finite numbers, bounded nesting, no lone
surrogates. A value that passes can be sent on, compared and validated by any program. Input that
breaks a rule becomes a `Malformed` with the error to answer, never an exception.
"""

import json
import json.encoder
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from .._limits import DEFAULTS, Limits
from ._codes import INVALID_REQUEST, PARSE_ERROR
from ._cost import holds_more_values
from ._lines import Oversized
from ._messages import (
    Batch,
    Decoded,
    Encoded,
    ErrorResponse,
    Id,
    Malformed,
    Message,
    Notification,
    Received,
    Rendered,
    Request,
    Response,
)
from ._salvage import HEAD, malformed, unfit, unreadable

#: Nesting of a message; see `Limits.message_depth`.
MAX_DEPTH: Final = DEFAULTS.message_depth
#: Values in a message; see `Limits.message_values`.
MAX_VALUES: Final = DEFAULTS.message_values

_SPACE: Final = " \t\n\r"  # RFC 8259 section 2
_BOM: Final = "\ufeff"
_BEFORE_JSON: Final = frozenset((*_SPACE, _BOM))
# UTF-8 has no surrogates, so they can only come from an escape.
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class UnfitValueError(ValueError):
    """JSON that can be parsed, and breaks another rule of this module.

    Attributes:
        value: The parsed value.
    """

    def __init__(self, text: str, value: Any) -> None:
        super().__init__(text)
        self.value = value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    # `1e999` becomes infinity, which no JSON text can hold. Infinity minus itself is NaN.
    if value - value != 0.0:
        raise ValueError(f"{text[:32]} is beyond the range of a double")
    return value


# Made once; `json.loads` with these options makes a decoder for every call.
_read = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).raw_decode


def parse_json(data: bytes, max_depth: int = MAX_DEPTH, max_values: int = MAX_VALUES) -> Any:
    """Read JSON text under this module's rules.

    Args:
        data: The text in UTF-8; a byte order mark is skipped (RFC 8259 section 8.1).
        max_depth: How deep arrays and objects may nest.
        max_values: How many values it may hold; see `holds_more_values`.

    Raises:
        UnfitValueError: It nests deeper than `max_depth`, or has a string that JSON cannot carry
            between programs.
        ValueError: It is not UTF-8, not JSON, holds more than `max_values`, or a number that JSON
            cannot carry between programs.
        RecursionError: It nests deeper than the interpreter can parse.
    """
    # Before parsing: the values would exist otherwise, at up to fifty times the size of their text.
    # Each counted mark is a byte, so short text cannot hold too many.
    if len(data) > max_values and holds_more_values(data, max_values):
        raise ValueError(f"more than {max_values} values")
    text = data.decode()
    # `raw_decode` accepts nothing before the value.
    if text[:1] in _BEFORE_JSON:
        text = text.removeprefix(_BOM).lstrip(_SPACE)
    value, end = _read(text)
    if end != len(text) and text[end:].strip(_SPACE):
        raise ValueError(f"extra data after the first JSON value (char {end})")
    # A level takes two bytes, so short text cannot be too deep, nor can text with few brackets.
    if (
        len(data) > 2 * max_depth
        and data.count(b"{") + data.count(b"[") > max_depth
        and too_deep(value, max_depth)
    ):
        raise UnfitValueError(f"nested deeper than {max_depth} levels", value)
    # Three steps, each rarer than the one before: a pair of escapes is a valid character, and only
    # writing the value tells a pair from a lone surrogate.
    if b"\\u" in data and _SURROGATE_ESCAPE.search(data) and _has_lone_surrogate(value):
        text = "a string holds a lone surrogate, which is no Unicode text"
        raise UnfitValueError(text, value)
    return value


def too_deep(value: Any, limit: int) -> bool:
    """Tell whether arrays and objects nest deeper than `limit`; walks level by level, no stack."""
    level = [value] if type(value) is dict or type(value) is list else []
    for _ in range(limit):
        if not level:
            return False
        # A call for each value would double the time.
        level = [
            child
            for item in level
            for child in (item.values() if type(item) is dict else item)
            if type(child) is dict or type(child) is list
        ]
    return bool(level)


def _has_lone_surrogate(value: Any) -> bool:
    try:
        _write(value).encode()
    except UnicodeEncodeError:
        return True
    return False


def describe(error: Exception) -> str:
    """Describe for the peer the reason why `parse_json` refused a text."""
    if isinstance(error, UnicodeDecodeError):
        return "the bytes are not UTF-8"
    if isinstance(error, RecursionError):
        return "nested too deep to be read"
    # CPython refuses integers of more than 4300 digits, since reading them takes quadratic time.
    if "integer string conversion" in str(error):
        return "an integer has too many digits"
    return str(error)


def _refuse_object(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} has no JSON form")


def make_writer(native: Any) -> Callable[[Any], str]:
    """Make the function that writes values as compact JSON text.

    Args:
        native: `json.encoder.c_make_encoder`, or None where the interpreter has none.
    """
    slow = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_refuse_object
    )
    if native is None:
        return slow.encode
    # `JSONEncoder.encode` makes a new native encoder for every call, which costs as much as a
    # small message does. Without markers a cycle ends in RecursionError.
    write = native(
        None, _refuse_object, json.encoder.encode_basestring, None, ":", ",", False, False, False
    )
    return lambda value: "".join(write(value, 0))


_write = make_writer(getattr(json.encoder, "c_make_encoder", None))


def render(value: Any) -> Rendered:
    """Write a JSON value: compact, UTF-8, no newline.

    Text that is no Unicode (a lone surrogate, say from a file name) is sent with U+FFFD in its
    place: one odd character must not cost the peer the whole answer.

    Raises:
        ValueError: It holds NaN or Infinity, contains itself, or nests too deep.
        TypeError: It holds something that JSON has no form for.
    """
    try:
        text = _write(value)
    except RecursionError:
        raise ValueError("the value contains itself or nests too deep") from None
    try:
        return Rendered(text.encode())
    except UnicodeEncodeError:
        # Through UTF-16, where two halves of a pair become the one character that they mean.
        return Rendered(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())


def is_larger(value: Any, size: int, values: int) -> bool:
    """Tell whether a JSON value exceeds a limit on data that is kept for long.

    Args:
        value: The value.
        size: The most bytes of its text.
        values: The most members and elements in it, at any depth.
    """
    text = render(value)
    return len(text) > size or holds_more_values(text, values)


# Messages

#: Messages in one array (2025-03-26); see `Limits.batch`.
MAX_BATCH: Final = DEFAULTS.batch


def decode(data: bytes, limits: Limits = DEFAULTS) -> Decoded:
    """Read one message, or an array of messages, from its bytes.

    Args:
        data: UTF-8 JSON text, without framing.
        limits: Bounds its size, its values, its nesting and the messages of an array.

    Returns:
        The message, or a `Batch`, or a `Malformed` that holds the error to answer.
    """
    # Not every transport has a limit of its own: a message in memory has not passed a `LineBuffer`.
    if len(data) > limits.message_size:
        return too_large(data, limits)
    try:
        value = parse_json(data, limits.message_depth, limits.message_values)
    except UnfitValueError as error:
        # The value is at hand, so the id is certain, wherever it stands.
        return unfit(error.value, PARSE_ERROR, f"Parse error: {error}")
    except (ValueError, RecursionError) as error:
        return unreadable(data, PARSE_ERROR, f"Parse error: {describe(error)}")
    if type(value) is dict:
        return _classify(value)
    if type(value) is list:
        return _classify_batch(value, limits.batch)
    return _not_an_object()


def read_message(data: bytes | Oversized, limits: Limits = DEFAULTS) -> Received:
    """Decode one message of a stream, or refuse an oversized one.

    Args:
        data: The bytes of one message, or the head of one over the size limit.
        limits: See `decode`.
    """
    if isinstance(data, Oversized):
        return Received(too_large(data.head, limits), data.head, None)
    return Received(decode(data, limits), data, len(data))


def too_large(head: bytes, limits: Limits = DEFAULTS) -> Malformed:
    """Make the `Malformed` for a message over the size limit, from its first bytes."""
    text = f"Message over {limits.message_size} bytes"
    return unreadable(head[:HEAD], INVALID_REQUEST, text)


def _not_an_object() -> Malformed:
    return malformed(INVALID_REQUEST, "Expected a JSON-RPC 2.0 object")


def _classify_batch(values: list[Any], limit: int) -> Decoded:
    # JSON-RPC 2.0 section 6: one error, not an array, for an array that is empty.
    if not values:
        return malformed(INVALID_REQUEST, "An empty array is not a message")
    if len(values) > limit:
        return malformed(INVALID_REQUEST, f"More than {limit} messages in one array")
    # JSON-RPC 2.0 section 6: an invalid element gets an error of its own; the others are served.
    return Batch(
        tuple(_classify(value) if type(value) is dict else _not_an_object() for value in values)
    )


def _classify(value: dict[str, Any]) -> Message | Malformed:
    method = value.get("method")
    if type(method) is not str or value.get("jsonrpc") != "2.0":
        return _classify_answer(value)
    params = value.get("params")
    id_ = value.get("id")
    # A null id is refused (2025-11-25 `basic/index`, "Requests"), so a missing one must be told
    # from it. `type`, not `isinstance`: True is an int.
    if type(id_) is not str and type(id_) is not int and (id_ is not None or "id" in value):
        return malformed(INVALID_REQUEST, "id must be a string or integer")
    if params is not None and type(params) is not dict:
        # Notifications are never answered (2025-11-25 `basic/index`, "Notifications").
        text = "params must be an object"
        return malformed(INVALID_REQUEST, text, id_, answer=id_ is not None)
    return Notification(method, params) if id_ is None else Request(id_, method, params)


def _classify_answer(value: dict[str, Any]) -> Message | Malformed:
    id_ = value.get("id")
    known = id_ if type(id_) is str or type(id_) is int else None
    # Invalid answers are not answered: their id is one of ours, and errors could go to and fro
    # without end.
    is_answer = "method" not in value and ("result" in value or "error" in value)
    if value.get("jsonrpc") != "2.0":
        return malformed(
            INVALID_REQUEST, "Expected a JSON-RPC 2.0 object", known, answer=not is_answer
        )
    if not is_answer:
        text = "Not a valid JSON-RPC request, notification, or response"
        return malformed(INVALID_REQUEST, text, known)
    answer = _read_error(value, known) if "error" in value else _read_result(value, known)
    return answer or malformed(
        INVALID_REQUEST, "Not a valid JSON-RPC response", known, answer=False
    )


def _read_error(value: dict[str, Any], id_: Id | None) -> ErrorResponse | None:
    error = value["error"]
    # Exactly one of the two members (2025-11-25 `basic/index`, "Responses").
    if "result" in value or type(error) is not dict:
        return None
    code, message = error.get("code"), error.get("message")
    if type(code) is not int or type(message) is not str:
        return None
    return ErrorResponse(id_, code, message, error.get("data"))


def _read_result(value: dict[str, Any], id_: Id | None) -> Response | None:
    result = value["result"]
    return Response(id_, result) if id_ is not None and type(result) is dict else None


def encode(message: Message) -> bytes:
    """Write one message; raises as `render` does."""
    if isinstance(message, Response):
        return encode_result(message.id, message.result)
    if isinstance(message, ErrorResponse):
        return encode_error(message)
    return _encode_call(message)


def encode_result(id_: Id, result: Mapping[str, Any] | Rendered) -> bytes:
    """Write a response; a `Rendered` result is taken as it is."""
    body = result if type(result) is Rendered else render(result)
    # Put together from bytes: a result that was rendered once can be sent often, only copied.
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_render_id(id_), body)


def encode_error(error: ErrorResponse) -> bytes:
    """Write an error response; without an id if the id of the request could not be read.

    JSON-RPC 2.0 section 5 wants null there; the schemas of MCP since 2025-11-25 want nothing, and
    the older ones have no such answer.
    """
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    if error.id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % render(body)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_render_id(error.id), render(body))


def _render_id(id_: Id) -> bytes:
    return b"%d" % id_ if type(id_) is int else render(id_)


def _encode_call(message: Request | Notification) -> Encoded:
    value: dict[str, Any] = {"jsonrpc": "2.0"}
    if isinstance(message, Request):
        value["id"] = message.id
    value["method"] = message.method
    if message.params is not None:
        value["params"] = message.params
    encoded = Encoded(render(value))
    encoded.message = message
    return encoded


def encode_batch(answers: list[bytes]) -> bytes:
    """Write the answers to a `Batch` as one array (2025-03-26)."""
    return b"[" + b",".join(answers) + b"]"
