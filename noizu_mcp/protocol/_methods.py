"""The method table: sender, era and capability of every request."""

from typing import Final, NamedTuple


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
