"""The form of the messages of a server, as JSON Schema, by revision.

The tables have what the official schema of each revision requires of results and notifications. A
member that a revision does not have may be anything, like all members that the specification does
not name. Base64 is required where the official schema only has the annotation `byte`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ..._value import JSON, JSONObject
from ...schema import CompiledSchema, compile_schema, describe
from ...types import LOG_LEVELS, META_SERVER_INFO, META_SUBSCRIPTION_ID

#: Members of an object, with their schemas.
Members = Mapping[str, JSON]

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_INTEGER: Final = {"type": "integer"}
_NUMBER: Final = {"type": "number"}
_ANY_OBJECT: Final = {"type": "object"}
_ID: Final = {"type": ["string", "integer"]}
_BYTES: Final = {
    "type": "string",
    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
_ROLE: Final = {"enum": ["user", "assistant"]}
#: The revisions that added members.
_JUNE_2025: Final = "2025-06-18"
_NOVEMBER_2025: Final = "2025-11-25"
_JULY_2026: Final = "2026-07-28"
#: Maximum values of a completion (server/utilities/completion).
_MAX_COMPLETIONS: Final = 100


def fault_in_result(version: str, method: str, result: JSONObject) -> str | None:
    """Describe the faults in the form of a result.

    Args:
        version: The revision.
        method: The method of the request.
        result: The result.

    Returns:
        The faults; None if there are none, or for a method without a form here.
    """
    kind = result.get("resultType", "complete")
    if version >= _JULY_2026 and kind == "input_required":
        method = kind
    # A result of another type, or a task, does not have the members of the method.
    elif (isinstance(kind, str) and kind != "complete") or "task" in result:
        return None
    return _fault(version, "results", method, result)


def fault_in_notification(version: str, notification: JSONObject) -> str | None:
    """Describe the faults in the form of a notification; see `fault_in_result`."""
    return _fault(version, "notifications", notification["method"], notification)


def _fault(version: str, part: str, name: str, value: JSONObject) -> str | None:
    form = _compiled(version, part, name)
    if form is None or form.is_valid(value):
        return None
    return "; ".join(describe(form.violations(value)))


@lru_cache(maxsize=200)
def _compiled(version: str, part: str, name: str) -> CompiledSchema | None:
    shapes = _shapes(version)
    found = (_results if part == "results" else _notifications)(version).get(name)
    return None if found is None else compile_schema({**found, "$defs": shapes})


def _object(needed: Members, others: Members | None = None) -> JSONObject:
    """Return the schema of an object, with required and optional members."""
    properties = {**needed, **(others or {})}
    return {"type": "object", "properties": properties, "required": list(needed)}


def _list(items: JSONObject) -> JSONObject:
    return {"type": "array", "items": items}


def _shape(name: str) -> JSONObject:
    return {"$ref": f"#/$defs/{name}"}


def _since(first: str, version: str, members: Members) -> Members:
    """Return the members if a revision has them."""
    return members if version >= first else {}


def _shapes(version: str) -> JSONObject:
    """Return the schemas of the parts of messages."""
    described = {
        "description": _TEXT,
        **_since(_JUNE_2025, version, {"title": _TEXT, "_meta": _ANY_OBJECT}),
        **_since(_NOVEMBER_2025, version, {"icons": _list(_shape("icon"))}),
    }
    annotated = {"annotations": _shape("annotations")}
    resource = {**described, **annotated, "mimeType": _TEXT}
    task_support = {"taskSupport": {"enum": ["forbidden", "optional", "required"]}}
    execution = {"execution": _object({}, task_support)} if version == _NOVEMBER_2025 else {}
    priority = {"type": "number", "minimum": 0, "maximum": 1}
    hints = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    modified = _since(_JUNE_2025, version, {"lastModified": _TEXT})
    themes = {"enum": ["light", "dark"]}
    return {
        "icon": _object(
            {"src": _TEXT}, {"mimeType": _TEXT, "sizes": _list(_TEXT), "theme": themes}
        ),
        "annotations": _object({}, {"audience": _list(_ROLE), "priority": priority, **modified}),
        "implementation": _object(
            {"name": _TEXT, "version": _TEXT},
            {
                **_since(_JUNE_2025, version, {"title": _TEXT}),
                **_since(_NOVEMBER_2025, version, {"description": _TEXT, "websiteUrl": _TEXT}),
                **_since(_NOVEMBER_2025, version, {"icons": _list(_shape("icon"))}),
            },
        ),
        "tool": _object(
            {"name": _TEXT, "inputSchema": _schema(version, root="object")},
            {
                **described,
                **execution,
                **_since(_JUNE_2025, version, {"outputSchema": _schema(version)}),
                "annotations": _object({}, {"title": _TEXT, **dict.fromkeys(hints, _FLAG)}),
            },
        ),
        "prompt": _object(
            {"name": _TEXT},
            {
                **described,
                "arguments": _list(
                    _object(
                        {"name": _TEXT},
                        {
                            "description": _TEXT,
                            "required": _FLAG,
                            **_since(_JUNE_2025, version, {"title": _TEXT}),
                        },
                    )
                ),
            },
        ),
        "resource": _object({"uri": _TEXT, "name": _TEXT}, {**resource, "size": _INTEGER}),
        "template": _object({"uriTemplate": _TEXT, "name": _TEXT}, resource),
        "contents": _contents(version),
        "block": _block(version, described, annotated),
        "capabilities": _capabilities(version),
    }


def _schema(version: str, *, root: str | None = None) -> JSONObject:
    """Return the schema of the schemas of tools."""
    declared = _since(_NOVEMBER_2025, version, {"$schema": _TEXT})
    if version >= _JULY_2026:
        return _object({"type": {"const": root}} if root else {}, declared)
    properties = {"type": "object", "additionalProperties": _ANY_OBJECT}
    parts = {"properties": properties, "required": _list(_TEXT), **declared}
    return _object({"type": {"const": "object"}}, parts)


def _contents(version: str) -> JSONObject:
    others = {"mimeType": _TEXT, **_since(_JUNE_2025, version, {"_meta": _ANY_OBJECT})}
    texts, blobs = {"uri": _TEXT, "text": _TEXT}, {"uri": _TEXT, "blob": _BYTES}
    return {"anyOf": [_object(texts, others), _object(blobs, others)]}


def _block(version: str, described: Members, annotated: Members) -> JSONObject:
    others = {**annotated, **_since(_JUNE_2025, version, {"_meta": _ANY_OBJECT})}
    medium = {"data": _BYTES, "mimeType": _TEXT}
    blocks: dict[str, Members] = {
        "text": {"text": _TEXT},
        "image": medium,
        "audio": medium,
        "resource": {"resource": _shape("contents")},
    }
    made = [
        _object({"type": {"const": name}, **members}, others) for name, members in blocks.items()
    ]
    if version >= _JUNE_2025:
        link = {"type": {"const": "resource_link"}, "uri": _TEXT, "name": _TEXT}
        made.append(_object(link, {**described, **annotated, "mimeType": _TEXT, "size": _INTEGER}))
    return {"anyOf": made}


def _capabilities(version: str) -> JSONObject:
    objects = {"type": "object", "additionalProperties": _ANY_OBJECT}
    changes = _object({}, {"listChanged": _FLAG})
    requests = _object({}, {"tools": _object({}, {"call": _ANY_OBJECT})})
    tasks = _object({}, {"cancel": _ANY_OBJECT, "list": _ANY_OBJECT, "requests": requests})
    return _object(
        {},
        {
            **dict.fromkeys(("completions", "logging"), _ANY_OBJECT),
            **dict.fromkeys(("prompts", "tools"), changes),
            "resources": _object({}, {"listChanged": _FLAG, "subscribe": _FLAG}),
            "experimental": objects,
            **({"tasks": tasks} if version == _NOVEMBER_2025 else {}),
            **_since(_JULY_2026, version, {"extensions": objects}),
        },
    )


def _results(version: str) -> Mapping[str, JSONObject]:
    """Return the schemas of results by method."""
    is_typed = version >= _JULY_2026
    typed: Members = {"resultType": _TEXT} if is_typed else {}
    scope = {"enum": ["public", "private"]}
    cached = {"ttlMs": {"type": "integer", "minimum": 0}, "cacheScope": scope} if is_typed else {}
    server = {META_SERVER_INFO: _shape("implementation")} if is_typed else {}
    meta = {"_meta": _object({}, server)}
    listed = {
        "tools/list": ("tools", "tool"),
        "prompts/list": ("prompts", "prompt"),
        "resources/list": ("resources", "resource"),
        "resources/templates/list": ("resourceTemplates", "template"),
    }
    # Since 2026-07-28 any value may be structured content.
    structured = {} if is_typed else _ANY_OBJECT
    values = {**_list(_TEXT), "maxItems": _MAX_COMPLETIONS}
    completion = _object({"values": values}, {"total": _INTEGER, "hasMore": _FLAG})
    said = _object({"role": _ROLE, "content": _shape("block")})
    capabilities = {"capabilities": _shape("capabilities")}
    return {
        "initialize": _object(
            {**capabilities, "protocolVersion": _TEXT, "serverInfo": _shape("implementation")},
            {**meta, "instructions": _TEXT},
        ),
        "server/discover": _object(
            {**typed, **cached, **capabilities, "supportedVersions": _list(_TEXT)},
            {**meta, "instructions": _TEXT},
        ),
        **{
            method: _object(
                {**typed, **cached, key: _list(_shape(item))}, {**meta, "nextCursor": _TEXT}
            )
            for method, (key, item) in listed.items()
        },
        "tools/call": _object(
            {**typed, "content": _list(_shape("block"))},
            {
                **meta,
                **_since(_JUNE_2025, version, {"structuredContent": structured}),
                "isError": _FLAG,
            },
        ),
        "prompts/get": _object({**typed, "messages": _list(said)}, {**meta, "description": _TEXT}),
        "resources/read": _object({**typed, **cached, "contents": _list(_shape("contents"))}, meta),
        "completion/complete": _object({**typed, "completion": completion}, meta),
        "input_required": _object(
            typed,
            {
                **meta,
                "requestState": _TEXT,
                "inputRequests": {"type": "object", "additionalProperties": _ANY_OBJECT},
            },
        ),
    }


def _notifications(version: str) -> Mapping[str, JSONObject]:
    """Return the schemas of notifications by method."""
    id_ = {"requestId": _ID}
    # On 2025-11-25 it may name a task instead.
    named, maybe_named = ({}, id_) if version == _NOVEMBER_2025 else (id_, {})
    params: dict[str, tuple[Members, Members]] = {
        "notifications/cancelled": (named, {**maybe_named, "reason": _TEXT}),
        "notifications/progress": (
            {"progressToken": _ID, "progress": _NUMBER},
            {"total": _NUMBER, "message": _TEXT},
        ),
        "notifications/message": (
            {"level": {"enum": [*LOG_LEVELS]}, "data": {}},
            {"logger": _TEXT},
        ),
        "notifications/resources/updated": ({"uri": _TEXT}, {}),
    }
    subscription = _since(_JULY_2026, version, {META_SUBSCRIPTION_ID: _ID})
    meta = {"_meta": _object({}, subscription)}
    changed = (f"notifications/{each}/list_changed" for each in ("tools", "prompts", "resources"))
    return {
        **dict.fromkeys(changed, _object({}, {"params": _object({}, meta)})),
        **{
            method: _object({"params": _object(needed, {**meta, **others})})
            for method, (needed, others) in params.items()
        },
    }
