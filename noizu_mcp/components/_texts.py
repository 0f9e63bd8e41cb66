"""Typed values from texts: variables of a URI template, arguments of a prompt.

The wire has texts only. What a field is decides how its text is read; a text that cannot be read
stays one, and the schema of the form says what is wrong with it.
"""

import math
import re
from collections.abc import Callable, Container, Mapping
from typing import Any, Final

from ..schema import Shape, Violation

Cast = Callable[[str], Any]

_INTEGER: Final = r"-?[0-9]{1,4000}"
_NUMBER: Final = r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?"
_TRUTHS: Final = {"true": True, "false": False}


def _as_it_is(text: str) -> str:
    return text


def _integer(text: str) -> Any:
    return int(text) if re.fullmatch(_INTEGER, text) else text


def _number(text: str) -> Any:
    if not re.fullmatch(_NUMBER, text):
        return text
    number = float(text)
    return number if math.isfinite(number) else text


def _boolean(text: str) -> Any:
    return _TRUTHS.get(text.lower(), text)


_CASTS: Final[Mapping[str, Cast]] = {
    "string": _as_it_is,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}


def cast_of(schema: Mapping[str, Any]) -> Cast | None:
    """Find how a text becomes a value of a schema.

    Args:
        schema: The published JSON Schema of one field.

    Returns:
        A function of the text that gives the value, or the text itself where it is none; None if
        no text can stand for a value: objects and lists.
    """
    if "enum" in schema:
        return _choice(schema["enum"])
    if "anyOf" in schema:
        return _first([cast_of(branch) for branch in schema["anyOf"]])
    if "type" not in schema:
        return None if "$ref" in schema else _as_it_is
    return _first([_CASTS.get(kind) for kind in _kinds(schema)])


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def _choice(values: list[Any]) -> Cast:
    texts = {_written(value): value for value in values}
    texts |= {value: value for value in values if isinstance(value, str)}
    return lambda text: texts.get(text, text)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first(casts: list[Cast | None]) -> Cast | None:
    """Combine the casts of alternatives: the first that makes something else of the text counts."""
    found = [cast for cast in casts if cast is not None]
    if not found or len(found) == 1:
        return found[0] if found else None
    if _as_it_is in found:
        return _as_it_is

    def cast_any(text: str) -> Any:
        return next((value for cast in found if (value := cast(text)) != text), text)

    return cast_any


def _casts(
    fields: Mapping[str, Mapping[str, Any]], lists: Container[str]
) -> dict[str, Cast | None]:
    return {
        name: cast_of(_items(schema) if name in lists else schema)
        for name, schema in fields.items()
    }


def impossible(
    fields: Mapping[str, Mapping[str, Any]], lists: Container[str] = frozenset()
) -> list[str]:
    """Name the fields that no text can stand for.

    Args:
        fields: The published schema of each field.
        lists: The fields that come as lists.
    """
    return [name for name, cast in _casts(fields, lists).items() if cast is None]


class Texts:
    """A form whose values come as texts, and as lists of texts.

    Attributes:
        shape: The form.
        fields: The published schema of each field, in order.
        names: Their names.
        required: Those that must be given.

    Args:
        shape: The form; its root is an object.
        lists: The fields that come as lists.
    """

    def __init__(self, shape: Shape, lists: frozenset[str] = frozenset()) -> None:
        self.shape = shape
        self.lists = lists
        self.fields: Mapping[str, Mapping[str, Any]] = shape.schema.get("properties", {})
        self.names = tuple(self.fields)
        self.required = tuple(shape.schema.get("required", ()))
        self._casts = _casts(self.fields, lists)

    def read(self, given: Mapping[str, Any]) -> tuple[Any, list[Violation]]:
        """Turn what was given into what a handler takes.

        Args:
            given: Texts and lists of texts by name; other values are left as they are.

        Returns:
            The built value and no violations, or None and all of them.
        """
        values = {name: self._cast(name, value) for name, value in given.items()}
        compiled = self.shape.compiled
        if not compiled.is_valid(values):
            return None, compiled.violations(values)
        return (values if self.shape.build is None else self.shape.build(values)), []

    def _cast(self, name: str, value: Any) -> Any:
        cast = self._casts.get(name)
        if cast is None:
            return value
        if isinstance(value, str):
            return cast(value)
        if name in self.lists and isinstance(value, list):
            return [cast(item) for item in value]
        return value


def _items(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the schema of the items of a list; of what is none one that no text fits."""
    items: Mapping[str, Any] = schema.get("items", {})
    return items if "array" in _kinds(schema) else {"type": "object"}
