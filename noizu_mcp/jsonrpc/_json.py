"""JSON text and JSON values.

Strict on the way in: UTF-8, no NaN or Infinity, finite numbers, bounded nesting, no lone
surrogates. What passes can be sent on, compared and validated by any program.
"""

import json
import json.encoder
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from .._limits import DEFAULTS
from ._cost import holds_more_values
from ._messages import Rendered

#: Nesting of a message; see `Limits.message_depth`.
MAX_DEPTH: Final = DEFAULTS.message_depth
#: Values in a message; see `Limits.message_values`.
MAX_VALUES: Final = DEFAULTS.message_values

_SPACE: Final = " \t\n\r"  # RFC 8259 section 2
_BOM: Final = "\ufeff"
_BEFORE_JSON: Final = frozenset((*_SPACE, _BOM))
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class UnfitValueError(ValueError):
    """JSON that can be read, and breaks another rule of this module.

    Attributes:
        value: What it says.
    """

    def __init__(self, text: str, value: Any) -> None:
        super().__init__(text)
        self.value = value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0.0:
        raise ValueError(f"{text[:32]} is beyond the range of a double")
    return value


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
    if len(data) > max_values and holds_more_values(data, max_values):
        raise ValueError(f"more than {max_values} values")
    text = data.decode()
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
    """Say in words for the peer why `parse_json` refused a text."""
    if isinstance(error, UnicodeDecodeError):
        return "the bytes are not UTF-8"
    if isinstance(error, RecursionError):
        return "nested too deep to be read"
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
        return Rendered(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())


def is_larger(value: Any, size: int, values: int) -> bool:
    """Tell whether a JSON value is larger than what may be kept of a message.

    Args:
        value: The value.
        size: Bytes that its text may have.
        values: Members and elements that it may have, at any depth.
    """
    text = render(value)
    return len(text) > size or holds_more_values(text, values)
