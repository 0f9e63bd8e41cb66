"""One outbound filter per revision: everything inside has the shape of 2026-07-28.

Fields that a revision lacks are left out, or written in its older form. Inputs are never changed:
the definitions of a server are shared by all connections.
"""

from collections.abc import Mapping
from typing import Any, Final

from .._json_schema import SCHEMA_MAPS
from .._value import JSONMapping, JSONObject
from ._revisions import Revision

#: Revisions that lack some of the fields; 2025-11-25 and later have all of them. Results are open
#: objects, but strict clients of the older revisions exist.
_IMPLEMENTATION_FIELDS: Final = {
    "2025-03-26": frozenset({"name", "version"}),
    "2025-06-18": frozenset({"name", "version", "title"}),
}


def adapt_implementation(info: JSONMapping, revision: Revision) -> JSONObject:
    """Write an `Implementation` with the fields that the revision has."""
    fields = _IMPLEMENTATION_FIELDS.get(revision.name)
    return {key: value for key, value in info.items() if fields is None or key in fields}


def adapt_definition(definition: JSONMapping, revision: Revision) -> JSONObject:
    """Write a resource, template or prompt definition with the fields that the revision has."""
    adapted = dict(definition)
    # Icons came with 2025-11-25 (`basic/index`).
    if not revision.icons:
        adapted.pop("icons", None)
    if not revision.titles:
        _drop_titles(adapted)
    return adapted


def _drop_titles(adapted: JSONObject) -> None:
    adapted.pop("title", None)
    # All of these came with 2025-06-18, which separated the display name from the identifier.
    adapted.pop("_meta", None)
    if "arguments" in adapted:
        adapted["arguments"] = [_without(each, "title") for each in adapted["arguments"]]
    if "annotations" in adapted:
        adapted["annotations"] = _without(adapted["annotations"], "lastModified")


def _without(value: JSONMapping, key: str) -> JSONObject:
    return {name: item for name, item in value.items() if name != key}


def adapt_tool(definition: JSONMapping, revision: Revision) -> JSONObject:
    """Write a tool definition with the fields that the revision has.

    2025-03-26 knows a title only among the annotations. An output schema whose root is no object
    is wrapped before 2026-07-28, as the results are (`adapt_tool_result`).
    """
    adapted = adapt_definition(definition, revision)
    if not revision.titles and "title" in definition:
        # A title that the author wrote among the annotations wins: it was written for this place.
        annotations = definition.get("annotations") or {}
        adapted["annotations"] = {"title": definition["title"], **annotations}
    # `execution.taskSupport` belongs to the experimental tasks of 2025-11-25; 2026-07-28 removed
    # it.
    if not revision.tasks:
        adapted.pop("execution", None)
    if not revision.stateless and "inputSchema" in adapted:
        adapted["inputSchema"] = _object_properties(adapted["inputSchema"])
    if "outputSchema" in adapted:
        schema = adapt_output_schema(adapted.pop("outputSchema"), revision)
        if schema is not None:
            adapted["outputSchema"] = schema
    return adapted


def adapt_output_schema(schema: JSONMapping, revision: Revision) -> JSONMapping | None:
    """Write an output schema; None for a revision without structured output."""
    if revision.structured == "any":
        return schema
    if revision.structured == "none":
        return None
    # Wrapped, not left out: programs that read structured output keep it on every revision that has
    # it.
    return _object_properties(schema) if is_object_schema(schema) else wrap_schema(schema)


