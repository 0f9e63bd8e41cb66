"""Output schemas for revisions that know structured output only as objects.

Before 2026-07-28 a value that need not be an object travels as `{"result": value}`; its schema
moves into `properties` with it, and the references into the schema must follow.
"""

from collections.abc import Mapping
from typing import Any, Final

# The new place of the schema; every pointer into it begins here.
_PLACE: Final = "#/properties/result"
_DEFS: Final = "$defs"
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})
#: Their values map names to schemas; the names are no keywords.
_NAMED: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies", "definitions", _DEFS}
)
#: Their values are data; nothing in them is a keyword.
_DATA: Final = frozenset({"const", "enum", "default", "examples"})


def is_object_schema(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema says at its root that its values are objects."""
    return schema.get("type") == "object"


def wrap_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write the schema of `{"result": value}` for a schema of values.

    Args:
        schema: A schema of any draft that writes pointers as 2020-12 does; never changed.

    Returns:
        A schema with an object at its root. Every reference of the form `#/…` still leads to the
        schema that it led to.
    """
    wrapper: dict[str, Any] = {"type": "object"}
    inner = dict(schema)
    # The dialect holds for the whole document (JSON Schema 2020-12 core, section 8.1.1).
    if "$schema" in inner:
        wrapper["$schema"] = inner.pop("$schema")
    # With an `$id` of its own, the references of the schema do not depend on where it stands.
    if not _has_own_base(inner):
        inner = _moved_members(inner)
        # At the root, where tools that render schemas look for them.
        if _DEFS in inner:
            wrapper[_DEFS] = inner.pop(_DEFS)
    return {**wrapper, "properties": {"result": inner}, "required": ["result"]}


def _has_own_base(schema: Mapping[str, Any]) -> bool:
    """Find an `$id` that makes `#` mean this schema (2020-12 core, section 8.2.1)."""
    id_ = schema.get("$id")
    return isinstance(id_, str) and not id_.startswith("#")


def _moved(node: Any) -> Any:
    if isinstance(node, list):
        return [_moved(item) for item in node]
    # References in an embedded resource are relative to its own `$id` (2020-12 core, section
    # 8.2.1).
    if not isinstance(node, Mapping) or _has_own_base(node):
        return node
    return _moved_members(node)


def _moved_members(node: Mapping[str, Any]) -> dict[str, Any]:
    return {_moved_key(key): _moved_member(key, value) for key, value in node.items()}


def _moved_key(key: str) -> str:
    # In a schema of one resource the two mean the same, but only `$ref` takes a pointer
    # (2019-09 core, section 8.2.4.2.1).
    return "$ref" if key == "$recursiveRef" else key


def _moved_member(key: str, value: Any) -> Any:
    if _moved_key(key) in _REFERENCES:
        return _moved_reference(value)
    # A `$ref` in an example is a value, not a reference.
    if key in _DATA:
        return value
    # A property may be named `$ref` or `enum`; the name must not be read as a keyword.
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _moved(schema) for name, schema in value.items()}
    return _moved(value)


def _moved_reference(ref: Any) -> Any:
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        return ref  # an anchor or another document
    # Pointers in a URI fragment may be percent-encoded (RFC 6901 section 6).
    if ref.replace("%24", "$").startswith(f"#/{_DEFS}/"):
        return ref  # definitions stay at the root, where readers look for them
    return _PLACE + ref[1:]
