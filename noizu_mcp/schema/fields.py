"""Fields as data: `from noizu_mcp import fields as f`, then `{"path": f.string(required=True)}`.

No function here raises: wrong options are reported by the class that uses the mapping. All take
`required` (bool, default False), `default` (a value of the field, or the JSON of one; copied for
each call), `description` (str), `examples` (list), `header` (str, mirrored as an HTTP header on
2026-07-28), and `title` (str), which only the forms of `ctx.elicit` show.
"""

from collections.abc import Mapping
from typing import Any, Never, Unpack

from .declare._field import CommonOptions, Marker
from .declare._nodes import MISSING

__all__ = ["array", "boolean", "enum", "integer", "number", "object", "string"]


class DataOptions(CommonOptions, total=False):
    """Options of every field of the data form."""

    default: object


class StringOptions(DataOptions, total=False):
    """Options of `string`."""

    min_length: int
    max_length: int
    pattern: str
    format: str


class NumberOptions(DataOptions, total=False):
    """Options of `integer` and `number`."""

    min: float
    max: float
    exclusive_min: float
    exclusive_max: float
    multiple_of: float


class EnumOptions(DataOptions, total=False):
    """Options of `enum`."""

    titles: Mapping[object, str]


class ObjectOptions(DataOptions, total=False):
    """Options of `object`."""

    min: int
    max: int


class ArrayOptions(DataOptions, total=False):
    """Options of `array`."""

    min: int
    max: int
    unique: bool
    titles: Mapping[object, str]


def string(*misplaced: Never, **options: Unpack[StringOptions]) -> Marker:
    """Return a field of text.

    Args:
        *misplaced: Must be empty; a positional argument is reported by the class.
        **options: `min_length`, `max_length` (int, characters), `pattern` (a regular expression of
            ECMA-262 that searches), `format` (str, not checked), and the common ones.
    """
    return Marker("f.string", {**options}, misplaced, "string")


def integer(*misplaced: Never, **options: Unpack[NumberOptions]) -> Marker:
    """Return a field of integers; 1.0 is one of them, and arrives as 1.

    Args:
        *misplaced: Must be empty; a positional argument is reported by the class.
        **options: `min`, `max`, `exclusive_min`, `exclusive_max`, `multiple_of` (numbers), and the
            common ones.
    """
    return Marker("f.integer", {**options}, misplaced, "integer")


def number(*misplaced: Never, **options: Unpack[NumberOptions]) -> Marker:
    """Return a field of numbers, delivered as float.

    Args:
        *misplaced: Must be empty; a positional argument is reported by the class.
        **options: The options of `integer`.
    """
    return Marker("f.number", {**options}, misplaced, "number")


def boolean(*misplaced: Never, **options: Unpack[DataOptions]) -> Marker:
    """Return a field that is true or false.

    Args:
        *misplaced: Must be empty; a positional argument is reported by the class.
        **options: The common ones.
    """
    return Marker("f.boolean", {**options}, misplaced, "boolean")


def enum(*values: Any, **options: Unpack[EnumOptions]) -> Marker:
    """Return a choice between values, delivered as they are declared.

    Args:
        *values: JSON scalars, enum members, or enum classes, which stand for their members.
        **options: `titles` (the text that a form shows for a value, by value), and the common ones.
    """
    return Marker("f.enum", {**options}, (), "enum", values)


def object(  # noqa: A001 - the name of the JSON Schema type, always written `f.object`
    fields: Any = MISSING,
    /,
    *misplaced: Never,
    **options: Unpack[ObjectOptions],
) -> Marker:
    """Return a nested object; names that are not declared are dropped.

    Args:
        fields: A mapping of names to fields or types, delivered as an instance with these
            attributes. `{}` is an object with any names, delivered as a dict.
        *misplaced: Must be empty; a positional argument is reported by the class.
        **options: The common ones; `min`, `max` (int, names) only without fields.
    """
    return Marker("f.object", {**options}, misplaced, "object", fields)


def array(
    item: Any = MISSING,
    /,
    *misplaced: Never,
    **options: Unpack[ArrayOptions],
) -> Marker:
    """Return a list.

    Args:
        item: The field or type of its items.
        *misplaced: Must be empty; a positional argument is reported by the class.
        **options: `min`, `max` (int, items), `unique` (bool), `titles` (see `enum`), and the common
            ones.
    """
    return Marker("f.array", {**options}, misplaced, "array", item)
