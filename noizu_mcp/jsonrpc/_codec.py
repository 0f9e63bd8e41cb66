"""Bytes to messages and back.

Whatever breaks a rule becomes a `Malformed` with the error to answer, never an exception.
"""

from collections.abc import Mapping
from typing import Any, Final

from .._limits import DEFAULTS, Limits
from ._codes import INVALID_REQUEST, PARSE_ERROR
from ._json import UnfitValueError, describe, parse_json, render
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
from ._salvage import HEAD, malformed, unfit, unreadable

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
    if len(data) > limits.message_size:
        return too_large(data, limits)
    try:
        value = parse_json(data, limits.message_depth, limits.message_values)
    except UnfitValueError as error:
        return unfit(error.value, PARSE_ERROR, f"Parse error: {error}")
    except (ValueError, RecursionError) as error:
        return unreadable(data, PARSE_ERROR, f"Parse error: {describe(error)}")
    if type(value) is dict:
        return _classify(value)
    if type(value) is list:
        return _classify_batch(value, limits.batch)
    return _not_an_object()


def too_large(head: bytes, limits: Limits = DEFAULTS) -> Malformed:
    """Make the `Malformed` for a message over the size limit, from its first bytes."""
    text = f"Message over {limits.message_size} bytes"
    return unreadable(head[:HEAD], INVALID_REQUEST, text)


def _not_an_object() -> Malformed:
    return malformed(INVALID_REQUEST, "Expected a JSON-RPC 2.0 object")


def _classify_batch(values: list[Any], limit: int) -> Decoded:
    if not values:
        return malformed(INVALID_REQUEST, "An empty array is not a message")
    if len(values) > limit:
        return malformed(INVALID_REQUEST, f"More than {limit} messages in one array")
    return Batch(
        tuple(_classify(value) if type(value) is dict else _not_an_object() for value in values)
    )


def _classify(value: dict[str, Any]) -> Message | Malformed:
    method = value.get("method")
    if type(method) is not str or value.get("jsonrpc") != "2.0":
        return _classify_answer(value)
    params = value.get("params")
    id_ = value.get("id")
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
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_render_id(id_), body)


def encode_error(error: ErrorResponse) -> bytes:
    """Write an error response; without an id when that of the request could not be read.

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
