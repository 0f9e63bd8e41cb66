"""Mistakes in schemas, values that break one, and how values are shown in messages."""

from collections.abc import Iterable
from json import JSONEncoder, dumps
from typing import Any, NamedTuple

from ..._pointer import Path, pointer
from ..._util import shorten
from ..._value import JSONObject

# More are not corrected at a time, and each costs time to find and room in the message.
MAX_VIOLATIONS = 100
# A message is read by a model: a value is there to be recognised, not to be copied.
MAX_SHOWN = 60
# Rendering costs time as well as space: deeper values and later items are never looked at.
_SHOWN_DEPTH = 4
_SHOWN_ITEMS = 8
_LARGEST_SHOWN = 10**40
# Names in a path may be of any size where they are not declared.
_MAX_NAME = 200
_MAX_PLACE = 1000

# The keywords for which None in `got` is a null; for others nothing came.
_NULL_MAY_BREAK = ("type", "enum", "const")

# `dumps` makes an encoder for each call that asks for letters as they are.
_quote = JSONEncoder(ensure_ascii=False).encode


class Violation(NamedTuple):
    """One way in which a value breaks its schema.

    Attributes:
        path: Where in the value: keys and indexes from its root.
        keyword: The JSON Schema keyword that the value breaks; "" when the value is not JSON.
        message: The expected and the received value in words, one line, without the path.
        expected: The value of the keyword in the schema, the missing name, or None.
        got: The part of the value that breaks it: the value itself, or the unknown name.
        nearest: The declared name or value that was probably meant, if there is one.
    """

    path: Path
    keyword: str
    message: str
    expected: Any = None
    got: object = None
    nearest: str | None = None

    @property
    def pointer(self) -> str:
        """The path as a JSON Pointer (RFC 6901): `/items/0/qty`; "" is the root.

        Names are cut after 200 characters, and the whole after 1000.
        """
        return place(self.path)

    def to_wire(self) -> JSONObject:
        """Return a small JSON-ready dict, without empty keys.

        Values of more than 60 characters of JSON are replaced by their beginning, as text.
        """
        wire: JSONObject = {
            "path": self.pointer,
            "keyword": self.keyword,
            "message": self.message,
        }
        if self.expected is not None:
            wire["expected"] = _small(self.expected)
        if self.got is not None or self.keyword in _NULL_MAY_BREAK:
            wire["got"] = _small(self.got)
        if self.nearest is not None:
            wire["nearest"] = self.nearest
        return wire


class Fault(NamedTuple):
    """One thing that is wrong in a schema or a declaration, found when its class is made.

    Attributes:
        path: Where: keys and indexes into the schema, `("properties", "q", "minLenght")`, or the
            name of a field, `("limit",)`.
        text: The mistake and its correction, one line.
        owner: The class that declares it, if any; its source is searched for the line.
        line: The line inside JSON text, counted from 1, if the schema came as text.
        column: The column inside JSON text, counted from 1, if the schema came as text.
    """

    path: Path
    text: str
    owner: type | None = None
    line: int | None = None
    column: int | None = None


def place(path: Iterable[str | int]) -> str:
    """Return the JSON Pointer of a path to be shown: long names are cut, and long paths."""
    text = pointer(shorten(str(part), _MAX_NAME) for part in path)
    # The result may be sent, and a lone surrogate cannot be encoded.
    return shorten(text.encode("utf-8", "backslashreplace").decode("utf-8"), _MAX_PLACE)


def show(value: object, limit: int = MAX_SHOWN) -> str:
    """Return a value as JSON text on one line, at most `limit` characters long.

    Never raises. A value that JSON cannot express is shown in the nearest form.
    """
    return shorten(_render(value, _SHOWN_DEPTH), limit)


def _small(value: object) -> object:
    """Return the value if it is short JSON, else its beginning as text."""
    text = show(value, MAX_SHOWN + 1)
    if len(text) > MAX_SHOWN or "…" in text or not _is_plain(value):
        return show(value)
    return value


def _is_plain(value: object) -> bool:
    """Tell if the value can be sent as it is: JSON types only, finite, UTF-8 (and small)."""
    try:
        dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _render(value: object, depth: int) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (int, float, type(None))):
        return _scalar(value)
    if isinstance(value, (list, tuple)):
        return "[" + _joined((_render(item, depth - 1) for item in value), depth) + "]"
    if isinstance(value, dict):
        pairs = (f"{_render(name, 0)}: {_render(item, depth - 1)}" for name, item in value.items())
        return "{" + _joined(pairs, depth) + "}"
    return f"<{type(value).__name__}>"


def _scalar(value: object) -> str:
    if isinstance(value, int) and abs(value) >= _LARGEST_SHOWN:
        # str() of an int of more than 4300 digits raises; its size is all that a reader needs.
        return f"{'-' if value < 0 else ''}<integer of {value.bit_length()} bits>"
    # JSON writes integers as Python does, in a fraction of the time.
    return repr(value) if value.__class__ is int else dumps(value)


def _quoted(text: str) -> str:
    shown = text if len(text) <= MAX_SHOWN * 4 else text[: MAX_SHOWN * 4] + "…"
    return _quote(shown).encode("utf-8", "backslashreplace").decode("utf-8")


def _joined(parts: Iterable[str], depth: int) -> str:
    shown: list[str] = []
    for part in parts if depth > 0 else ():
        if len(shown) == _SHOWN_ITEMS:
            return ", ".join([*shown, "…"])
        shown.append(part)
    return ", ".join(shown) if depth > 0 else "…"
