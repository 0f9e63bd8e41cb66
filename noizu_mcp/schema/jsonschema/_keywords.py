"""The vocabulary of JSON Schema 2020-12 as tables, and the dialects that `$schema` may name.

Everything that walks a schema reads these tables, so that a keyword is described in one place.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..._json_schema import BOUNDS, ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS, SIZES, TYPES
from ..._pointer import Path
from ..._util import is_number
from ._violation import Fault, show

LATEST = "https://json-schema.org/draft/2020-12/schema"

# The URI without its empty fragment → the short name of the draft.
DIALECTS: Mapping[str, str] = {
    LATEST: "202012",
    "https://json-schema.org/draft/2019-09/schema": "201909",
    "http://json-schema.org/draft-07/schema": "7",
    "http://json-schema.org/draft-06/schema": "6",
    "http://json-schema.org/draft-04/schema": "4",
}

_ANCHOR = r"[A-Za-z_][-A-Za-z0-9._]*\Z"


class KeywordValue(NamedTuple):
    """The values that a keyword takes: a check, and the words for it."""

    holds: Callable[[object], bool]
    wanted: str


def _is_names(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return False
    return len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return _is_names(value) and bool(value) and all(name in TYPES for name in value)


def _is_schema(value: object) -> bool:
    return isinstance(value, (dict, bool))


def _is_map_of(*kinds: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, dict)
        and all(any(holds(item) for holds in kinds) for item in value.values())
    )


_ANY = KeywordValue(lambda _value: True, "any value")
_TEXT = KeywordValue(lambda value: isinstance(value, str), "a string")
_FLAG = KeywordValue(lambda value: isinstance(value, bool), "true or false")
_NUMBER = KeywordValue(is_number, "a finite number")
_COUNT = KeywordValue(
    lambda value: is_number(value) and value >= 0 and value == int(value),
    "an integer of 0 or more",
)
_NAMES = KeywordValue(_is_names, "a list of different strings")
_LIST = KeywordValue(lambda value: isinstance(value, list), "a list")
_SCHEMA = KeywordValue(_is_schema, "a schema: an object, true or false")
_SCHEMA_MAP = KeywordValue(_is_map_of(_is_schema), "an object whose values are schemas")
_SCHEMA_LIST = KeywordValue(
    lambda value: isinstance(value, list) and bool(value) and all(map(_is_schema, value)),
    "a list of one schema or more",
)
_NAME = KeywordValue(
    lambda value: isinstance(value, str) and re.match(_ANCHOR, value) is not None,
    "a name: a letter or _, then letters, digits, '-', '.' and '_'",
)
_ID = KeywordValue(
    lambda value: isinstance(value, str) and "#" not in value[:-1],
    "a URI reference without a fragment",
)

_BY_RULE: tuple[tuple[KeywordValue, str], ...] = (
    (_ANY, "const default"),
    (_LIST, "enum examples"),
    (_TEXT, "$schema $ref $dynamicRef $comment $recursiveRef pattern"),
    (_TEXT, "format title description contentEncoding contentMediaType"),
    (_FLAG, "uniqueItems deprecated readOnly writeOnly"),
    (_NUMBER, " ".join(BOUNDS)),
    (KeywordValue(lambda value: is_number(value) and value > 0, "a number above 0"), "multipleOf"),
    (_COUNT, " ".join((*sorted(SIZES), "maxContains", "minContains"))),
    (_NAMES, "required"),
    (
        KeywordValue(_is_map_of(_is_names), "an object whose values are lists of names"),
        "dependentRequired",
    ),
    (KeywordValue(_is_type, "one of " + ", ".join(TYPES) + ", or a list of them"), "type"),
    (
        KeywordValue(_is_map_of(_is_schema, _is_names), "an object of schemas or lists of names"),
        "dependencies",
    ),
    (KeywordValue(_is_map_of(_FLAG.holds), "an object of true and false"), "$vocabulary"),
    (_NAME, "$anchor $dynamicAnchor $recursiveAnchor"),
    (_ID, "$id"),
    (_SCHEMA, " ".join(sorted(ONE_SCHEMA))),
    (_SCHEMA_MAP, " ".join(sorted(SCHEMA_MAPS))),
    (_SCHEMA_LIST, " ".join(sorted(SCHEMA_LISTS))),
)

# Every keyword of 2020-12 and the rule for its value.
RULES: Mapping[str, KeywordValue] = {
    name: rule for rule, names in _BY_RULE for name in names.split()
}


def subschemas(schema: Mapping[str, object]) -> Iterator[tuple[Path, object]]:
    """Yield every direct subschema with its path; a keyword with a wrong value is passed over."""
    for keyword, value in schema.items():
        if keyword in ONE_SCHEMA:
            yield (keyword,), value
        elif keyword in SCHEMA_MAPS or keyword == "dependencies":
            if isinstance(value, dict):
                yield from (((keyword, name), item) for name, item in value.items())
        elif keyword in SCHEMA_LISTS and isinstance(value, list):
            yield from (((keyword, index), item) for index, item in enumerate(value))


def walk(schema: object) -> Iterator[tuple[Path, dict[Any, Any]]]:
    """Yield every schema object below and including this one, parents first, without recursion."""
    waiting: list[tuple[Path, object]] = [((), schema)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            yield path, node
            below = [((*path, *step), child) for step, child in subschemas(node)]
            waiting.extend(reversed(below))


def keyword_faults(nodes: Iterable[tuple[Path, Mapping[str, object]]]) -> list[Fault]:
    """Return a fault for each keyword that does not take its value.

    Args:
        nodes: The schema objects with their paths.
    """
    return [
        Fault((*path, keyword), f"takes {RULES[keyword].wanted}, not {show(value)}")
        for path, node in nodes
        for keyword, value in node.items()
        if keyword in RULES and not RULES[keyword].holds(value)
    ]


def dialect_of(schema: Mapping[str, object] | bool) -> str:
    """Return the URI of the dialect of a schema, 2020-12 by default (spec, basic, 1.19)."""
    declared = schema.get("$schema", LATEST) if isinstance(schema, Mapping) else LATEST
    return declared.removesuffix("#") if isinstance(declared, str) else repr(declared)


# Keywords beside which a `type` with null would not let null through.
_JUDGES = frozenset({"$ref", "const", "anyOf", "oneOf", "allOf", "not", "if"})


def or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts null too."""
    made = dict(schema)
    if not made:
        return made
    if schema.keys() == {"anyOf"}:
        return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    if not _JUDGES.isdisjoint(schema):
        return {"anyOf": [made, {"type": "null"}]}
    if isinstance(made.get("type"), str) and made["type"] != "null":
        made["type"] = [made["type"], "null"]
    if "enum" in made and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    return made


# One order for every schema: type, description, contents, bounds, annotations.
_KEYWORDS = (
    *("$ref", "type", "description", "enum", "anyOf", "oneOf", "properties", "required"),
    *("propertyNames", "additionalProperties", "items", "prefixItems"),
    *("format", "pattern", "contentEncoding"),
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "default", "examples", "x-mcp-header", "$defs"),
)
_ORDER = {name: place for place, name in enumerate(_KEYWORDS)}


def ordered(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a schema object with its keywords in the one order."""
    if len(schema) < 2:
        return dict(schema)
    return {name: schema[name] for name in sorted(schema, key=lambda name: _ORDER.get(name, 99))}
