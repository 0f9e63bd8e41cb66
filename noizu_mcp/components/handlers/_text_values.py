"""Text values: variables of a URI template and arguments of a prompt, read as their types.

The wire has texts only. The schema of a field decides how its text is read; a text that cannot be
read stays a text, and validation names the fault.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..._schema_engine import EngineName
from ...schema import Fault, Shape, Violation

Cast = Callable[[str], object]

# Bounded, since clients write them: the time of `int` grows with the square of the digits, and
# Python itself refuses more than 4,300 of them.
_INTEGER: Final = r"-?[0-9]{1,4000}"
_NUMBER: Final = r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?"
_TRUTHS: Final = {"true": True, "false": False}


def _number(text: str) -> object:
    # JSON has no infinity, so `1e999` stays a text, which then does not fit.
    number = float(text) if re.fullmatch(_NUMBER, text) else math.inf
    return number if math.isfinite(number) else text


_CASTS: Final[Mapping[str, Cast]] = {
    "string": str,
    "integer": lambda text: int(text) if re.fullmatch(_INTEGER, text) else text,
    "number": _number,
    "boolean": lambda text: _TRUTHS.get(text.lower(), text),
}


def cast_of(schema: Mapping[str, Any], *, is_list: bool = False) -> Cast | None:
    """Find the function that reads a text as a value of a schema.

    Args:
        schema: The published JSON Schema of one field.
        is_list: True if the texts are the items of a list, which the schema describes.

    Returns:
        A function of the text that gives the value, or the text itself if it cannot be read; None
        if no text can stand for a value: objects, and lists.
    """
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if is_list:
        return cast_of(schema.get("items", {})) if "array" in kinds else None
    if "enum" in schema:
        values = schema["enum"]
        # A boolean is written as in JSON. A choice that is a text goes first: "1" beside 1.
        texts = {str(v).lower() if isinstance(v, bool) else str(v): v for v in values}
        texts |= {value: value for value in values if isinstance(value, str)}
        return lambda text: texts.get(text, text)
    if "anyOf" in schema:
        return _first([cast_of(branch) for branch in schema["anyOf"]])
    if "type" not in schema:
        # Without a type anything fits, texts too.
        return None if "$ref" in schema else str
    return _first([_CASTS.get(kind) for kind in kinds])


def _first(casts: list[Cast | None]) -> Cast | None:
    """Combine the casts of alternatives: the first that makes something else of the text counts."""
    found = [cast for cast in casts if cast is not None]
    # A union with `str` takes every text as it is: `"5"` for `int | str` stays a text.
    if str in found:
        return str
    if len(found) < 2:
        return found[0] if found else None
    return lambda text: next((value for cast in found if (value := cast(text)) != text), text)


def impossible(
    fields: Mapping[str, Mapping[str, object]], lists: frozenset[str] = frozenset()
) -> list[str]:
    """Name the fields that no text can stand for.

    Args:
        fields: The published schema of each field.
        lists: The fields that come as lists.
    """
    return [name for name in fields if cast_of(fields[name], is_list=name in lists) is None]


class TextValues:
    """Fields whose values come as texts, and as lists of texts.

    Attributes:
        shape: The declared fields.
        fields: The published schema of each field, in order.
        required: The fields that must be given.

    Args:
        shape: The declared fields; the root is an object.
        lists: The fields that come as lists.
    """

    def __init__(self, shape: Shape, lists: frozenset[str] = frozenset()) -> None:
        self.shape = shape
        self.lists = lists
        self.fields: Mapping[str, Mapping[str, object]] = shape.schema.get("properties", {})
        self.required = tuple(shape.schema.get("required", ()))
        self._casts = {
            name: cast_of(field, is_list=name in lists) for name, field in self.fields.items()
        }

    def read(self, given: Mapping[str, object]) -> tuple[Any, list[Violation]]:
        """Turn texts into the value that a handler takes.

        Args:
            given: Texts and lists of texts by name; other values are left as they are.

        Returns:
            The built value and no violations, or None and all of them.
        """
        values = {name: self._cast(name, value) for name, value in given.items()}
        return self.shape.read(values)

    def on_engine(self, engine: EngineName) -> tuple["TextValues | None", list[Fault]]:
        """Return the same fields with values judged by an engine; see `Shape.on_engine`."""
        shape, faults = self.shape.on_engine(engine)
        return None if shape is None else TextValues(shape, self.lists), faults

    def _cast(self, name: str, value: object) -> object:
        cast = self._casts.get(name)
        if cast is not None and isinstance(value, str):
            return cast(value)
        if cast is not None and name in self.lists and isinstance(value, list):
            return [cast(item) for item in value]
        return value
