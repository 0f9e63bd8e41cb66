"""One outbound filter per revision: everything inside has the shape of 2026-07-28.

What a revision does not know is left out, or said in its own way. Inputs are never changed.
"""

from collections.abc import Mapping
from typing import Any, Final

from ._versions import Revision

_IMPLEMENTATION_FIELDS: Final = {
    "2025-03-26": ("name", "version"),
    "2025-06-18": ("name", "version", "title"),
}


def adapt_implementation(info: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Write an `Implementation` with the fields that the revision has."""
    fields = _IMPLEMENTATION_FIELDS.get(revision.name)
    return {key: value for key, value in info.items() if fields is None or key in fields}


def adapt_definition(definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Write a resource, template or prompt definition with the fields that the revision has."""
    adapted = dict(definition)
    if not revision.icons:
        adapted.pop("icons", None)
    if not revision.titles:
        adapted.pop("title", None)
        adapted.pop("_meta", None)
    return adapted


def adapt_tool(definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Write a tool definition with the fields that the revision has.

    2025-03-26 knows a title only among the annotations. An output schema whose root is no object
    is wrapped before 2026-07-28, as the results are (`adapt_structured`).
    """
    adapted = adapt_definition(definition, revision)
    if not revision.titles and "title" in definition:
        annotations = definition.get("annotations", {})
        adapted["annotations"] = {"title": definition["title"], **annotations}
    if "outputSchema" in adapted:
        schema = adapt_output_schema(adapted["outputSchema"], revision)
        if schema is None:
            del adapted["outputSchema"]
        else:
            adapted["outputSchema"] = schema
    return adapted


def adapt_output_schema(schema: Mapping[str, Any], revision: Revision) -> Mapping[str, Any] | None:
    """Write an output schema, or None where the revision cannot carry it."""
    if revision.structured == "any":
        return schema
    if revision.structured == "none":
        return None
    return schema if is_object_schema(schema) else _wrap_schema(schema)


def is_object_schema(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema says that its values are objects."""
    return schema.get("type") == "object"


def _wrap_schema(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if _mentions_root(schema):
        return None  # `#` would mean the wrapper
    inner = {key: value for key, value in schema.items() if key not in {"$defs", "$schema"}}
    wrapper = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    if "$defs" in schema:
        wrapper["$defs"] = schema["$defs"]
    return wrapper


def _mentions_root(schema: Any) -> bool:
    """Find a `$ref` that points anywhere but into `$defs`, or an `$id` that moves its base."""
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            ref = node.get("$ref")
            if "$id" in node or "$dynamicRef" in node:
                return True
            if isinstance(ref, str) and not ref.startswith("#/$defs/"):
                return True
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False


def adapt_tool_result(
    result: Mapping[str, Any], schema: Mapping[str, Any] | None, revision: Revision
) -> dict[str, Any]:
    """Write a `CallToolResult` with what the revision has.

    Args:
        result: The result in the shape of 2026-07-28.
        schema: The tool's output schema, or None.
        revision: The revision of the client.
    """
    adapted = dict(result)
    if "structuredContent" in result and revision.structured != "any":
        del adapted["structuredContent"]
        structured = _structured(result["structuredContent"], schema, revision)
        if structured is not None:
            adapted["structuredContent"] = structured
    if not revision.resource_links:
        adapted["content"] = [adapt_block(block) for block in result["content"]]
    return adapted


def _structured(
    value: Any, schema: Mapping[str, Any] | None, revision: Revision
) -> Mapping[str, Any] | None:
    if revision.structured == "none":
        return None
    if schema is None or is_object_schema(schema):
        return value if isinstance(value, Mapping) else None
    return {"result": value} if _wrap_schema(schema) is not None else None


def adapt_block(block: Mapping[str, Any]) -> dict[str, Any]:
    """Write a content block for 2025-03-26: no `resource_link`, no `_meta`."""
    if block.get("type") == "resource_link":
        label = block.get("title") or block.get("name") or ""
        text = f"{label}: {block['uri']}" if label else str(block["uri"])
        return {"type": "text", "text": text}
    return {key: value for key, value in block.items() if key != "_meta"}
