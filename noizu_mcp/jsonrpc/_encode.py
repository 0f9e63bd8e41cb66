"""JSON-RPC messages to bytes: compact JSON, and answers put together from rendered parts."""

import hashlib
import json
import json.encoder
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .._value import JSONObject
from ._messages import (
    ErrorResponse,
    Id,
    Message,
    Notification,
    Rendered,
    Request,
    Response,
)


def _refuse_object(value: object) -> NoReturn:
    raise TypeError(f"{type(value).__name__} has no JSON form")


def make_writer(
    native: Any, *, sort_keys: bool = False, default: Callable[[Any], Any] = _refuse_object
) -> Callable[[Any], str]:
    """Make the function that writes values as compact JSON text.

    Args:
        native: `json.encoder.c_make_encoder`, or None where the interpreter has none.
        sort_keys: Write the members of an object in the order of their names.
        default: Converts a value that JSON has no form for, or raises TypeError.
    """
    slow = json.JSONEncoder(
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
        sort_keys=sort_keys,
        default=default,
    )
    if native is None:
        return slow.encode
    # `JSONEncoder.encode` makes a new native encoder for every call, which costs as much as a
    # small message does. Without markers a cycle ends in RecursionError.
    write = native(
        None, default, json.encoder.encode_basestring, None, ":", ",", sort_keys, False, False
    )
    return lambda value: "".join(write(value, 0))


_native = getattr(json.encoder, "c_make_encoder", None)
_write = make_writer(_native)
# The one class of values in our own objects that `json` does not know is the read-only mapping.
_write_sorted = make_writer(_native, sort_keys=True, default=dict)


def digest_of(value: object) -> str:
    """Hash a JSON value with SHA-256, in hex; the order of keys in an object does not matter.

    Raises as `render_sorted`.
    """
    return hashlib.sha256(render_sorted(value)).hexdigest()


def render_sorted(value: object) -> bytes:
    """Write a JSON value in a form that equal values share, for a digest; mappings may be in it.

    Raises:
        ValueError: It holds NaN or Infinity, contains itself, or nests too deep.
        TypeError: It holds something that JSON has no form for.
    """
    try:
        return _write_sorted(value).encode("utf-8", "surrogatepass")
    except RecursionError:
        raise ValueError("the value contains itself or nests too deep") from None


def render(value: object) -> bytes:
    """Write a JSON value: compact, UTF-8, no newline.

    Text that is no Unicode (a lone surrogate, say from a file name) is sent with U+FFFD in its
    place: one odd character must not cost the peer the whole answer.

    Raises:
        ValueError: It holds NaN or Infinity, contains itself, or nests too deep.
        TypeError: It holds something that JSON has no form for.
    """
    try:
        return _to_bytes(_write(value))
    except RecursionError:
        raise ValueError("the value contains itself or nests too deep") from None


def render_text(text: str) -> bytes:
    """Write a JSON string, as `render` does."""
    return _to_bytes(json.encoder.encode_basestring(text))


def _to_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, where two halves of a pair become the one character that they mean.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def has_lone_surrogate(value: object) -> bool:
    """Tell whether a string in a value cannot be written as UTF-8."""
    try:
        _write(value).encode()
    except UnicodeEncodeError:
        return True
    return False


def encode(message: Message) -> bytes:
    """Write one message; raises as `render` does."""
    if isinstance(message, Response):
        return encode_result(message.id, message.result)
    if isinstance(message, ErrorResponse):
        return encode_error(message)
    return _encode_call(message)


def encode_result(id_: Id, result: Mapping[str, object] | Rendered) -> bytes:
    """Write a response; a `Rendered` result is JSON text already. Raises as `render`."""
    if isinstance(result, tuple):
        return b"".join((b'{"jsonrpc":"2.0","id":', _render_id(id_), b',"result":', *result, b"}"))
    return render({"jsonrpc": "2.0", "id": id_, "result": result})


def encode_error(error: ErrorResponse) -> bytes:
    """Write an error response; without an id if the id of the request could not be read.

    JSON-RPC 2.0 section 5 wants null there; the schemas of MCP since 2025-11-25 want nothing, and
    the older ones have no such answer.
    """
    body: JSONObject = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    if error.id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % render(body)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_render_id(error.id), render(body))


def _render_id(id_: Id) -> bytes:
    return b"%d" % id_ if type(id_) is int else render(id_)


def _encode_call(message: Request | Notification) -> bytes:
    value: JSONObject = {"jsonrpc": "2.0"}
    if isinstance(message, Request):
        value["id"] = message.id
    value["method"] = message.method
    if message.params is not None:
        value["params"] = message.params
    return render(value)


def encode_batch(answers: list[bytes]) -> bytes:
    """Write the answers to a `Batch` as one array (2025-03-26)."""
    # One copy: the answers may be large.
    parts = [part for answer in answers for part in (b",", answer)]
    parts[:1] = [b"["]
    return b"".join((*parts, b"]"))
