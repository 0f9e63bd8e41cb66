"""The words for each way of breaking a schema, and the lines that a model reads.

A text names the expected and the received value: no class, no library.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._nearest import nearest
from ..._pointer import Path
from ..._util import shorten
from ..jsonschema._values import kind_and_value
from ..jsonschema._violation import MAX_VIOLATIONS, Violation, place, show

# The violations of one alternative.
Branch = Sequence[Violation]

# A longer list of choices is no help in a message; the schema itself has them all.
_MAX_CHOICES = 12
# A model corrects a few faults at a time; the rest would only push the task out of its sight.
_MAX_LINES = 20
_MAX_CLOSEST = 1000
_CLOSEST = "; closest: "


def describe(violations: Sequence[Violation]) -> list[str]:
    """Return one line for each violation: `/items/0/qty: expected integer, got string "3"`.

    Args:
        violations: The violations that a schema found, in its order.

    Returns:
        At most 20 different lines, and one more, `… and N more`, when there were more; of 100
        violations, at which a schema stops to look, `… and at least N more`.
    """
    found = dict.fromkeys(f"{each.pointer or '(root)'}: {each.message}" for each in violations)
    lines = list(found)
    if len(lines) <= _MAX_LINES:
        return lines
    least = "at least " if len(violations) >= MAX_VIOLATIONS else ""
    return [*lines[:_MAX_LINES], f"… and {least}{len(lines) - _MAX_LINES} more"]


def broken(path: Path, keyword: str, expected: object, got: Any) -> Violation:
    """Return the violation of a keyword that judges one value by itself.

    Args:
        path: Where the value is.
        keyword: Its name in JSON Schema; an unknown one gets a general text.
        expected: The value of the keyword in the schema.
        got: The value that breaks it.
    """
    if keyword == "enum" and isinstance(expected, list):
        return _not_a_choice(path, expected, got)
    words = _WORDS.get(keyword, "does not match the schema")
    count = ""
    if keyword[3:] in _COUNTED:
        one, many = _COUNTED[keyword[3:]]
        count = f"{len(got)} {one if len(got) == 1 else many}"
    text = words.format(got=show(got), limit=show(expected), count=count)
    return Violation(path, keyword, text, expected, got)


def missing(path: Path, name: str, given: Iterable[object], known: Iterable[str]) -> Violation:
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


def unknown(path: Path, keyword: str, name: object, known: Sequence[str]) -> Violation:
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


def several_types(path: Path, types: Sequence[str], got: object) -> Violation:
    """Return the violation of `type`, for one type or several."""
    expected = types[0] if len(types) == 1 else list(types)
    text = f"expected {' or '.join(types)}, got {kind_and_value(got)}"
    return Violation(path, "type", text, expected, got)


def equal_items(path: Path, first: int, second: int, got: object) -> Violation:
    """Return the violation of `uniqueItems`, with the two places."""
    text = f"items {first} and {second} are equal, but all must differ"
    return Violation(path, "uniqueItems", text, True, got)


def several_fit(path: Path, count: int, got: object) -> Violation:
    """Return the violation of `oneOf` when more than one alternative matches."""
    text = f"matches {count} alternatives, but exactly one is allowed"
    return Violation(path, "oneOf", text, None, got)


def nothing_fits(path: Path, keyword: str, branches: Sequence[Branch], got: object) -> Branch:
    """Return the violations to tell of a value that breaks every alternative.

    Alternatives are ranked by three questions: does the value have the type at all, does a constant
    that tells alternatives apart differ, and how many faults there are. A clear winner speaks for
    itself; alternatives that differ by type or by constant only are joined; else the closest is
    quoted.

    Args:
        path: Where the value is.
        keyword: `anyOf` or `oneOf`.
        branches: The violations of each alternative, none empty.
        got: The value.
    """
    joined = _joined(path, branches, got) or _unmarked(path, branches)
    if joined:
        return [joined]
    ranked = sorted(branches, key=lambda branch: _rank(path, branch))
    if len(ranked) == 1 or _rank(path, ranked[0]) < _rank(path, ranked[1]):
        return ranked[0]
    closest = shorten(_brief(path, ranked[0][0]), _MAX_CLOSEST)
    text = f"matches none of {len(branches)} alternatives{_CLOSEST}{closest}"
    return [Violation(path, keyword, text, None, got)]


def _rank(path: Path, branch: Branch) -> tuple[bool, bool, int]:
    wrong_type = any(fault.keyword == "type" and fault.path == path for fault in branch)
    wrong_mark = any(
        fault.keyword in ("const", "enum") and len(fault.path) <= len(path) + 1 for fault in branch
    )
    return wrong_type, wrong_mark, len(branch)


def _joined(path: Path, branches: Sequence[Branch], got: object) -> Violation | None:
    """Return one violation for alternatives that differ by type or by constant only."""
    if any(len(branch) > 1 or branch[0].path != path for branch in branches):
        return None
    faults = [branch[0] for branch in branches]
    keywords = {fault.keyword for fault in faults}
    if keywords == {"type"}:
        types = [
            kind
            for fault in faults
            for kind in (fault.expected if isinstance(fault.expected, list) else [fault.expected])
        ]
        return several_types(path, list(dict.fromkeys(types)), got)
    if keywords <= {"const", "enum"}:
        choices: list[object] = []
        for fault in faults:
            choices += fault.expected if fault.keyword == "enum" else [fault.expected]
        return broken(path, "enum", choices, got)
    return None


def _unmarked(path: Path, branches: Sequence[Branch]) -> Violation | None:
    """Return one violation for alternatives that one member tells apart, and it names none."""
    marks = [
        {fault.path: fault for fault in branch if _is_mark(path, fault)} for branch in branches
    ]
    shared = [place for place in marks[0] if all(place in each for each in marks)]
    if len(shared) != 1:
        return None
    faults = [each[shared[0]] for each in marks]
    return _joined(shared[0], [[fault] for fault in faults], faults[0].got)


def _is_mark(path: Path, fault: Violation) -> bool:
    return fault.keyword in ("const", "enum") and len(fault.path) == len(path) + 1


def _brief(path: Path, fault: Violation) -> str:
    where = place(fault.path[len(path) :])
    _, nested, closest = fault.message.partition(_CLOSEST)
    # Alternatives inside of alternatives: only the innermost reason is worth the room.
    text = closest if nested and fault.keyword in ("anyOf", "oneOf") else fault.message
    return f"{where}: {text}" if where and not text.startswith("/") else where + text


def _not_a_choice(path: Path, choices: list[object], got: object) -> Violation:
    words = [word for word in choices if isinstance(word, str)]
    meant = nearest(got, words) if isinstance(got, str) else None
    hint = f", did you mean {show(meant)}?" if meant else ""
    text = f"must be one of {_choices(choices)}, got {show(got)}{hint}"
    return Violation(path, "enum", text, choices, got, meant)


def _choices(choices: Sequence[object]) -> str:
    shown = [show(choice) for choice in choices[:_MAX_CHOICES]]
    if len(choices) > _MAX_CHOICES:
        shown.append(f"… {len(choices) - _MAX_CHOICES} more")
    return "[" + ", ".join(shown) + "]"


_AT_LEAST, _AT_MOST = (
    "has {count}, but needs at least {limit}",
    "has {count}, but may have at most {limit}",
)
_WORDS: Mapping[str, str] = {
    "const": "must be {limit}, got {got}",
    "minimum": "{got} is less than the minimum of {limit}",
    "maximum": "{got} is greater than the maximum of {limit}",
    "exclusiveMinimum": "{got} must be greater than {limit}",
    "exclusiveMaximum": "{got} must be less than {limit}",
    "multipleOf": "{got} is not a multiple of {limit}",
    "pattern": "{got} does not match {limit}",
    "$ref": "{got} does not match {limit}",
    "format": "{got} is not in the format {limit}",
    "not": "{got} is not allowed here",
    "false": "nothing is allowed here, got {got}",
    **dict.fromkeys(("minLength", "minItems", "minProperties"), _AT_LEAST),
    **dict.fromkeys(("maxLength", "maxItems", "maxProperties"), _AT_MOST),
    "contains": "no item is of the kind that the list must contain",
    "minContains": "{got} items are of the kind that the list must contain {limit} of",
    "maxContains": "{got} items are of a kind of which the list may contain {limit}",
}
# One and several of the parts that a keyword counts, by its name without `min` or `max`.
_COUNTED: Mapping[str, tuple[str, str]] = {
    "Length": ("character", "characters"),
    "Items": ("item", "items"),
    "Properties": ("property", "properties"),
}
