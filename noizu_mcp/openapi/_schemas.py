"""Schemas of OpenAPI as JSON Schema 2020-12, with everything that they refer to in `$defs`.

OpenAPI 3.1 uses JSON Schema itself; 3.0 has a dialect of its own (`nullable`, boolean
`exclusiveMinimum`). Keywords that JSON Schema does not have are left out. A reference stays a
reference, so schemas that refer to themselves are fine.
"""

from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

from .._json_schema import BOUNDS, ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS, SIZES, modernize_bounds
from .._media_types import is_text
from .._value import JSONObject
from ..schema import or_null
from ._document import ApiDocument, DocumentError

#: Schemas behind one argument or result; a model reads all of them.
MAX_DEFINITIONS: Final = 500
#: Nesting of one schema, references not counted.
MAX_DEPTH: Final = 100

_NAMED: Final = SCHEMA_MAPS - {"definitions"}
#: The other keywords that are kept. Documents have many more: keywords of OpenAPI, of older drafts,
#: misspelled ones, and ones that would give the references another base.
_PLAIN: Final = frozenset(
    {"type", "enum", "const", "title", "description", "default", "examples", "deprecated"}
    | {"multipleOf", "pattern", "format", "contentEncoding", "contentMediaType", *BOUNDS, *SIZES}
    | {"uniqueItems", "maxContains", "minContains", "dependentRequired", "readOnly", "writeOnly"}
)
#: Keywords that a schema can do without, in the order in which they go: what documents get wrong
#: most often, and patterns in other dialects.
DISPENSABLE: Final = (frozenset({"default", "examples"}), frozenset({"pattern"}))
#: The keyword of a text that stands for bytes.
BASE64: Final = {"contentEncoding": "base64"}


class SchemaConverter:
    """Converts the schemas of one argument list, or of one result.

    Args:
        document: The document.
        is_input: True for what a caller sends: properties with `readOnly` are left out; for what
            the API returns those with `writeOnly` are.

    Attributes:
        definitions: The schemas that were referred to, by their names in `$defs`.
    """

    def __init__(self, document: ApiDocument, *, is_input: bool) -> None:
        self.definitions: JSONObject = {}
        self._document = document
        self._left_out = "readOnly" if is_input else "writeOnly"
        self._names: dict[str, str] = {}
        # Definitions that were referred to, and are not converted yet: one after the other, since a
        # chain of them may be longer than Python's stack.
        self._waiting: list[tuple[str, object]] = []

    def convert(self, schema: object) -> Any:
        """Convert one schema, and all that it refers to.

        Raises:
            DocumentError: It is malformed, too deep, or refers to something that is not there.
        """
        found = self._convert(schema, 0)
        while self._waiting:
            name, target = self._waiting.pop()
            self.definitions[name] = self._convert(target, 0)
        return found

    def _convert(self, schema: object, depth: int) -> object:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise DocumentError(f"expected a schema, got {str(schema)[:60]!r}")
        if depth > MAX_DEPTH:
            raise DocumentError("a schema is nested too deeply")
        if "$ref" in schema and self._document.is_30:
            # Siblings of a reference are ignored (OpenAPI 3.0, "Reference Object").
            return {"$ref": self._refer(schema["$ref"])}
        found = dict(self._members(schema, depth + 1))
        if "example" in schema and "examples" not in found:
            found["examples"] = [schema["example"]]
        found = _modernize(schema, found)
        if is_binary(found):
            # JSON has no bytes.
            found.pop("format", None)
            found |= BASE64
        return found

    def _members(self, schema: Mapping[str, object], depth: int) -> Iterator[tuple[str, object]]:
        for key, value in schema.items():
            if key == "$ref":
                yield key, self._refer(value)
            elif key in ONE_SCHEMA:
                yield key, self._convert(value, depth)
            elif key in SCHEMA_LISTS and isinstance(value, list):
                yield key, [self._convert(each, depth) for each in value]
            elif key == "properties" and isinstance(value, Mapping):
                kept = {k: v for k, v in value.items() if not self._is_left_out(v)}
                yield key, {name: self._convert(each, depth) for name, each in kept.items()}
            elif key in _NAMED and isinstance(value, Mapping):
                yield key, {name: self._convert(each, depth) for name, each in value.items()}
            elif key == "required" and isinstance(value, list):
                properties = schema.get("properties")
                hidden = properties if isinstance(properties, Mapping) else {}
                left = [each for each in value if not self._is_left_out(hidden.get(str(each)))]
                if left:
                    yield key, left
            elif key in _PLAIN:
                yield key, value

    def _is_left_out(self, schema: object) -> bool:
        return isinstance(schema, Mapping) and schema.get(self._left_out) is True

    def _refer(self, pointer: Any) -> str:
        """Put the schema behind a reference into the definitions; return the reference to it."""
        name = self._names.get(str(pointer))
        if name is None:
            target = self._document.at(pointer)
            if len(self._names) >= MAX_DEFINITIONS:
                raise DocumentError(f"a schema refers to more than {MAX_DEFINITIONS} others")
            last = "".join(c if c.isalnum() else "_" for c in pointer.rpartition("/")[2]) or "root"
            name, number = last, 1
            while name in self.definitions:
                number += 1
                name = f"{last}_{number}"
            self._names[pointer] = name
            self.definitions[name] = {}
            self._waiting.append((name, target))
        return f"#/$defs/{name}"


def is_binary(schema: Mapping[str, object]) -> bool:
    """Tell whether a schema stands for bytes that are not encoded, as in a file that is sent."""
    kind = schema.get("contentMediaType")
    is_raw = isinstance(kind, str) and "contentEncoding" not in schema and not is_text(kind)
    return schema.get("format") == "binary" or is_raw


def without(schema: object, keywords: Container[str]) -> Any:
    """Copy a converted schema without some keywords, at any depth."""
    if not isinstance(schema, dict):
        return schema
    found: JSONObject = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            found[key] = {name: without(each, keywords) for name, each in value.items()}
        elif key in SCHEMA_LISTS and isinstance(value, list):
            found[key] = [without(each, keywords) for each in value]
        elif key not in keywords:
            found[key] = without(value, keywords) if key in ONE_SCHEMA else value
    return found


def _modernize(schema: Mapping[str, object], found: JSONObject) -> JSONObject:
    """Rewrite the keywords of OpenAPI 3.0 that mean something else in JSON Schema.

    Documents of 3.1 have them, too: many were converted, with their version only.
    """
    modernize_bounds(found)
    return or_null(found) if schema.get("nullable") is True else found
