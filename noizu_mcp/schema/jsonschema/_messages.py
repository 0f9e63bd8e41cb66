"""The words for each way of breaking a schema: one table, for every engine.

A text says what was expected and what came, in terms of the value: no class, no library.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ._nearest import nearest
from ._values import type_of
from ._violation import Path, Violation, show

# A longer list of choices is no help in a message; the schema itself has them all.
_MAX_CHOICES = 12


def broken(path: Path, keyword: str, expected: Any, got: Any) -> Violation:
    """Return the violation of a keyword that judges one value by itself.

    Args:
        path: Where the value is.
        keyword: Its name in JSON Schema; an unknown one gets a general text.
        expected: The value of the keyword in the schema.
        got: The value that breaks it.
    """
    if keyword == "enum" and isinstance(expected, list):
        return _not_a_choice(path, expected, got)
    words = _WORDS.get(keyword)
    text = words(expected, got) if words else "does not match the schema"
    return Violation(path, keyword, text, expected, got)


def missing(path: Path, name: str, given: Iterable[Any], known: Iterable[str]) -> Violation:
    """Return the violation of a required property that is absent.

    Args:
        path: Where the object is.
        name: The name that is required.
        given: The names that are there.
        known: The names that the schema knows; a given one among them is not a slip.
    """
    declared = set(known)
    strangers = (word for word in given if isinstance(word, str) and word not in declared)
    meant = nearest(name, strangers)
    hint = f"; was it sent as {show(meant)}?" if meant else ""
    text = f"required, but missing{hint}"
    return Violation((*path, name), "required", text, name, None, meant)


def depends(path: Path, name: str, because: str) -> Violation:
    """Return the violation of a property that another one requires."""
    text = f"required when {show(because)} is given, but missing"
    return Violation((*path, name), "dependentRequired", text, name)


def unknown(path: Path, keyword: str, name: Any, known: Sequence[str]) -> Violation:
    """Return the violation of a property that the object must not have."""
    # JSON has no other names, but a program may.
    meant = nearest(name, known) if isinstance(name, str) else None
    if meant:
        hint = f", did you mean {show(meant)}?"
    elif known:
        hint = f", known are {_choices(known)}"
    else:
        hint = ""
    text = f"unknown property {show(name)}{hint}"
    return Violation(path, keyword, text, False, name, meant)


def bad_name(path: Path, name: str, why: Violation) -> Violation:
    """Return the violation of a property whose name breaks `propertyNames`."""
    text = f"property name {show(name)} is not allowed: {why.message}"
    return Violation(path, "propertyNames", text, why.expected, name, why.nearest)


def several_types(path: Path, types: Sequence[str], got: Any) -> Violation:
    """Return the violation of `type`, for one type or several."""
    expected = types[0] if len(types) == 1 else list(types)
    text = f"expected {' or '.join(types)}, got {_kind(got)}"
    return Violation(path, "type", text, expected, got)


def equal_items(path: Path, first: int, second: int, got: Any) -> Violation:
    """Return the violation of `uniqueItems`, with the two places."""
    text = f"items {first} and {second} are equal, but all must differ"
    return Violation(path, "uniqueItems", text, True, got)


def none_fits(path: Path, keyword: str, count: int, closest: str, got: Any) -> Violation:
    """Return the violation of `anyOf` or `oneOf` when no alternative stands out."""
    text = f"matches none of {count} alternatives; closest: {closest}"
    return Violation(path, keyword, text, None, got)


def several_fit(path: Path, count: int, got: Any) -> Violation:
    """Return the violation of `oneOf` when more than one alternative matches."""
    text = f"matches {count} alternatives, but exactly one is allowed"
    return Violation(path, "oneOf", text, None, got)


def _not_a_choice(path: Path, choices: list[Any], got: Any) -> Violation:
    words = [word for word in choices if isinstance(word, str)]
    meant = nearest(got, words) if isinstance(got, str) else None
    hint = f", did you mean {show(meant)}?" if meant else ""
    text = f"must be one of {_choices(choices)}, got {show(got)}{hint}"
    return Violation(path, "enum", text, choices, got, meant)


def _choices(choices: Sequence[Any]) -> str:
    shown = [show(choice) for choice in choices[:_MAX_CHOICES]]
    if len(choices) > _MAX_CHOICES:
        shown.append(f"… {len(choices) - _MAX_CHOICES} more")
    return "[" + ", ".join(shown) + "]"


def _kind(value: Any) -> str:
    kind = type_of(value)
    if kind == "null":
        return "null"
    if kind == "not JSON":
        return f"{show(value)}, which JSON cannot express"
    return f"{kind} {show(value)}"


def _limit(text: str) -> Callable[[Any, Any], str]:
    return lambda expected, got: text.format(got=show(got), limit=show(expected))


def _size(one: str, many: str, bound: str) -> Callable[[Any, Any], str]:
    def words(expected: Any, got: Any) -> str:
        return f"has {len(got)} {one if len(got) == 1 else many}, {bound} {show(expected)}"

    return words


_WORDS: Mapping[str, Callable[[Any, Any], str]] = {
    "const": _limit("must be {limit}, got {got}"),
    "minimum": _limit("{got} is less than the minimum of {limit}"),
    "maximum": _limit("{got} is greater than the maximum of {limit}"),
    "exclusiveMinimum": _limit("{got} must be greater than {limit}"),
    "exclusiveMaximum": _limit("{got} must be less than {limit}"),
    "multipleOf": _limit("{got} is not a multiple of {limit}"),
    "pattern": _limit("{got} does not match {limit}"),
    "format": _limit("{got} is not in the format {limit}"),
    "not": _limit("{got} is not allowed here"),
    "false": _limit("nothing is allowed here, got {got}"),
    "minLength": _size("character", "characters", "but needs at least"),
    "maxLength": _size("character", "characters", "but may have at most"),
    "minItems": _size("item", "items", "but needs at least"),
    "maxItems": _size("item", "items", "but may have at most"),
    "minProperties": _size("property", "properties", "but needs at least"),
    "maxProperties": _size("property", "properties", "but may have at most"),
    "contains": _limit("no item is of the kind that the list must contain"),
    "minContains": _limit("{got} items are of the kind that the list must contain {limit} of"),
    "maxContains": _limit("{got} items are of a kind of which the list may contain {limit}"),
}
