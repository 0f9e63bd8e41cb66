"""URI templates, filled in (RFC 6570, section 3)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from ._parse import OPERATORS, Expression, Operator, Variable

_NOT_UNRESERVED: Final = rb"[^A-Za-z0-9._~-]"
# An escape that is there already stays one (section 3.2.1).
_NOT_RESERVED: Final = rb"%(?![0-9A-Fa-f]{2})|[^%A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]"


def _escape(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]


def encode(text: str) -> str:
    """Percent-encode all but the unreserved characters (RFC 3986, section 2.3).

    Raises:
        UnicodeEncodeError: The text has a lone surrogate.
    """
    return re.sub(_NOT_UNRESERVED, _escape, text.encode()).decode()


def encode_reserved(text: str) -> str:
    """Percent-encode all characters that no URI may have; escapes are kept.

    Raises:
        UnicodeEncodeError: The text has a lone surrogate.
    """
    return re.sub(_NOT_RESERVED, _escape, text.encode()).decode()


def expand(parts: Iterable[str | Expression], values: Mapping[str, object]) -> str:
    """Fill in a template.

    Args:
        parts: The template, parsed.
        values: Texts, numbers, booleans, lists and mappings of these, or None, by the names of
            the variables. None, an empty list and a name that is not there are left out.

    Raises:
        TypeError: A value is of another type.
        ValueError: A list or a mapping for a variable with a prefix.
    """
    return "".join(
        encode_reserved(part) if isinstance(part, str) else _expand(part, values) for part in parts
    )


def _expand(expression: Expression, values: Mapping[str, object]) -> str:
    row = OPERATORS[expression.operator]
    found = [
        text
        for variable in expression.variables
        for text in _texts(row, variable, values.get(variable.name))
    ]
    return row.lead + row.sep.join(found) if found else ""


def _texts(row: Operator, variable: Variable, value: object) -> Iterator[str]:
    """Yield the texts of a variable; the separator goes between."""
    quote = encode_reserved if row.reserved else encode
    # Section 3.2.1: an empty list counts as undefined; an empty text is a value.
    if value is None or value in ([], (), {}):
        return
    if not isinstance(value, list | tuple | Mapping):
        text = _text(variable, value)
        # Cut before it is encoded: the prefix counts characters, not bytes (section 2.4.1).
        yield _named(row, variable.name, quote(text[: variable.prefix]))
        return
    if variable.prefix is not None:
        raise ValueError(f"{variable.name}: a prefix is cut from a text, got {value!r}")
    if variable.explode:
        yield from _exploded(row, variable, value, quote)
        return
    pairs = value.items() if isinstance(value, Mapping) else ((item,) for item in value)
    flat = [quote(_text(variable, item)) for pair in pairs for item in pair if item is not None]
    yield _named(row, variable.name, ",".join(flat))


def _exploded(
    row: Operator, variable: Variable, value: Any, quote: Callable[[str], str]
) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            text = quote(_text(variable, item))
            name = quote(_text(variable, key))
            yield _named(row, name, text) if row.named else f"{name}={text}"
        return
    for item in value:
        yield _named(row, variable.name, quote(_text(variable, item)))


def _named(row: Operator, name: str, text: str) -> str:
    if not row.named:
        return text
    return f"{name}={text}" if text else f"{name}{row.if_empty}"


def _text(variable: Variable, value: object) -> str:
    # Before the numbers: True is an int, and would be written `True`.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError(
        f"{variable.name}: expected a text, a number, a list or a mapping, got {value!r}"
    )
