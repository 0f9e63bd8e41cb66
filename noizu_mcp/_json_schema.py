"""Tables of JSON Schema 2020-12: types, types of Python values, keywords that contain schemas."""

from collections.abc import Mapping
from types import NoneType
from typing import Final

from ._value import JSONObject

TYPES: Final = ("null", "boolean", "object", "array", "number", "string", "integer")

#: The JSON type of each Python type that `json` decodes to; a float may also be an integer.
JSON_TYPES: Final[Mapping[type, str]] = {
    NoneType: "null",
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
}

# Where subschemas stand (2020-12 core section 10; `definitions` is kept from older drafts).
ONE_SCHEMA: Final = frozenset(
    {
        *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
SCHEMA_MAPS: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
#: Keywords that list schemas of the same value.
COMBINING: Final = ("allOf", "anyOf", "oneOf")
SCHEMA_LISTS: Final = frozenset({*COMBINING, "prefixItems"})

#: Keywords that forbid undeclared names where they are false.
CLOSING: Final = frozenset({"additionalProperties", "unevaluatedProperties"})

BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
SIZES: Final = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)


def modernize_bounds(schema: JSONObject) -> None:
    """Write exclusive bounds as 2020-12 does; in draft 4 they are flags beside the bounds."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
