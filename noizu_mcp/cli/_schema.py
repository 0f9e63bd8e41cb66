"""Schemas as foreign servers send them: what is not what it should be counts as absent."""

from typing import Any, TypeVar

Part = TypeVar("Part", list[Any], dict[str, Any])


def part_of(schema: Any, key: str, kind: type[Part]) -> Part:
    """Take a list or an object out of a schema; the server judges its schema, not the command.

    Args:
        schema: The schema, or whatever stands in its place.
        key: The keyword.
        kind: `list` or `dict`.

    Returns:
        The part; an empty one if it is not there, or of another kind.
    """
    found = schema.get(key) if isinstance(schema, dict) else None
    return found if isinstance(found, kind) else kind()
