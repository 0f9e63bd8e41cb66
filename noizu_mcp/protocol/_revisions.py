"""The revisions of the protocol and their methods, as tables.

Other code asks for a feature (`revision.titles`) rather than a date, so that a new revision is
little more than a new row.
"""

from typing import Final, Literal, NamedTuple

from .._value import Frozen

#: The values allowed as structured output: none at all, an object, or any JSON value.
Structured = Literal["none", "object", "any"]


class Revision(Frozen):
    """One revision of the protocol.

    Attributes:
        name: Its date, as sent on the wire.
        stateless: No handshake: every request carries its context in `_meta` (2026-07-28).
        batches: Arrays of messages are allowed (2025-03-26 only).
        structured: The values allowed as structured tool output.
        titles: `title` stands beside `name`, and `_meta` on definitions and content blocks.
        icons: `icons` on definitions; description, website and icons on an implementation.
        resource_links: The content block `resource_link` exists, and `lastModified` among the
            annotations of content.
        elicitation: A server may ask the user of a client (2025-06-18 and later).
        modes: Elicitation has modes, sampling has tools, and the choices of a form have titles.
        tasks: `execution` on tools, of the experimental tasks (2025-11-25 only).
        polling: An HTTP answer may end before its message; the client comes back for it.
    """

    name: str
    stateless: bool = False
    batches: bool = False
    structured: Structured = "object"
    titles: bool = True
    icons: bool = True
    resource_links: bool = True
    elicitation: bool = True
    modes: bool = True
    tasks: bool = False
    polling: bool = False


_ALL = (
    # Newest first, as `supportedVersions` lists them (2026-07-28 `server/discover`).
    Revision(name="2026-07-28", stateless=True, structured="any"),
    Revision(name="2025-11-25", tasks=True, polling=True),
    Revision(name="2025-06-18", icons=False, modes=False),
    Revision(
        name="2025-03-26",
        batches=True,
        structured="none",
        titles=False,
        icons=False,
        resource_links=False,
        elicitation=False,
        modes=False,
    ),
)

#: Every revision served here, by name, newest first.
REVISIONS: Final[dict[str, Revision]] = {revision.name: revision for revision in _ALL}
SUPPORTED_VERSIONS: Final = tuple(REVISIONS)
STATELESS: Final = _ALL[0]
LATEST_HANDSHAKE: Final = _ALL[1]
HANDSHAKE_VERSIONS: Final = tuple(r.name for r in _ALL if not r.stateless)


def negotiate(requested: str) -> Revision:
    """Choose the revision that answers `initialize`: the requested one, else the latest.

    A client that asks for 2026-07-28 here gets the latest revision that has a handshake
    (2025-11-25 `basic/lifecycle`, "Version Negotiation").
    """
    # A revision that is not served gets the latest; the client disconnects if it cannot use it.
    revision = REVISIONS.get(requested, LATEST_HANDSHAKE)
    # `initialize` exists in handshake revisions only, so no other revision may be its answer.
    return LATEST_HANDSHAKE if revision.stateless else revision


class Method(NamedTuple):
    """One request method.

    Attributes:
        name: The name on the wire.
        handshake: It exists in revisions with a handshake (up to 2025-11-25).
        stateless: It exists in 2026-07-28.
        capability: The capability of the receiver that it needs, or None.
        cacheable: Its complete results carry `ttlMs` and `cacheScope` in 2026-07-28.
    """

    name: str
    handshake: bool = True
    stateless: bool = True
    capability: str | None = None
    cacheable: bool = False


def _table(*methods: Method) -> dict[str, Method]:
    return {method.name: method for method in methods}


#: Requests that a client sends.
CLIENT_REQUESTS: Final = _table(
    # 2026-07-28 removed the handshake, and with it `ping`, `logging/setLevel` and the subscription
    # of single resources: such a request with modern metadata must get -32601, also from a server
    # that knows the method from the other era.
    Method("initialize", stateless=False),
    Method("ping", stateless=False),
    Method("server/discover", handshake=False, cacheable=True),
    Method("subscriptions/listen", handshake=False),
    # A method whose capability is not advertised is answered with -32601 (2026-07-28 schema,
    # `MethodNotFoundError`). Cacheable: 2026-07-28 `server/utilities/caching`.
    Method("tools/list", capability="tools", cacheable=True),
    Method("tools/call", capability="tools"),
    Method("resources/list", capability="resources", cacheable=True),
    Method("resources/templates/list", capability="resources", cacheable=True),
    Method("resources/read", capability="resources", cacheable=True),
    Method("resources/subscribe", stateless=False, capability="resources"),
    Method("resources/unsubscribe", stateless=False, capability="resources"),
    Method("prompts/list", capability="prompts", cacheable=True),
    Method("prompts/get", capability="prompts"),
    Method("completion/complete", capability="completions"),
    Method("logging/setLevel", stateless=False, capability="logging"),
    # No capability: a task may outlive the tool that started it. The handler checks for tasks.
    Method("tasks/get", handshake=False),
    Method("tasks/update", handshake=False),
    Method("tasks/cancel", handshake=False),
    # The extension io.modelcontextprotocol/skills is specified for 2026-07-28 and later.
    Method("skills/list", handshake=False, capability="skills", cacheable=True),
    Method("skills/get", handshake=False, capability="skills", cacheable=True),
    Method("resources/directory/read", handshake=False, capability="skills"),
)

#: The param with the name of the component that a request is about, by method.
NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
}

#: Requests that a server sends; 2026-07-28 has none (the same methods travel as input requests).
SERVER_REQUESTS: Final = _table(
    Method("ping", stateless=False),
    Method("sampling/createMessage", stateless=False, capability="sampling"),
    Method("elicitation/create", stateless=False, capability="elicitation"),
    Method("roots/list", stateless=False, capability="roots"),
)

#: Lists that can change: the method of the notice, and the member of the listen filter.
CHANGES: Final = {
    "tools": ("notifications/tools/list_changed", "toolsListChanged"),
    "prompts": ("notifications/prompts/list_changed", "promptsListChanged"),
    "resources": ("notifications/resources/list_changed", "resourcesListChanged"),
}
