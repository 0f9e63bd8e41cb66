"""The method table: who sends what, in which era, behind which capability."""

from typing import Final, NamedTuple


class Method(NamedTuple):
    """One request method.

    Attributes:
        name: As sent on the wire.
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
    Method("initialize", stateless=False),
    Method("ping", stateless=False),
    Method("server/discover", handshake=False, cacheable=True),
    Method("subscriptions/listen", handshake=False),
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
    # A task may outlive what it was offered by: who serves them looks for tasks, too.
    Method("tasks/get", handshake=False),
    Method("tasks/update", handshake=False),
    Method("tasks/cancel", handshake=False),
    # The extension io.modelcontextprotocol/skills is specified for 2026-07-28 and later.
    Method("skills/list", handshake=False, capability="skills", cacheable=True),
    Method("skills/get", handshake=False, capability="skills", cacheable=True),
    Method("resources/directory/read", handshake=False, capability="skills"),
)

#: Requests that a server sends; 2026-07-28 has none (the same methods travel as input requests).
SERVER_REQUESTS: Final = _table(
    Method("ping", stateless=False),
    Method("sampling/createMessage", stateless=False, capability="sampling"),
    Method("elicitation/create", stateless=False, capability="elicitation"),
    Method("roots/list", stateless=False, capability="roots"),
)

#: What can change, and how its notice and its listen filter are called.
CHANGES: Final = {
    "tools": ("notifications/tools/list_changed", "toolsListChanged"),
    "prompts": ("notifications/prompts/list_changed", "promptsListChanged"),
    "resources": ("notifications/resources/list_changed", "resourcesListChanged"),
}
