"""`messages` and `conversations`: strategies for all that a client may send.

The tables have the params of each method as JSON Schema. They say what the specification demands,
so that a server must answer each request; whether there is such a tool or resource is another
question.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..._value import JSON, JSONObject
from ...protocol import CLIENT_REQUESTS, REVISIONS, Revision
from ...types import META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_PROTOCOL_VERSION
from ._schemas import from_schema, load_checked
from ._tools import arguments, schemas_of

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def _object(required: Mapping[str, JSON], optional: Mapping[str, JSON] | None = None) -> JSONObject:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT: Final = {"type": "string"}
_URI: Final = {"type": "string", "format": "uri"}
_ID: Final = {"type": ["string", "integer"], "maxLength": 20}
_ANY_OBJECT: Final = {"type": "object", "maxProperties": 3}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT, "maxProperties": 3}
_CAPABILITIES: Final = _object(
    {}, {"roots": _object({}), "sampling": _object({}), "experimental": _object({})}
)
_CLIENT: Final = _object({"name": _TEXT, "version": _TEXT})
_PAGE: Final = _object({}, {"cursor": _TEXT})
_REFERENCES: Final = [
    _object({"type": {"const": "ref/prompt"}, "name": _TEXT}),
    _object({"type": {"const": "ref/resource"}, "uri": _URI}),
]
_LISTS: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
_FILTER: Final = _object(
    {},
    {
        **{each: {"type": "boolean"} for each in _LISTS},
        "resourceSubscriptions": {"type": "array", "items": _URI, "maxItems": 3},
    },
)
_LEVELS: Final = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)

# The params of each request. Methods of extensions are left out: a client must ask for those first.
_REQUESTS: Final[Mapping[str, JSONObject]] = {
    "ping": _object({}),
    "server/discover": _object({}),
    "subscriptions/listen": _object({"notifications": _FILTER}),
    **dict.fromkeys(
        ("tools/list", "resources/list", "resources/templates/list", "prompts/list"), _PAGE
    ),
    "tools/call": _object({"name": _TEXT}, {"arguments": _ANY_OBJECT}),
    "resources/read": _object({"uri": _URI}),
    "resources/subscribe": _object({"uri": _URI}),
    "resources/unsubscribe": _object({"uri": _URI}),
    "prompts/get": _object({"name": _TEXT}, {"arguments": _TEXTS}),
    "completion/complete": _object(
        {"ref": {"anyOf": _REFERENCES}, "argument": _object({"name": _TEXT, "value": _TEXT})}
    ),
    "logging/setLevel": _object({"level": {"enum": list(_LEVELS)}}),
}
_CANCELLED: Final = "notifications/cancelled"
# The params of each notification after the handshake, and whether 2026-07-28 has it.
_NOTIFICATIONS: Final[Mapping[str, tuple[JSONObject, bool]]] = {
    _CANCELLED: (_object({"requestId": _ID}, {"reason": _TEXT}), True),
    "notifications/progress": (
        _object(
            {"progressToken": _ID, "progress": {"type": "number", "minimum": 0}},
            {"total": {"type": "number", "minimum": 0}},
        ),
        False,
    ),
    "notifications/roots/list_changed": (_object({}), False),
}


def messages(
    version: str = "2026-07-28", *, tools: Sequence[object] = ()
) -> "SearchStrategy[JSONObject]":
    """Return the strategy for the messages that a client may send after the handshake.

    Args:
        version: The revision of the protocol.
        tools: Tools that calls name, with arguments that they take; see `arguments`. Without them
            calls have any name.

    Returns:
        The strategy; requests and notifications are JSON-RPC objects, valid by the specification.

    Raises:
        ValueError: There is no such revision.
        ImportError: Hypothesis is not installed.
    """
    loaded = load_checked()
    revision = _revision(version)
    made: SearchStrategy[JSONObject] = loaded.any_of(
        [*_requests(revision, tools), *_notifications(revision)]
    )
    return made.map(_with_plain_ids)


def conversations(
    version: str = "2026-07-28", *, tools: Sequence[object] = ()
) -> "SearchStrategy[list[JSONObject]]":
    """Return the strategy for all that a client sends on one connection.

    A handshake comes first where the revision has one. No two requests have one id, and a
    cancellation mostly names a request that was sent before.

    Args:
        version: As for `messages`.
        tools: As for `messages`.

    Raises:
        ValueError: There is no such revision.
        ImportError: Hypothesis is not installed.
    """
    loaded = load_checked()
    revision = _revision(version)
    first = [] if revision.stateless else _handshake(revision)
    made: SearchStrategy[list[JSONObject]] = loaded.conversation(
        [from_schema(each).map(_with_plain_ids) for each in first], messages(version, tools=tools)
    )
    return made


def _with_plain_ids(message: JSONObject) -> JSONObject:
    """Write ids as clients do: 1.0 is an integer, but JSON-RPC advises against it (section 4)."""
    for where, name in ((message, "id"), (message["params"], "requestId")):
        if isinstance(where.get(name), float):
            where[name] = int(where[name])
    return message


def _revision(version: str) -> Revision:
    if version not in REVISIONS:
        raise ValueError(f"version is one of {', '.join(REVISIONS)}, not {version!r}")
    return REVISIONS[version]


def _requests(revision: Revision, tools: Sequence[object]) -> "list[SearchStrategy[JSONObject]]":
    loaded = load_checked()
    made = []
    for name, params in _REQUESTS.items():
        method = CLIENT_REQUESTS[name]
        if not (method.stateless if revision.stateless else method.handshake):
            continue
        request = _request(name, _with_meta(params, revision))
        if name == "tools/call" and tools:
            made += [
                loaded.calls(from_schema(request), schemas_of(tool).name, arguments(tool))
                for tool in tools
            ]
        else:
            made.append(from_schema(request, formats=True))
    return made


def _notifications(revision: Revision) -> "list[SearchStrategy[JSONObject]]":
    return [
        from_schema(_notification(name, params))
        for name, (params, everywhere) in _NOTIFICATIONS.items()
        if everywhere or not revision.stateless
    ]


def _handshake(revision: Revision) -> list[JSONObject]:
    params = {
        "protocolVersion": {"const": revision.name},
        "capabilities": _CAPABILITIES,
        "clientInfo": _CLIENT,
    }
    return [
        _request("initialize", _object(params)),
        _notification("notifications/initialized", _object({})),
    ]


def _with_meta(params: JSONObject, revision: Revision) -> JSONObject:
    """Return the schema of params with `_meta`, which each request of 2026-07-28 needs."""
    if not revision.stateless:
        return params
    meta = _object(
        {META_PROTOCOL_VERSION: {"const": revision.name}, META_CLIENT_CAPABILITIES: _CAPABILITIES},
        {META_CLIENT_INFO: _CLIENT},
    )
    return {
        **params,
        "properties": {**params["properties"], "_meta": meta},
        "required": [*params["required"], "_meta"],
    }


def _request(method: str, params: JSONObject) -> JSONObject:
    return _object({**_head(method), "id": _ID, "params": params})


def _notification(method: str, params: JSONObject) -> JSONObject:
    return _object({**_head(method), "params": params})


def _head(method: str) -> JSONObject:
    return {"jsonrpc": {"const": "2.0"}, "method": {"const": method}}
