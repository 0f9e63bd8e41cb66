"""Options of a field: their values, and the keywords of JSON Schema that they become."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from ..._json_schema import BOUNDS
from ..._util import is_number
from ._field import Marker
from ._nodes import Array, Format, Map, Node, Object, Pydantic, Scalar, ScalarChoice, Tuple, Union

_NUMBER = {
    "min": "minimum",
    "max": "maximum",
    "exclusive_min": "exclusiveMinimum",
    "exclusive_max": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
# The keyword of each option, by family of types.
_KEYWORDS: Mapping[str, Mapping[str, str]] = {
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
_CONSTRAINTS = frozenset(option for table in _KEYWORDS.values() for option in table)
# Options of the type, not of the field.
_OF_TYPE = _CONSTRAINTS | {"titles"}
_COMMON = frozenset({"required", "default", "description", "examples", "header", "title", "titles"})
# Options beside the constraints, where a maker does not take the common ones alone.
_OWN = {
    "field": _COMMON | {"factory"},
    "argument": (_COMMON | {"complete"}) - {"header", "titles"},
}


def _is_titles(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


# The test of an option's value, and its name in messages.
_Takes = tuple[Callable[[object], bool], str]
_A_TEXT: _Takes = (lambda value: isinstance(value, str), "text")
_A_FLAG: _Takes = (lambda value: isinstance(value, bool), "True or False")
_A_NUMBER: _Takes = (is_number, "a number")
_A_COUNT: _Takes = (
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
    "a whole number, 0 or more",
)
_OPTION_TAKES: Mapping[str, _Takes] = {
    "required": _A_FLAG,
    "description": _A_TEXT,
    "examples": (lambda value: isinstance(value, (list, tuple)), "a list"),
    "header": _A_TEXT,
    "factory": (callable, "a callable without arguments"),
    "title": _A_TEXT,
    "titles": (_is_titles, "a mapping of choices to text"),
}
# By keyword, since `min` counts items for a list and is any number for a number.
_KEYWORD_TAKES: Mapping[str, _Takes] = {
    **dict.fromkeys(BOUNDS, _A_NUMBER),
    "multipleOf": (lambda value: is_number(value) and value > 0, "a number above 0"),
    "pattern": _A_TEXT,
    "format": _A_TEXT,
    "uniqueItems": _A_FLAG,
}
_BOUNDS = (("min", "max"), ("min_length", "max_length"))


def marker_problems(marker: Marker) -> list[str]:
    """Return the problems of a marker, whatever its type: unknown options, wrong values."""
    problems = [
        f"{marker.maker}(...) takes keyword arguments only, got {value!r}"
        for value in marker.misplaced
    ]
    options = marker.options
    known = _OWN.get(marker.maker, _COMMON) | _CONSTRAINTS
    for option, value in options.items():
        if option not in known:
            # Most programs have no mistake, and need none of the advice.
            from ._mistakes import unknown_option

            problems.append(unknown_option(marker, option, known))
        elif option in _OPTION_TAKES and value is not None and not _OPTION_TAKES[option][0](value):
            problems.append(f"{option} must be {_OPTION_TAKES[option][1]}, got {value!r}")
    if options.get("required") and {"default", "factory"} & options.keys():
        problems.append("required=True with a default: drop one, an absent field gets its default")
    if {"default", "factory"} <= options.keys():
        problems.append("default and factory together: drop one")
    return problems


def constrain(node: Node, options: Mapping[str, Any]) -> list[str]:
    """Apply the options that bound values to a node, or to those types of a union that take them.

    Args:
        node: The type of the field.
        options: All options of the field; options that are not about the type are ignored.

    Returns:
        The problems: an option of another type, a value that its keyword cannot have.
    """
    if not options.keys() & _OF_TYPE:
        return []
    problems: list[str] = []
    targets = list(_targets(node))
    for option, value in options.items():
        if option in _CONSTRAINTS and value is not None:
            problems.extend(_constrain(targets, option, value))
    titles = options.get("titles")
    if titles is not None and _is_titles(titles):
        problems.extend(_title_choices(node, titles))
    for target in targets:
        names = _KEYWORDS.get(family(target), {})
        for low, high in _BOUNDS:
            least = target.keywords.get(names.get(low, ""))
            most = target.keywords.get(names.get(high, ""))
            if least is not None and most is not None and least > most:
                problems.append(f"{low} {least} is above {high} {most}: nothing fits")
    return problems


def _constrain(targets: Sequence[Node], option: str, value: object) -> Iterator[str]:
    takers = [target for target in targets if option in _KEYWORDS.get(family(target), ())]
    if not takers:
        from ._mistakes import misfit

        families = list(dict.fromkeys(map(family, targets)))
        yield misfit(
            families, option, [name for kind in families for name in _KEYWORDS.get(kind, ())]
        )
    for target in takers:
        keyword = _KEYWORDS[family(target)][option]
        holds, wanted = _KEYWORD_TAKES.get(keyword, _A_COUNT)
        if not holds(value):
            yield f"{option} must be {wanted}, got {value!r}"
            return
        if keyword != "uniqueItems" or value:
            target.keywords[keyword] = value


def _targets(node: Node) -> Iterator[Node]:
    """Yield a node, or the types of a union."""
    if isinstance(node, Union):
        for option in node.options:
            yield from _targets(option)
    else:
        yield node


_FAMILIES = {
    ScalarChoice: "enum",
    Array: "array",
    Tuple: "tuple",
    Map: "object",
    Object: "object with fields",
}


def family(node: Node) -> str:
    """Return the name of a node's type: a row of `_KEYWORDS`, or a name for messages."""
    if isinstance(node, Scalar):
        return node.cast.name if isinstance(node.cast, Format) else node.kind
    if isinstance(node, Pydantic):
        kind = node.schema.get("type")
        return kind if isinstance(kind, str) else "union"
    return _FAMILIES.get(type(node), "Any")


# Titles are names for people. Only forms show them: a tool schema is read by a model, for which
# they are noise.

#: The title of one field, and the titles of its choices by their JSON values.
Titles = tuple[str | None, Mapping[object, str]]


def form_titles(node: Node) -> dict[str, Titles]:
    """Return the titles of those fields of the root that have any, by name."""
    if isinstance(node, Pydantic):
        return {name: (title, {}) for name, title in node.titles.items()}
    found: dict[str, Titles] = {}
    for field in node.fields if isinstance(node, Object) else ():
        choices = next((each.titles for each in _choices(field.node) if each.titles), {})
        if field.title is not None or choices:
            found[field.name] = (field.title, choices)
    return found


def _title_choices(node: Node, titles: Mapping[object, str]) -> list[str]:
    """Set the titles of an enum, of a list of one, or of the enums of a union.

    Returns:
        The problems: a title for a value that is not a choice, or no choices at all.
    """
    named = {key.value if isinstance(key, Enum) else key: text for key, text in titles.items()}
    found = list(_choices(node))
    for choice in found:
        choice.titles = named
    # Null is the absence of a choice, which a form cannot show.
    known = [[value for value in choice.values if value is not None] for choice in found]
    strangers = [
        (key, values)
        for values in known
        for key in named
        if not any(type(value) is type(key) and value == key for value in values)
    ]
    if found and not strangers:
        return []
    from ._mistakes import titles_problems

    return titles_problems(strangers)


def _choices(node: Node) -> Iterator[ScalarChoice]:
    if isinstance(node, ScalarChoice):
        yield node
    elif isinstance(node, (Union, Array)):
        for child in node.children():
            yield from _choices(child)
