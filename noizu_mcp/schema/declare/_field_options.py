"""Options of a field → JSON Schema keywords: which belong to which type, and what they take."""

import re
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
# The options of pydantic, FastMCP, attrs, marshmallow and JSON Schema → ours.
_WORDS = {
    **dict.fromkeys(("ge", "minimum", "min_items", "min_properties", "min_value"), "min"),
    **dict.fromkeys(("le", "maximum", "max_items", "max_properties", "max_value"), "max"),
    **dict.fromkeys(("gt", "exclusive_minimum"), "exclusive_min"),
    **dict.fromkeys(("lt", "exclusive_maximum"), "exclusive_max"),
    **dict.fromkeys(("multiple", "step"), "multiple_of"),
    "min_len": "min_length",
    "max_len": "max_length",
    **dict.fromkeys(("regex", "regexp", "matches"), "pattern"),
    **dict.fromkeys(("unique_items", "uniqueness"), "unique"),
    **dict.fromkeys(("default_factory", "missing"), "factory"),
    **dict.fromkeys(("example",), "examples=[...]"),
    **dict.fromkeys(("desc", "help", "doc", "about"), "description"),
    **dict.fromkeys(("label", "verbose_name"), "title"),
    **dict.fromkeys(("completions", "suggestions", "completer"), "complete"),
}
_CHOICES = "write the choices as the type: Literal[...] or an Enum"
_OWN_CHECK = "check the value in the handler, or write an attrs class with validators as the type"
_NO_MEANING = "leave it out, it has no meaning in a schema"
# Options without a counterpart → what to do instead.
_ADVICE = {
    **dict.fromkeys(("const", "enum", "choices", "values", "options", "one_of"), _CHOICES),
    **dict.fromkeys(("nullable", "allow_none", "none"), "write | None after the type"),
    "optional": "write required=False",
    **dict.fromkeys(("type", "annotation", "python_type"), "write the type as the annotation"),
    **dict.fromkeys(
        ("alias", "name", "serialization_alias", "validation_alias"),
        "a field is sent by its own name; rename it, or write the input as a mapping of names to"
        " fields",
    ),
    **dict.fromkeys(
        ("json_schema_extra", "schema_extra", "extra", "metadata"),
        "write the whole schema as input_schema to use other keywords",
    ),
    **dict.fromkeys(("validator", "validate", "validators", "converter", "convert"), _OWN_CHECK),
    **dict.fromkeys(("init", "repr", "eq", "order", "hash", "kw_only", "exclude"), _NO_MEANING),
    **dict.fromkeys(("frozen", "strict", "deprecated", "validate_default"), _NO_MEANING),
}
# Where the data form has words of its own.
_DATA_ADVICE = {
    **dict.fromkeys(("const", "enum", "choices", "values"), 'write f.enum("plain", "loud")'),
    **dict.fromkeys(("items", "item", "type"), "write f.array(f.string())"),
    **dict.fromkeys(("properties", "fields"), "write f.object({...})"),
    **dict.fromkeys(
        ("factory", "default_factory"), "write default=, which is copied for each call"
    ),
    "alias": "the name in the mapping is what is sent; any text will do",
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
            problems.append(_unknown(marker, option, known))
        elif option in _OPTION_TAKES and value is not None and not _OPTION_TAKES[option][0](value):
            problems.append(f"{option} must be {_OPTION_TAKES[option][1]}, got {value!r}")
    if marker.options.get("required") and {"default", "factory"} & marker.options.keys():
        problems.append("required=True with a default: drop one, an absent field gets its default")
    if {"default", "factory"} <= marker.options.keys():
        problems.append("default and factory together: drop one")
    return problems


def _unknown(marker: Marker, option: str, known: frozenset[str]) -> str:
    # `minItems` and `min_items` are one word.
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", option).lower()
    advice = _DATA_ADVICE.get(word) if marker.kind is not None else None
    advice = advice or _ADVICE.get(word)
    ours = _WORDS.get(word, word)
    if advice is None and (ours.partition("=")[0] in known):
        advice = f"write {ours}"
    if advice is not None:
        return f"{marker.maker} has no option {option!r}; {advice}"
    found = nearest(option, sorted(known))
    hint = f"did you mean {found!r}?" if found else f"known: {', '.join(sorted(known))}"
    return f"unknown option {option!r} of {marker.maker}; {hint}"


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
