"""Bytes to messages and back.

Strict on the way in: UTF-8, JSON without NaN or Infinity, finite numbers, bounded nesting, no lone
surrogates. Whatever breaks that becomes a `Malformed` with the error to answer, never an exception.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from ._codes import INVALID_REQUEST, PARSE_ERROR
from ._messages import (
    Batch,
    Decoded,
    ErrorResponse,
    Id,
    Malformed,
    Message,
    Notification,
    Rendered,
    Request,
    Response,
)

#: Nesting of a message. Real ones stay below 20; validators recurse, and C stacks are finite.
MAX_DEPTH: Final = 128
#: Messages in one array (2025-03-26): each costs a task, so an array must not multiply at will.
MAX_BATCH: Final = 100

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_LEADING_ID = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,18}|"[^"\\]*")\s*,'
)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0.0:
        raise ValueError(f"{text[:32]} is beyond the range of a double")
    return value


_decode_json = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).decode
_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def decode(data: bytes) -> Decoded:
    """Read one message, or an array of messages, from its bytes.

    Args:
        data: UTF-8 JSON text, without framing.

    Returns:
        The message, or a `Batch`, or a `Malformed` that holds the error to answer.
    """
    try:
        value = parse_json(data)
    except (ValueError, RecursionError) as error:
        return malformed(PARSE_ERROR, f"Parse error: {_reason(error)}", recover_id(data))
    if type(value) is dict:
        return _classify(value)
    if type(value) is list:
        return _classify_batch(value)
    return malformed(INVALID_REQUEST, "Expected a JSON-RPC 2.0 object")


def parse_json(data: bytes) -> Any:
    """Read JSON text under this module's rules.

    Raises:
        ValueError: It is not UTF-8, not JSON, nests deeper than `MAX_DEPTH`, or holds a number or
            a string that JSON cannot carry between programs.
        RecursionError: It nests deeper than the interpreter can parse.
    """
    text = data.decode()
    value = _decode_json(text.removeprefix("\ufeff"))
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and too_deep(value, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if _SURROGATE_ESCAPE.search(data) and _has_lone_surrogate(value):
        raise ValueError("a string holds a lone surrogate, which is no Unicode text")
    return value


def too_deep(value: Any, limit: int) -> bool:
    """Tell whether arrays and objects nest deeper than `limit`; walks level by level, no stack."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for item in level
            if type(item) is dict or type(item) is list
            for child in (item.values() if type(item) is dict else item)
        ]
        if not level:
            return False
    return True


def _has_lone_surrogate(value: Any) -> bool:
    try:
        _encode_json(value).encode()
    except UnicodeEncodeError:
        return True
    return False


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "the bytes are not UTF-8"
    if isinstance(error, RecursionError):
        return f"nested deeper than {MAX_DEPTH} levels"
    if "limit" in str(error) and "digits" in str(error):
        return "an integer has too many digits"
    return str(error)


def recover_id(data: bytes) -> Id | None:
    """Find the id of a message that cannot be parsed, so that its sender need not wait for ever.

    Only an id that certainly belongs to the message itself counts: one that stands before
    `params`, or one in text that parses once NaN and the like are let through.
    """
    if found := _LEADING_ID.match(data):
        return _valid_id(json.loads(found[1].decode("utf-8", "replace")))
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return _valid_id(value.get("id")) if type(value) is dict else None


def _valid_id(value: Any) -> Id | None:
    if type(value) is int:
        return value
    if type(value) is str and value.isprintable():
        return value
    return None


def malformed(code: int, message: str, id_: Id | None = None, *, answer: bool = True) -> Malformed:
    """Make a `Malformed` with its error."""
    return Malformed(ErrorResponse(id_, code, message), answer)


def _classify_batch(values: list[Any]) -> Decoded:
    if not values:
        return malformed(INVALID_REQUEST, "An empty array is not a message")
    if len(values) > MAX_BATCH:
        return malformed(INVALID_REQUEST, f"More than {MAX_BATCH} messages in one array")
    return Batch(
        tuple(
            _classify(value)
            if type(value) is dict
            else malformed(INVALID_REQUEST, "Expected a JSON-RPC 2.0 object")
            for value in values
        )
    )


def _classify(value: dict[str, Any]) -> Message | Malformed:
    method = value.get("method")
    if type(method) is not str or value.get("jsonrpc") != "2.0":
        return _classify_answer(value)
    params = value.get("params")
    id_ = value.get("id")
    if type(id_) is not str and type(id_) is not int and (id_ is not None or "id" in value):
        return malformed(INVALID_REQUEST, "id must be a string or an integer")
    if params is not None and type(params) is not dict:
        return malformed(INVALID_REQUEST, "params must be an object", id_)
    return Notification(method, params) if id_ is None else Request(id_, method, params)


def _classify_answer(value: dict[str, Any]) -> Message | Malformed:
    id_ = value.get("id")
    known = id_ if type(id_) is str or type(id_) is int else None
    is_answer = "method" not in value and ("result" in value or "error" in value)
    if value.get("jsonrpc") != "2.0":
        return malformed(
            INVALID_REQUEST, "Expected a JSON-RPC 2.0 object", known, answer=not is_answer
        )
    if not is_answer:
        return malformed(INVALID_REQUEST, "Not a JSON-RPC request, notification or response", known)
    answer = _read_error(value, known) if "error" in value else _read_result(value, known)
    return answer or malformed(INVALID_REQUEST, "Not a JSON-RPC response", known, answer=False)


def _read_error(value: dict[str, Any], id_: Id | None) -> ErrorResponse | None:
    error = value["error"]
    if "result" in value or type(error) is not dict:
        return None
    code, message = error.get("code"), error.get("message")
    if type(code) is not int or type(message) is not str:
        return None
    return ErrorResponse(id_, code, message, error.get("data"))


def _read_result(value: dict[str, Any], id_: Id | None) -> Response | None:
    result = value["result"]
    return Response(id_, result) if id_ is not None and type(result) is dict else None


def render(value: Any) -> Rendered:
    """Write a JSON value: compact, UTF-8, no newline.

    Text that is no Unicode (a lone surrogate, say from a file name) is sent with U+FFFD in its
    place: one odd character must not cost the peer the whole answer.

    Raises:
        ValueError: It holds NaN or Infinity, or contains itself.
        TypeError: It holds something that JSON has no form for.
    """
    text = _encode_json(value)
    try:
        return Rendered(text.encode())
    except UnicodeEncodeError:
        return Rendered(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())


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
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_render_id(id_), body)


def encode_error(error: ErrorResponse) -> bytes:
    """Write an error response; an unknown id is written as null, as JSON-RPC 2.0 section 5 says."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    id_ = b"null" if error.id is None else _render_id(error.id)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id_, render(body))


def _render_id(id_: Id) -> bytes:
    return b"%d" % id_ if type(id_) is int else render(id_)


def _encode_call(message: Request | Notification) -> bytes:
    value: dict[str, Any] = {"jsonrpc": "2.0"}
    if isinstance(message, Request):
        value["id"] = message.id
    value["method"] = message.method
    if message.params is not None:
        value["params"] = message.params
    return bytes(render(value))


def encode_batch(answers: list[bytes]) -> bytes:
    """Write the answers to a `Batch` as one array (2025-03-26)."""
    return b"[" + b",".join(answers) + b"]"
