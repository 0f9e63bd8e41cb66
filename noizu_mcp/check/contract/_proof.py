"""A proof from the structure of two schemas: one accepts every value that the other allows.

Theory of operation. Both schemas are walked side by side. For each keyword of the taker the giver
must imply it, itself or in a schema that applies together with it. Anything complicated counts as
not proved.

A pair of schemas that occurs again inside its own proof is assumed to hold. That is an induction on
the depth of values: a schema that refers to itself for the same value is not walked, so the second
occurrence of the pair is about a part of the value.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any, Final

from ..._json_schema import JSON_TYPES
from ..._util import part_of
from ..._value import JSON, JSONObject
from ...schema import Document

#: Keywords that do not validate, and that a model or a client may read.
ANNOTATIONS: Final = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("format", "contentEncoding", "contentMediaType", "x-mcp-header"),
    }
)
DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_NAMES: Final = frozenset({"$schema", "$id", "$anchor", "$comment"})
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

#: Pairs that are compared; the number of pairs may grow with the product of two sizes.
_MAX_PAIRS: Final = 10_000
#: The bounds of a giver that imply a bound of a taker.
_BOUNDS: Final[Mapping[str, tuple[tuple[str, Callable[[Any, Any], bool]], ...]]] = {
    "minimum": (("minimum", ge), ("exclusiveMinimum", ge)),
    "maximum": (("maximum", le), ("exclusiveMaximum", le)),
    "exclusiveMinimum": (("exclusiveMinimum", ge), ("minimum", gt)),
    "exclusiveMaximum": (("exclusiveMaximum", le), ("maximum", lt)),
    **{key: ((key, ge),) for key in ("minLength", "minItems", "minProperties")},
    **{key: ((key, le),) for key in ("maxLength", "maxItems", "maxProperties")},
}
#: Keywords that apply independently of others: an equal value has an equal effect.
_ALONE: Final = frozenset(
    {
        *("pattern", "multipleOf", "uniqueItems", "not", "oneOf", "propertyNames"),
        "dependentRequired",
    }
)
_REFERENCE: Final = re.compile(r'"\$(ref|dynamicRef|recursiveRef)"')


def text_of(schema: JSON) -> str:
    """Write a schema, or a part of it, so that equal schemas have equal texts."""
    return json.dumps(schema, sort_keys=True)


def judging(node: JSONObject) -> set[str]:
    """Return the keywords of a schema that validate values."""
    return node.keys() - ANNOTATIONS - _NAMES - DEFINITIONS


def is_taken(taker: JSONObject, giver: JSONObject) -> bool:
    """Tell whether a schema is proved to accept every value that another one allows.

    Args:
        taker: A schema that compiles.
        giver: The other schema.

    Returns:
        True if it is proved. False if it is unknown.
    """
    documents = Document(taker), Document(giver)
    if any(each.dialect != _DIALECT or each.is_endless() for each in documents):
        return False
    return _SubsetProof(*documents).takes(taker, giver)


class _SubsetProof:
    def __init__(self, taker: Document, giver: Document) -> None:
        self._taker = taker
        self._giver = giver
        self._assumed: set[tuple[int, int]] = set()
        self._left = _MAX_PAIRS

    def takes(self, taker: JSON, giver: JSON) -> bool:
        """Compare two schemas. Both stay alive, since their ids identify them."""
        if giver is False or taker is True:
            return True
        if taker is False:
            return False
        pair = id(taker), id(giver)
        if pair in self._assumed:
            return True
        self._left -= 1
        before = set(self._assumed)
        self._assumed.add(pair)
        source = {} if giver is True else giver
        if self._left > 0 and all(self._is_said(key, taker, source) for key in judging(taker)):
            return True
        # Conclusions from the pair do not hold either.
        self._assumed = before
        return False

    def _is_said(self, key: str, taker: JSONObject, giver: JSONObject) -> bool:
        """Tell whether a giver implies one keyword of a taker."""
        if _says_alone(key, taker[key], giver):
            return True
        if key in _READERS and _READERS[key](self, taker[key], taker, giver):
            return True
        if any(self._is_said(key, taker, part) for part in self._joined(giver)):
            return True
        for keyword in ("anyOf", "oneOf"):
            parts = part_of(giver, keyword, list)
            if parts and all(self._is_said_in(key, taker, part) for part in parts):
                return True
        return False

    def _is_said_in(self, key: str, taker: JSONObject, part: JSON) -> bool:
        return part is False or (part is not True and self._is_said(key, taker, part))

    def _joined(self, giver: JSONObject) -> Iterator[JSONObject]:
        """Yield the schemas that apply together with a giver."""
        parts = part_of(giver, "allOf", list)
        if "$ref" in giver:
            parts = [*parts, self._find(self._giver, giver)]
        return (part for part in parts if isinstance(part, dict))

    def _find(self, document: Document, node: JSONObject) -> JSON:
        try:
            return document.find(node["$ref"], node)
        except LookupError:  # a metaschema of the standard
            return {"not": {}} if document is self._taker else True

    def read_reference(self, _value: JSON, taker: JSONObject, giver: JSONObject) -> bool:
        return self.takes(self._find(self._taker, taker), giver)

    def read_all_of(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        return all(self.takes(part, giver) for part in value)

    def read_any_of(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        return any(self.takes(part, giver) for part in value)

    def read_type(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        taken = {value} if isinstance(value, str) else set(value)
        if "number" in taken:
            taken.add("integer")
        declared = giver.get("type", ())
        given = {declared} if isinstance(declared, str) else set(declared)
        if values := _values(giver):
            given = {JSON_TYPES[type(each)] for each in values}
        return bool(given) and given <= taken

    def read_enum(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        given = {text_of(each) for each in _values(giver)}
        return bool(given) and given <= {text_of(each) for each in value}

    def read_const(self, value: JSON, taker: JSONObject, giver: JSONObject) -> bool:
        return self.read_enum([value], taker, giver)

    def read_required(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        return set(value) <= set(giver.get("required", ()))

    def read_properties(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        named = part_of(giver, "properties", dict)
        # A name that is not declared may match a pattern.
        others = [giver.get("additionalProperties", True)]
        others += part_of(giver, "patternProperties", dict).values()
        return all(
            all(self.takes(schema, each) for each in ([named[name]] if name in named else others))
            for name, schema in value.items()
        )

    def read_pattern_properties(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        given = part_of(giver, "patternProperties", dict)
        return all(name in given and self.takes(value[name], given[name]) for name in value)

    def read_other_properties(self, value: JSON, taker: JSONObject, giver: JSONObject) -> bool:
        others = [giver.get("additionalProperties", True)]
        for keyword in ("properties", "patternProperties"):
            named = part_of(taker, keyword, dict)
            given = part_of(giver, keyword, dict)
            others += [schema for name, schema in given.items() if name not in named]
        return all(self.takes(value, each) for each in others)

    def read_items(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        given = [giver.get("items", True), *part_of(giver, "prefixItems", list)]
        return all(self.takes(value, each) for each in given)

    def read_first_items(self, value: JSON, _taker: JSONObject, giver: JSONObject) -> bool:
        given = part_of(giver, "prefixItems", list)
        rest = giver.get("items", True)
        return all(
            self.takes(part, given[at] if at < len(given) else rest)
            for at, part in enumerate(value)
        )


_READERS: Final[Mapping[str, Callable[[_SubsetProof, JSON, JSONObject, JSONObject], bool]]] = {
    "$ref": _SubsetProof.read_reference,
    "allOf": _SubsetProof.read_all_of,
    "anyOf": _SubsetProof.read_any_of,
    "type": _SubsetProof.read_type,
    "enum": _SubsetProof.read_enum,
    "const": _SubsetProof.read_const,
    "required": _SubsetProof.read_required,
    "properties": _SubsetProof.read_properties,
    "patternProperties": _SubsetProof.read_pattern_properties,
    "additionalProperties": _SubsetProof.read_other_properties,
    "items": _SubsetProof.read_items,
    "prefixItems": _SubsetProof.read_first_items,
}


def _values(giver: JSONObject) -> list[JSON]:
    """Return the values of a schema that lists them."""
    return [giver["const"]] if "const" in giver else part_of(giver, "enum", list)


def _says_alone(key: str, value: JSON, giver: JSONObject) -> bool:
    """Tell whether one keyword of a giver implies a keyword of a taker."""
    for name, implies in _BOUNDS.get(key, ()):
        if name in giver and implies(giver[name], value):
            return True
    # A reference may mean something else in the other document.
    text = text_of(value)
    return (
        key in _ALONE
        and key in giver
        and text == text_of(giver[key])
        and not _REFERENCE.search(text)
    )
