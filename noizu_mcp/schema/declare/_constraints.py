"""Constraints of other libraries → options of a field: annotated-types, validators of attrs.

Both are recognised by their names and attributes: annotated-types is never imported, and attrs
keeps the classes of its validators private. The file is loaded with the first constraint.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from ._field_options import constrain, family
from ._mistakes import foreign_field
from ._nodes import Array, Map, Node, Scalar, ScalarChoice, Tuple, Union

_BOUNDS = {"ge": "min", "gt": "exclusive_min", "le": "max", "lt": "exclusive_max"}
_COMPARED = {">=": "min", ">": "exclusive_min", "<=": "max", "<": "exclusive_max"}
_SIZES = {"min_length": ("min_length", "min"), "max_length": ("max_length", "max")}
# The pattern that searches as `matches_re(func=...)` matches, by the name of the function.
_ANCHORED = {"fullmatch": "^(?:{})$", "match": "^(?:{})", "search": "{}"}
_SCALARS = (str, int, float, bool, type(None))


def annotated_options(node: Node, constraint: object) -> dict[str, object] | str:
    """Read an entry of `Annotated[...]` as annotated-types defines them.

    Returns:
        Options of a field, `{}` for an entry that is not a constraint; or the problem of a
        constraint that no schema can express.
    """
    if isinstance(constraint, type):
        return {}
    if (problem := foreign_field(constraint)) is not None:
        return problem
    if type(constraint).__name__ in ("Predicate", "Not"):
        return f"{constraint!r} cannot be written in JSON Schema; check it in the handler"
    bounds = {**_BOUNDS, "multiple_of": "multiple_of"}
    found = [(option, getattr(constraint, name, None)) for name, option in bounds.items()]
    # 0 is how annotated-types writes "no lower bound".
    found.append(
        (_size_option(node, "min_length"), getattr(constraint, "min_length", None) or None)
    )
    found.append((_size_option(node, "max_length"), getattr(constraint, "max_length", None)))
    return {option: value for option, value in found if value is not None}


def _size_option(node: Node, name: str) -> str:
    branches = node.options if isinstance(node, Union) else [node]
    counted = any(family(branch) in ("array", "tuple", "object") for branch in branches)
    text = any(family(branch) == "string" for branch in branches)
    return _SIZES[name][1 if counted and not text else 0]


def apply_validator(node: Node, validator: object) -> list[str]:
    """Put the demands of an attrs validator on a node, where JSON Schema has a keyword for them.

    The validator itself still runs when the instance is made, so no demand is lost.

    Returns:
        The problems: a bound on a type that takes no bounds.
    """
    if isinstance(validator, (list, tuple)):
        return [problem for part in validator for problem in apply_validator(node, part)]
    handler = _HANDLERS.get(type(validator).__name__)
    return list(handler(node, validator)) if handler is not None else []


def _size(name: str) -> Callable[[Node, object], list[str]]:
    return lambda node, v: constrain(node, {_size_option(node, name): getattr(v, name)})


def _matches(node: Node, validator: Any) -> Iterator[str]:
    pattern = validator.pattern
    form = _ANCHORED.get(getattr(validator.match_func, "__name__", ""))
    # JSON Schema has no flags, and a flag changes the pattern: the validator alone decides.
    if form is not None and isinstance(pattern.pattern, str) and pattern.flags == re.UNICODE:
        yield from constrain(node, {"pattern": form.format(pattern.pattern)})


def _member(node: Node, validator: Any) -> list[str]:
    # attrs keeps the options as a frozenset; the published order is the written one.
    written = getattr(validator, "_original_options", validator.options)
    unordered = isinstance(written, (set, frozenset))
    allowed = sorted(written, key=repr) if unordered else list(written)
    for branch in node.options if isinstance(node, Union) else [node]:
        if isinstance(branch, ScalarChoice):
            pairs = zip(branch.values, branch.results, strict=True)
            kept = [pair for pair in pairs if pair[1] in allowed]
            branch.values = tuple(value for value, _ in kept)
            branch.results = tuple(result for _, result in kept)
        elif isinstance(branch, Scalar) and all(type(value) in _SCALARS for value in allowed):
            branch.keywords["enum"] = [value for value in allowed if value is not None]
    return []


def _items(node: Node, validator: Any) -> Iterator[str]:
    yield from apply_validator(node, validator.iterable_validator)
    for branch in node.options if isinstance(node, Union) else [node]:
        for item in branch.children() if isinstance(branch, (Array, Tuple)) else ():
            yield from apply_validator(item, validator.member_validator)


def _entries(node: Node, validator: Any) -> Iterator[str]:
    yield from apply_validator(node, validator.mapping_validator)
    for branch in node.options if isinstance(node, Union) else [node]:
        if isinstance(branch, Map):
            yield from apply_validator(branch.key, validator.key_validator)
            yield from apply_validator(branch.value, validator.value_validator)


_HANDLERS: Mapping[str, Callable[[Node, Any], Iterable[str]]] = {
    # `and_` is an attrs class whose one field has no public name.
    "_AndValidator": lambda node, v: apply_validator(node, *attrs.astuple(v, recurse=False)),
    "_OptionalValidator": lambda node, v: apply_validator(node, v.validator),
    "_NumberValidator": lambda node, v: constrain(node, {_COMPARED[v.compare_op]: v.bound}),
    "_MinLengthValidator": _size("min_length"),
    "_MaxLengthValidator": _size("max_length"),
    "_MatchesReValidator": _matches,
    "_InValidator": _member,
    "_DeepIterable": _items,
    "_DeepMapping": _entries,
}
