"""What the native engine says of a value, put into our words.

Only for schemas that `Explainer` cannot follow: unevaluated members, dynamic references, other
documents and older dialects.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import attrs

from ..jsonschema._keywords import Path
from ..jsonschema._messages import (
    bad_name,
    broken,
    equal_items,
    missing,
    several_fit,
    several_types,
    unknown,
)
from ..jsonschema._values import equal_pairs
from ..jsonschema._violation import MAX_VIOLATIONS, Violation, shorten
from ..report._branches import nothing_fits

Found = list[Violation]


@attrs.frozen
class _Case:
    """The schema and the value that an error is about; an error tells only parts of both."""

    schema: Any
    value: Any

    def declared(self, error: Any) -> list[str]:
        """Return the property names declared beside the keyword that failed, if it is in sight."""
        beside = _follow(self.schema, error.schema_path[:-1])
        declared = beside.get("properties", {}) if isinstance(beside, dict) else {}
        return list(declared)

    def at(self, path: Path) -> Any:
        """Return the part of the value that is at a path."""
        return _follow(self.value, path)


def translate(errors: Iterable[Any], schema: Any, value: Any) -> Found:
    """Return the violations that the engine's errors speak of, in its order, the first 100 of more.

    Args:
        errors: Its `ValidationError` values.
        schema: The schema, to know which names it declares.
        value: The value that was judged.
    """
    return _translate(errors, _Case(schema, value))


def _translate(errors: Iterable[Any], case: _Case) -> Found:
    return list(islice(_each(errors, case), MAX_VIOLATIONS))


def _each(errors: Iterable[Any], case: _Case) -> Iterator[Violation]:
    for error in errors:
        make = _BY_KIND.get(error.kind.name, _simple)
        yield from make(error, tuple(error.instance_path), case)


def _simple(error: Any, path: Path, _case: _Case) -> Found:
    return [broken(path, error.kind.name, error.kind.value, error.instance)]


def _type(error: Any, path: Path, _case: _Case) -> Found:
    return [several_types(path, error.kind.types, error.instance)]


def _false(error: Any, path: Path, case: _Case) -> Iterable[Violation]:
    if error.schema_path and error.schema_path[-1] == "additionalProperties":
        # The engine tells neither the names nor the object, and has seen no declared names.
        return (unknown(path, "additionalProperties", name, []) for name in case.at(path))
    return [broken(path, "false", False, error.instance)]


def _contains(error: Any, path: Path, _case: _Case) -> Found:
    words = "does not contain as many items of the kind asked for as it must"
    # The place in the schema tells which of the three keywords it was.
    return [Violation(path, str(error.schema_path[-1]), words, None, error.instance)]


def _required(error: Any, path: Path, case: _Case) -> Found:
    return [missing(path, error.kind.property, error.instance, case.declared(error))]


def _unexpected(error: Any, path: Path, case: _Case) -> Iterable[Violation]:
    known = case.declared(error)
    return (unknown(path, error.kind.name, name, known) for name in error.kind.unexpected)


def _unexpected_items(error: Any, path: Path, _case: _Case) -> Found:
    # The engine gives the items as text, not their places.
    items = ", ".join(map(str, error.kind.unexpected))
    words = f"has {len(error.kind.unexpected)} items too many: {items}"
    return [Violation(path, "unevaluatedItems", shorten(words), False, error.instance)]


def _names(error: Any, path: Path, case: _Case) -> Found:
    inner = _translate([error.kind.error], case)[0]
    return [bad_name(path, error.kind.error.instance, inner)]


def _unique(error: Any, path: Path, _case: _Case) -> Iterable[Violation]:
    items = error.instance
    return (equal_items(path, *pair, items[pair[1]]) for pair in equal_pairs(items))


def _alternatives(error: Any, path: Path, case: _Case) -> Found:
    branches = [_translate(branch, case) for branch in error.kind.context]
    if not all(branches):
        return [several_fit(path, branches.count([]), error.instance)]
    return nothing_fits(path, error.kind.name, branches, error.instance)


def _follow(node: Any, path: Iterable[Any]) -> Any:
    """Return what is at a path, or None where the path leads out of sight."""
    for step in path:
        try:
            node = node[step] if isinstance(node, (dict, list, tuple)) else None
        except (LookupError, TypeError):
            return None
    return node


_BY_KIND: dict[str, Callable[[Any, Path, _Case], Iterable[Violation]]] = {
    "type": _type,
    "falseSchema": _false,
    "required": _required,
    "contains": _contains,
    "additionalProperties": _unexpected,
    "unevaluatedProperties": _unexpected,
    "unevaluatedItems": _unexpected_items,
    "propertyNames": _names,
    "uniqueItems": _unique,
    "oneOf": _alternatives,
    "anyOf": _alternatives,
}
