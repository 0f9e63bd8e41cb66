"""Options of a field → JSON Schema keywords: which belong to which type, and what they take."""

from collections.abc import Callable, Mapping
from typing import Any

from ..jsonschema._keywords import is_number
from ..jsonschema._nearest import nearest
from ._choice_titles import title_choices
from ._field import Marker
from ._nodes import Array, Choice, Format, Map, Node, Object, Scalar, Tuple, Union

_NUMBER = {
    "min": "minimum",
    "max": "maximum",
    "exclusive_min": "exclusiveMinimum",
    "exclusive_max": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
# Option → keyword, for each family of types.
KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "string": {
        "min_length": "minLength",
        "max_length": "maxLength",
        "pattern": "pattern",
        "format": "format",
    },
    "integer": _NUMBER,
    "number": _NUMBER,
    "array": {"min": "minItems", "max": "maxItems", "unique": "uniqueItems"},
    "object": {"min": "minProperties", "max": "maxProperties"},
}
CONSTRAINTS = frozenset(option for table in KEYWORDS.values() for option in table)
# Options of the type and not of the field: a type inside another may have them too.
OF_TYPE = CONSTRAINTS | {"titles"}
# What was probably meant, where another family has the same idea under another name.
_MEANT = {
    ("string", "min"): "min_length",
    ("string", "max"): "max_length",
    ("array", "min_length"): "min",
    ("array", "max_length"): "max",
    ("integer", "min_length"): "min",
    ("integer", "max_length"): "max",
    ("number", "min_length"): "min",
    ("number", "max_length"): "max",
    ("object", "min_length"): "min",
    ("object", "max_length"): "max",
}
_COMMON = frozenset({"required", "default", "description", "examples", "header", "title", "titles"})
# Options that stand beside the constraints, for each way to make a field.
_OWN = {
    "field": _COMMON | {"factory"},
    "argument": (_COMMON | {"complete"}) - {"header", "titles"},
}


def _is_titles(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_TAKES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "minimum": (is_number, "a number"),
    "maximum": (is_number, "a number"),
    "exclusiveMinimum": (is_number, "a number"),
    "exclusiveMaximum": (is_number, "a number"),
    "multipleOf": (lambda value: is_number(value) and value > 0, "a number above 0"),
    "pattern": (lambda value: isinstance(value, str), "text"),
    "format": (lambda value: isinstance(value, str), "text"),
    "uniqueItems": (lambda value: isinstance(value, bool), "True or False"),
}
_COUNT = (_is_count, "a whole number, 0 or more")
_OPTION_TAKES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "required": (lambda value: isinstance(value, bool), "True or False"),
    "description": (lambda value: isinstance(value, str), "text"),
    "examples": (lambda value: isinstance(value, (list, tuple)), "a list"),
    "header": (lambda value: isinstance(value, str), "text"),
    "factory": (callable, "a callable without arguments"),
    "title": (lambda value: isinstance(value, str), "text"),
    "titles": (_is_titles, "a mapping of choices to text"),
}
_BOUNDS = (("min", "max"), ("min_length", "max_length"))


def marker_problems(marker: Marker) -> list[str]:
    """Return what is wrong with a marker in itself: unknown options, wrong values."""
    problems = [
        f"{marker.maker}(...) takes keyword arguments only, got {value!r}"
        for value in marker.misplaced
    ]
    known = _OWN.get(marker.maker, _COMMON) | CONSTRAINTS
    for option, value in marker.options.items():
        if option not in known:
            problems.append(f"unknown option {option!r} of {marker.maker}{_nearest(option, known)}")
        elif option in _OPTION_TAKES and value is not None and not _OPTION_TAKES[option][0](value):
            problems.append(f"{option} must be {_OPTION_TAKES[option][1]}, got {value!r}")
    if marker.options.get("required") and {"default", "factory"} & marker.options.keys():
        problems.append("required=True with a default: drop one, an absent field gets its default")
    if {"default", "factory"} <= marker.options.keys():
        problems.append("default and factory together: drop one")
    return problems


def _nearest(option: str, known: frozenset[str]) -> str:
    found = nearest(option, sorted(known))
    return f"; did you mean {found!r}?" if found else f"; known: {', '.join(sorted(known))}"


def constrain(node: Node, options: Mapping[str, Any]) -> list[str]:
    """Put the constraints among `options` on a node, or on those branches that take them.

    Returns:
        What is wrong: an option of another type, a value that the keyword does not take.
    """
    problems: list[str] = []
    for option, value in options.items():
        if option in CONSTRAINTS and value is not None:
            problems.extend(_constrain(node, option, value))
    titles = options.get("titles")
    if titles is not None and _is_titles(titles):
        problems.extend(title_choices(node, titles))
    for target in _targets(node):
        problems.extend(_crossed(target))
    return problems


def _constrain(node: Node, option: str, value: Any) -> list[str]:
    takers = [target for target in _targets(node) if option in KEYWORDS.get(family(target), ())]
    if not takers:
        return [_misfit(node, option)]
    for target in takers:
        keyword = KEYWORDS[family(target)][option]
        holds, wanted = _TAKES.get(keyword, _COUNT)
        if not holds(value):
            return [f"{option} must be {wanted}, got {value!r}"]
        if keyword != "uniqueItems" or value:
            target.keywords[keyword] = value
    return []


def _targets(node: Node) -> list[Node]:
    if isinstance(node, Union):
        return [target for option in node.options for target in _targets(option)]
    return [node]


def family(node: Node) -> str:
    """Return the name of a node's type, as a row of `KEYWORDS` where it has one."""
    if isinstance(node, Scalar):
        return node.cast.name if isinstance(node.cast, Format) else node.kind
    names = {
        Choice: "enum",
        Array: "array",
        Tuple: "tuple",
        Map: "object",
        Object: "object with fields",
    }
    return names.get(type(node), "Any")


def _misfit(node: Node, option: str) -> str:
    kinds = list(dict.fromkeys(map(family, _targets(node))))
    text = f"{option} does not belong to {' or '.join(kinds) or 'null'}"
    for kind in kinds:
        if (kind, option) in _MEANT:
            return f"{text}; write {_MEANT[kind, option]}"
    own = [name for kind in kinds for name in KEYWORDS.get(kind, ())]
    return f"{text}, which takes {', '.join(own)}" if own else f"{text}; leave it out"


def _crossed(node: Node) -> list[str]:
    names = KEYWORDS.get(family(node), {})
    problems: list[str] = []
    for low, high in _BOUNDS:
        least = node.keywords.get(names.get(low, ""))
        most = node.keywords.get(names.get(high, ""))
        if least is not None and most is not None and least > most:
            problems.append(f"{low} {least} is above {high} {most}: nothing fits")
    return problems
