"""The dialects of JSON Schema that `$schema` may name."""

from collections.abc import Mapping
from typing import Any

LATEST = "https://json-schema.org/draft/2020-12/schema"

# URI without the empty fragment → the short name of the draft.
DIALECTS: Mapping[str, str] = {
    LATEST: "202012",
    "https://json-schema.org/draft/2019-09/schema": "201909",
    "http://json-schema.org/draft-07/schema": "7",
    "http://json-schema.org/draft-06/schema": "6",
    "http://json-schema.org/draft-04/schema": "4",
}


def dialect_of(schema: Mapping[str, Any] | bool) -> str:
    """Return the URI of the dialect of a schema, 2020-12 if it names none (spec, basic, 1.19)."""
    declared = schema.get("$schema", LATEST) if isinstance(schema, Mapping) else LATEST
    return declared.removesuffix("#") if isinstance(declared, str) else repr(declared)
