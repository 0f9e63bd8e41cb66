"""What the native engine says of a value, put into our words.

Only for schemas that `Explainer` cannot follow: unevaluated members, dynamic references, other
documents and older dialects.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ._branches import nothing_fits
from ._keywords import Path
from ._values import identity
from ._violation import Violation, shorten
from ._wording import (
    bad_name,
    broken,
    equal_items,
    missing,
    several_fit,
    several_types,
    unknown,
)

Found = list[Violation]


def translate(errors: Iterable[Any], root: Any) -> Found:
    """Return the violations that the engine's errors speak of, in its order.

    Args:
        errors: Its `ValidationError` values.
        root: The schema, to know which names it declares.
    """
    found: Found = []
    for error in errors:
        make = _BY_KIND.get(error.kind.name, _simple)
        found.extend(make(error, tuple(error.instance_path), root))
    return found


def _simple(error: Any, path: Path, _root: Any) -> Found:
    return [broken(path, _keyword(error), error.kind.value, error.instance)]


def _keyword(error: Any) -> str:
    last = error.schema_path[-1] if error.schema_path else ""
    # A kind of `contains` tells by its place which of the three keywords it was.
    return str(last) if error.kind.name == "contains" else str(error.kind.name)


def _type(error: Any, path: Path, _root: Any) -> Found:
    return [several_types(path, error.kind.types, error.instance)]


def _false(error: Any, path: Path, root: Any) -> Found:
    if error.schema_path and error.schema_path[-1] == "additionalProperties":
        known = _declared(error, root)
        return [unknown(path, "additionalProperties", n, known) for n in error.instance]
    return [broken(path, "false", False, error.instance)]


def _contains(error: Any, path: Path, _root: Any) -> Found:
    words = "does not contain as many items of the kind asked for as it must"
    return [Violation(path, _keyword(error), words, None, error.instance)]


def _required(error: Any, path: Path, root: Any) -> Found:
    given = error.instance if isinstance(error.instance, dict) else ()
    return [missing(path, error.kind.property, given, _declared(error, root))]


def _unexpected(error: Any, path: Path, root: Any) -> Found:
    known = _declared(error, root)
    return [unknown(path, error.kind.name, name, known) for name in error.kind.unexpected]


def _unexpected_items(error: Any, path: Path, _root: Any) -> Found:
    # The engine gives the items as text, not their places.
    items = ", ".join(map(str, error.kind.unexpected))
    words = f"has {len(error.kind.unexpected)} items too many: {items}"
    return [Violation(path, "unevaluatedItems", shorten(words), False, error.instance)]


def _names(error: Any, path: Path, root: Any) -> Found:
    inner = translate([error.kind.error], root)[0]
    return [bad_name(path, error.kind.error.instance, inner)]


def _unique(error: Any, path: Path, _root: Any) -> Found:
    seen: dict[Any, int] = {}
    for index, item in enumerate(error.instance):
        first = seen.setdefault(identity(item), index)
        if first != index:
            return [equal_items(path, first, index, item)]
    return _simple(error, path, _root)


def _alternatives(error: Any, path: Path, root: Any) -> Found:
    branches = [translate(branch, root) for branch in error.kind.context]
    if not all(branches):
        return [several_fit(path, branches.count([]), error.instance)]
    return nothing_fits(path, error.kind.name, branches, error.instance)


def _declared(error: Any, root: Any) -> list[str]:
    """Return the property names declared beside the keyword that failed, as far as it is known."""
    node = root
    for step in error.schema_path[:-1]:
        try:
            node = node[step]
        except (LookupError, TypeError):
            return []
    declared = node.get("properties", {}) if isinstance(node, dict) else {}
    return list(declared)


_BY_KIND: dict[str, Callable[[Any, Path, Any], Found]] = {
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
