"""Fields as data: `from noizu_mcp import fields as f`, then `{"path": f.string(required=True)}`.

Nothing here raises: what is wrong is kept, and reported by the class that uses the mapping.
All take `required` (default False), `default`, `description`, `examples`, `header`, and `title`,
which only the forms of `ctx.elicit` show.
"""

from collections.abc import Mapping
from typing import Any, Never, Unpack

from .declare._field import MISSING, CommonOptions, Marker

__all__ = ["array", "boolean", "enum", "integer", "number", "object", "string"]


class Options(CommonOptions, total=False):
    """Options of every field of the data form."""

    default: Any


class StringOptions(Options, total=False):
    """Options of `string`."""

    min_length: int
    max_length: int
    pattern: str
    format: str


class NumberOptions(Options, total=False):
    """Options of `integer` and `number`."""

    min: float
    max: float
    exclusive_min: float
    exclusive_max: float
    multiple_of: float


class EnumOptions(Options, total=False):
    """Options of `enum`."""

    titles: Mapping[Any, str]


class ArrayOptions(Options, total=False):
    """Options of `array`."""

    min: int
    max: int
    unique: bool
    titles: Mapping[Any, str]


def string(*misplaced: Never, **options: Unpack[StringOptions]) -> Marker:
    """Return a text field: `min_length`, `max_length` (characters), `pattern`, `format`."""
    return Marker("f.string", {**options}, misplaced, "string")


def integer(*misplaced: Never, **options: Unpack[NumberOptions]) -> Marker:
    """Return an integer field: `min`, `max`, `exclusive_min`, `exclusive_max`, `multiple_of`."""
    return Marker("f.integer", {**options}, misplaced, "integer")


def number(*misplaced: Never, **options: Unpack[NumberOptions]) -> Marker:
    """Return a number field, delivered as float; options as for `integer`."""
    return Marker("f.number", {**options}, misplaced, "number")


def boolean(*misplaced: Never, **options: Unpack[Options]) -> Marker:
    """Return a true-or-false field."""
    return Marker("f.boolean", {**options}, misplaced, "boolean")


def enum(*values: Any, **options: Unpack[EnumOptions]) -> Marker:
    """Return a field that takes one of `values` (JSON scalars, or enum members) as declared.

    `titles` maps values to what a form shows for them.
    """
    return Marker("f.enum", {**options}, (), "enum", values)


def object(  # noqa: A001 - the JSON Schema type; the module is used qualified, as `f.object`
    fields: Any = MISSING,
    /,
    *misplaced: Never,
    **options: Unpack[Options],
) -> Marker:
    """Return a nested object; `fields` maps names to fields or types."""
    return Marker("f.object", {**options}, misplaced, "object", fields)


def array(
    item: Any = MISSING,
    /,
    *misplaced: Never,
    **options: Unpack[ArrayOptions],
) -> Marker:
    """Return a list whose items are `item`, a field or a type: `min`, `max` (items), `unique`."""
    return Marker("f.array", {**options}, misplaced, "array", item)
