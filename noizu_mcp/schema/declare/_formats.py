"""Python types that travel as text: dates, times, UUIDs, decimals, bytes.

The types are recognised by name: only a program that uses one has paid for its module. `format` is
an annotation in JSON Schema (2020-12 validation, section 7.2.1), so text that does not parse is
refused by our own check after the schema accepted it; see `_checked.py`.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any

from ._nodes import Format

_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error as error:
        raise ValueError(str(error)) from None


def _uuid(cls: type) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        # UUID() also takes braces and `urn:`, which `format: uuid` (RFC 4122) does not know.
        if len(text) != 36:
            raise ValueError("not 36 characters")
        return cls(text)

    return parse


def _iso(cls: Any) -> Callable[[str], Any]:
    parse: Callable[[str], Any] = cls.fromisoformat
    return parse


_MAKERS: dict[tuple[str, str], tuple[str, dict[str, Any], Callable[[Any], Callable[[str], Any]]]]
_MAKERS = {
    ("datetime", "datetime"): ("date-time", {"format": "date-time"}, _iso),
    ("datetime", "date"): ("date", {"format": "date"}, _iso),
    ("datetime", "time"): ("time", {"format": "time"}, _iso),
    ("uuid", "UUID"): ("uuid", {"format": "uuid"}, _uuid),
    ("decimal", "Decimal"): ("decimal", {"pattern": _DECIMAL}, lambda cls: cls),
    ("builtins", "bytes"): ("base64", {"contentEncoding": "base64"}, lambda _: _decode),
}


def text_format(cls: type) -> Format | None:
    """Return how a class travels as text, or None if it does not."""
    made = _MAKERS.get((cls.__module__, cls.__qualname__))
    if made is None:
        return None
    name, keywords, maker = made
    return Format(name, keywords, maker(cls), total=name == "decimal")
