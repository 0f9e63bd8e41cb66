"""JSON-RPC messages from bytes, under strict rules.

The text must be UTF-8, without NaN or Infinity, with finite numbers, bounded nesting and no lone
surrogates. A value that passes can be sent on, compared and validated by any program.

Input that breaks a rule becomes a `Malformed` with the error to answer, never an exception. The
error has the id of the message wherever the id is certain: an error without it leaves the sender
waiting for ever. An error with the wrong id fails another request of the sender, and so does an
error for an answer, since its id belongs to an outbound request.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from .._limits import DEFAULTS, RAISE_LIMIT, Limits
from .._value import JSONObject
from ._encode import has_lone_surrogate, render
from ._lines import HEAD, Oversized
from ._messages import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Batch,
    Decoded,
    ErrorResponse,
    Id,
    Malformed,
    Message,
    Notification,
    Received,
    Request,
    Response,
)

#: Bytes of the largest message that is parsed in a few milliseconds, whatever is in it.
LARGE: Final = 256 * 1024
#: Digits of the longest integer in a larger one: reading them takes quadratic time. CPython's own
#: limit cannot be set lower.
MAX_DIGITS: Final = sys.int_info.str_digits_check_threshold
_SPACE: Final = " \t\n\r"  # RFC 8259 section 2
_BOM: Final = "\ufeff"
_BEFORE_JSON: Final = frozenset((*_SPACE, _BOM))
# UTF-8 has no surrogates, so they can only come from an escape.
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


#: Bytes of the longest message that is read once more, leniently: a few milliseconds' worth.
MAX_LENIENT: Final = 256 * 1024

# `re` compiles these for the first message that needs it: most programs never see one.
# Members that stand before `params`, `result` or `error` and so belong to the message itself: an
# `id` further in may be one of the arguments.
# Strings without escapes, integers of at most 18 digits: neither takes more than linear time.
_MEMBER = rb'"(jsonrpc|method|id)"\s*:\s*("[^"\\\x00-\x1f]*"|-?(?:0|[1-9]\d{0,17}))\s*,\s*'
_LEADING = rb"(?:\xef\xbb\xbf)?\s*\{\s*((?:" + _MEMBER + rb")+)"
_ANSWER_KEYS: Final = (b'"result"', b'"error"')


class TooManyValuesError(ValueError):
    """JSON with more values than the limit."""


class UnfitValueError(ValueError):
    """JSON that can be parsed, and breaks another rule of this module.

    Attributes:
        value: The parsed value.
    """

    def __init__(self, text: str, value: object) -> None:
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


def _short_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"an integer has over {MAX_DIGITS} digits, in a large message")
    return int(text)


# Made once; `json.loads` with these options makes a decoder for every call.
_read = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).raw_decode
_read_large = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, parse_int=_short_integer
).raw_decode


def parse_json(
    data: bytes,
    max_depth: int = DEFAULTS.message_depth,
    max_values: int = DEFAULTS.message_values,
) -> Any:
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
        raise TooManyValuesError(f"more than {max_values} values")
    text = data.decode()
    # `raw_decode` accepts nothing before the value.
    if text[:1] in _BEFORE_JSON:
        text = text.removeprefix(_BOM).lstrip(_SPACE)
    value, end = (_read if len(data) <= LARGE else _read_large)(text)
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
    if b"\\u" in data and _SURROGATE_ESCAPE.search(data) and has_lone_surrogate(value):
        text = "a string holds a lone surrogate, which is no Unicode text"
        raise UnfitValueError(text, value)
    return value


def too_deep(value: object, limit: int) -> bool:
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
        id_, is_answer = _identify(error.value)
        return malformed(PARSE_ERROR, f"Parse error: {error}", id_, answer=not is_answer)
    except (ValueError, RecursionError) as error:
        refused = unreadable(data, PARSE_ERROR, f"Parse error: {describe(error)}")
        too_many = isinstance(error, TooManyValuesError)
        return _advised(refused, "message_values") if too_many else refused
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
    refused = unreadable(head[:HEAD], INVALID_REQUEST, f"Message over {limits.message_size} bytes")
    return _advised(refused, "message_size")


def _advised(refused: Malformed, limit: str) -> Malformed:
    """Name the limit that refuses an answer: only the caller, on this side, gets to read it."""
    if refused.answer:
        return refused
    text = f"{refused.error.message}; {RAISE_LIMIT.format(limit)}"
    return refused._replace(error=refused.error._replace(message=text))


def _not_an_object() -> Malformed:
    return malformed(INVALID_REQUEST, "Expected a JSON-RPC 2.0 object")


def _classify_batch(values: list[object], limit: int) -> Decoded:
    # JSON-RPC 2.0 section 6: one error, not an array, for an array that is empty.
    if not values:
        return malformed(INVALID_REQUEST, "An empty array is not a message")
    if len(values) > limit:
        return malformed(INVALID_REQUEST, f"More than {limit} messages in one array")
    # JSON-RPC 2.0 section 6: an invalid element gets an error of its own; the others are served.
    return Batch(
        tuple(_classify(value) if type(value) is dict else _not_an_object() for value in values)
    )


def _classify(value: JSONObject) -> Message | Malformed:
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


def _classify_answer(value: JSONObject) -> Message | Malformed:
    id_ = value.get("id")
    known = id_ if type(id_) is str or type(id_) is int else None
    # Invalid answers are not answered: their id is an outbound one, and errors could go to and fro
    # without end.
    is_answer = "method" not in value and ("result" in value or "error" in value)
    if value.get("jsonrpc") != "2.0":
        return malformed(
            INVALID_REQUEST, "Expected a JSON-RPC 2.0 object", known, answer=not is_answer
        )
    if not is_answer:
        text = "Not a valid JSON-RPC request, notification, or response"
        return malformed(INVALID_REQUEST, text, known)
    if "error" not in value and known is not None and type(value["result"]) is dict:
        return Response(known, value["result"])
    error = _read_error(value, known) if "error" in value else None
    return error or malformed(INVALID_REQUEST, "Not a valid JSON-RPC response", known, answer=False)


def _read_error(value: JSONObject, id_: Id | None) -> ErrorResponse | None:
    error = value["error"]
    # Exactly one of the two members (2025-11-25 `basic/index`, "Responses").
    if "result" in value or type(error) is not dict:
        return None
    code, message = error.get("code"), error.get("message")
    if type(code) is not int or type(message) is not str:
        return None
    return ErrorResponse(id_, code, message, error.get("data"))


# Salvage of the id from input that is not a valid message


def malformed(code: int, message: str, id_: Id | None = None, *, answer: bool = True) -> Malformed:
    """Make a `Malformed` with its error."""
    return Malformed(ErrorResponse(id_, code, message), answer)


def unreadable(data: bytes, code: int, message: str) -> Malformed:
    """Make the `Malformed` for text that cannot be read.

    Args:
        data: The text, or the head of a text over the size limit.
        code: The JSON-RPC error code to answer.
        message: The text to answer.

    Returns:
        A refusal with the id, if this certainly is the id of the message: it stands before `params`
        in the head, or the text has at most `MAX_LENIENT` bytes and parses once NaN and invalid
        UTF-8 are accepted. So the search takes little time, however large the text is.
    """
    id_, is_answer = _leading(data) or _lenient(data)
    return malformed(code, message, id_, answer=not is_answer)


def _leading(data: bytes) -> tuple[Id | None, bool] | None:
    found = re.match(_LEADING, data[:HEAD])
    if found is None:
        return None
    # The last of two equal names counts, as in the parser.
    members = dict(re.findall(_MEMBER, found[1]))
    # An answer shows itself by the member that follows; it must be recognized, since it must not be
    # answered.
    is_answer = b"method" not in members and data.startswith(_ANSWER_KEYS, found.end())
    if b"id" in members and (is_answer or b"method" in members):
        return _leading_id(members[b"id"]), is_answer
    return None


def _leading_id(text: bytes) -> Id | None:
    try:
        return _certain(json.loads(text.decode()))
    except UnicodeDecodeError:
        return None


def _lenient(data: bytes) -> tuple[Id | None, bool]:
    if len(data) > MAX_LENIENT:
        return None, False
    try:
        # Bad bytes become U+FFFD; `_certain` refuses an id that holds one.
        return _identify(json.loads(data.decode("utf-8", "replace").removeprefix("\ufeff")))
    except (ValueError, RecursionError):
        return None, False


def _identify(value: object) -> tuple[Id | None, bool]:
    if type(value) is not dict:
        return None, False
    is_answer = "method" not in value and ("result" in value or "error" in value)
    is_request = type(value.get("method")) is str
    return (_certain(value.get("id")) if is_request or is_answer else None), is_answer


def _certain(value: object) -> Id | None:
    if type(value) is int:
        return value
    # U+FFFD may stand for bytes that were no text, a surrogate cannot be sent back.
    if type(value) is str and "\ufffd" not in value and not has_lone_surrogate(value):
        return value
    return None


# The cost of a value: two bytes may become an object of a hundred, and everything that walks a
# message walks all of its values. Counting them in the text takes a fraction of the time of
# parsing.

#: Bytes that are cut into strings and the rest at a time: cut at once, the pieces would need many
#: times the size of the message.
_WINDOW: Final = 64 * 1024
#: Every value but the first has one of these before it.
_MARKS: Final = (b"[", b"{", b",")


def holds_more_values(data: bytes, limit: int) -> bool:
    """Tell whether JSON text holds more values than a limit, at any depth.

    Members and elements count, not the outermost value; an empty array or object counts twice.

    Args:
        data: The text. It need not be valid JSON; the marks outside of strings are counted.
        limit: The most values.
    """
    values = 0
    for part in _outside_strings(_without_escapes(data)):
        values += sum(map(part.count, _MARKS))
        if values > limit:
            return True
    return False


def _without_escapes(data: bytes) -> bytes:
    """Remove the escapes that a search for the ends of strings could mistake for one."""
    # Before windows are cut: none can split an escape.
    return data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """Yield the parts of JSON text that are in no string; the text must be without escapes."""
    inside = 0
    for start in range(0, len(data), _WINDOW):
        # Strings are left out first: they hold such marks, too, and are skipped fastest.
        parts = data[start : start + _WINDOW].split(b'"')
        yield b"".join(parts[inside::2])
        # An odd number of quotes: the next window begins inside of a string.
        inside ^= (len(parts) - 1) & 1


# The most bytes of CPython's objects for each mark in the text, with the value behind it: a list
# of one number, an object with one member, one more element or member. Growing tables reserve up
# to three times the space that they use. A string has two quotes, and its characters come on top.
_BYTES_OF: Final = {b"[": 120, b"{": 216, b",": 80}
_BYTES_OF_QUOTE: Final = 40
_BYTES_OF_ASCII_QUOTE: Final = 32
#: Bytes of the largest text whose marks are not counted.
_SHORT: Final = 1024
#: The most bytes of memory for one byte of text: that of objects in objects, with short names.
_DENSITY: Final = 64


def memory_bound(data: bytes, most: float = math.inf) -> int:
    """Bound the memory that the values of JSON text will take, without reading them.

    The bound of real messages is about twice the memory, that of the worst ones up to four times.
    It is rougher for text of up to 1024 bytes, for which it takes no time.

    Args:
        data: The text. It need not be valid JSON.
        most: The bound is no longer looked for once it is known to be above this.
    """
    if len(data) <= _SHORT:
        return _DENSITY * len(data)
    text = data.decode(errors="replace")
    size, quote = sys.getsizeof(text), _BYTES_OF_QUOTE
    if b"\\u" in data:
        # One wide character makes its whole string wide: two or four bytes for each character.
        size = max(size, len(text) * (4 if _SURROGATE_ESCAPE.search(data) else 2))
    elif text.isascii():
        quote = _BYTES_OF_ASCII_QUOTE
    data = _without_escapes(data)
    size += quote * data.count(b'"')
    for part in _outside_strings(data):
        size += sum(weight * part.count(mark) for mark, weight in _BYTES_OF.items())
        if size > most:
            break
    return size


def is_larger(value: object, size: int, values: int) -> bool:
    """Tell whether a JSON value exceeds a limit on data that is kept for long.

    Args:
        value: The value.
        size: The most bytes of its text.
        values: The most members and elements in it, at any depth.
    """
    text = render(value)
    return len(text) > size or holds_more_values(text, values)


def memory_of(value: object) -> int:
    """Add up the bytes of memory that a JSON value takes, parts shared with other values included.

    Args:
        value: The value; it must not contain itself.
    """
    size = 0
    # Level by level: recursion would need a stack as deep as the value.
    level = [value]
    while level:
        size += sum(map(sys.getsizeof, level))
        inner = [each for each in level if type(each) is dict]
        parts = [[*each, *each.values()] for each in inner]
        parts += [each for each in level if type(each) is list]
        level = [each for part in parts for each in part]
    return size
