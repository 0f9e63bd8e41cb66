"""Values of an adapted schema, restored to values that the tool expects."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._errors import SchemaError
from .._value import JSONObject
from ..schema import compile_schema

#: Gives back the value that a tool expects.
Restore = Callable[[object], object]


class Adapted(NamedTuple):
    """A schema in a dialect, and the way back for its values; None if they stay as they are."""

    schema: JSONObject
    restore: Restore | None = None


def restore_items(restore: Restore, value: object) -> Any:
    """Restore each item of an array."""
    return [restore(each) for each in value] if isinstance(value, list) else value


def restore_members(ways: Mapping[str, tuple[bool, Restore | None]], value: object) -> Any:
    """Leave out the nulls that stand for absent properties."""
    if not isinstance(value, dict):
        return value
    found: JSONObject = {}
    for name, each in value.items():
        drops_null, restore = ways.get(name, (False, None))
        if each is not None or not drops_null:
            found[name] = each if restore is None else restore(each)
    return found


def restore_one(
    parts: Sequence[Adapted],
    judges: Callable[[], Sequence[Callable[[object], bool]]],
    value: object,
) -> Any:
    """Restore a value by the first of several schemas that allows it."""
    for part, judge in zip(parts, judges(), strict=True):
        if judge(value):
            return value if part.restore is None else part.restore(value)
    return value


def judge(schema: JSONObject) -> Callable[[Any], bool]:
    """Return the function that tells whether a value fits a schema."""
    try:
        return compile_schema(schema).is_valid
    except SchemaError:  # a pattern that no engine knows, of the server
        return lambda _: True


def restore_by(definitions: Mapping[str, Adapted], name: str, value: object) -> Any:
    """Restore a value by a definition, which may be written later than this is called."""
    restore = definitions[name].restore
    return value if restore is None else restore(value)