def _object_properties(schema: JSONMapping) -> JSONMapping:
    """Write `true` and `false` as objects: before 2026-07-28 `Tool` knows no other properties."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return schema
    # Nearly every schema ends here, without a copy.
    if not any(isinstance(each, bool) for each in properties.values()):
        return schema
    return {**schema, "properties": {k: _as_object(each) for k, each in properties.items()}}


def _as_object(schema: object) -> Any:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


def adapt_tool_result(
    result: JSONMapping, schema: JSONMapping | None, revision: Revision
) -> JSONObject:
    """Write a `CallToolResult` with the fields that the revision has.

    Args:
        result: The result in the shape of 2026-07-28.
        schema: The tool's output schema; None if it has none, or it is not known.
        revision: The revision of the client.
    """
    adapted = dict(result)
    # Asked by key: null is a value of 2026-07-28 (`server/tools`), not an absent one.
    if "structuredContent" in result and revision.structured != "any":
        structured = _structured(adapted.pop("structuredContent"), schema, revision)
        if structured is not None:
            adapted["structuredContent"] = structured
    if not revision.resource_links and "content" in result:
        adapted["content"] = [adapt_block(block) for block in result["content"]]
    return adapted


def _structured(
    value: object, schema: JSONMapping | None, revision: Revision
) -> JSONMapping | None:
    if revision.structured == "none":
        return None
    if schema is not None and is_object_schema(schema):
        # Left out if it breaks the schema: a client should validate it (2025-06-18 `server/tools`),
        # and would refuse the text of the result with it.
        return value if isinstance(value, Mapping) else None
    # The schema of a tool that only an override serves is not known here. Its objects need no
    # wrapping, and every other value would break 2025-06-18, where the field holds an object.
    return value if schema is None and isinstance(value, Mapping) else {"result": value}


def adapt_block(block: JSONMapping) -> JSONObject:
    """Write a content block for 2025-03-26: no `resource_link`, no `_meta`, no `lastModified`."""
    # A client that does not know the type of one block refuses the whole result; as text the model
    # still sees the link.
    adapted = _link_as_text(block) if block.get("type") == "resource_link" else dict(block)
    adapted.pop("_meta", None)
    if "annotations" in adapted:
        adapted["annotations"] = _without(adapted["annotations"], "lastModified")
    if "resource" in adapted:
        adapted["resource"] = _without(adapted["resource"], "_meta")
    return adapted


def _link_as_text(block: JSONMapping) -> JSONObject:
    label = block.get("title") or block.get("name") or ""
    text = f"{label}: {block['uri']}" if label else str(block["uri"])
    adapted = {"type": "text", "text": text}
    return {**adapted, "annotations": block["annotations"]} if "annotations" in block else adapted


# Output schemas for revisions that know structured output only as objects. Before 2026-07-28 a
# value that need not be an object travels as `{"result": value}`; its schema moves into
# `properties` with it, and the references into the schema must follow.

# The new place of the schema; every pointer into it begins here.
_PLACE: Final = "#/properties/result"
_DEFS: Final = "$defs"
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})
#: Their values map names to schemas; the names are no keywords.
_NAMED: Final = SCHEMA_MAPS | {"dependencies"}
#: Their values are data; nothing in them is a keyword.
_DATA: Final = frozenset({"const", "enum", "default", "examples"})


def is_object_schema(schema: JSONMapping) -> bool:
    """Tell whether a schema says at its root that its values are objects."""
    return schema.get("type") == "object"


def wrap_schema(schema: JSONMapping) -> JSONObject:
    """Write the schema of `{"result": value}` for a schema of values.

    Args:
        schema: A schema of any draft that writes pointers as 2020-12 does; never changed.

    Returns:
        A schema with an object at its root. Every reference of the form `#/…` still leads to the
        schema that it led to.
    """
    wrapper: JSONObject = {"type": "object"}
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


def _has_own_base(schema: JSONMapping) -> bool:
    """Find an `$id` that makes `#` mean this schema (2020-12 core, section 8.2.1)."""
    id_ = schema.get("$id")
    return isinstance(id_, str) and not id_.startswith("#")


def _moved(node: object) -> Any:
    if isinstance(node, list):
        return [_moved(item) for item in node]
    # References in an embedded resource are relative to its own `$id` (2020-12 core, section
    # 8.2.1).
    if not isinstance(node, Mapping) or _has_own_base(node):
        return node
    return _moved_members(node)


def _moved_members(node: JSONMapping) -> JSONObject:
    return {_moved_key(key): _moved_member(key, value) for key, value in node.items()}


def _moved_key(key: str) -> str:
    # In a schema of one resource the two mean the same, but only `$ref` takes a pointer
    # (2019-09 core, section 8.2.4.2.1).
    return "$ref" if key == "$recursiveRef" else key


def _moved_member(key: str, value: object) -> Any:
    if _moved_key(key) in _REFERENCES:
        return _moved_reference(value)
    # A `$ref` in an example is a value, not a reference.
    if key in _DATA:
        return value
    # A property may be named `$ref` or `enum`; the name must not be read as a keyword.
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _moved(schema) for name, schema in value.items()}
    return _moved(value)


def _moved_reference(ref: object) -> Any:
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        return ref  # an anchor or another document
    # Pointers in a URI fragment may be percent-encoded (RFC 6901 section 6).
    if ref.replace("%24", "$").startswith(f"#/{_DEFS}/"):
        return ref  # definitions stay at the root, where readers look for them
    return _PLACE + ref[1:]
