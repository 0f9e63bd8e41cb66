"""Checks of scopes: before any code of the author runs.

Who lacks a scope is told all that the operation needs, so that one new token is enough (2025-11-25
and later, `basic/authorization`, "Scope Challenge Handling").
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..._errors import InsufficientScope, McpError
from ...engine import InboundRequest, seldom
from ...jsonrpc import INSUFFICIENT_SCOPE, Request
from ...types import Principal, RequireScopes, as_scopes

if TYPE_CHECKING:
    from ...components import Context
    from .._server import Server
    from ..registry._registry import Registry

#: What a client may do to find out what there is, whatever the server requires.
OPEN: Final = frozenset({"initialize", "ping", "server/discover"})


class Scoped(Protocol):
    """A component that may require scopes."""

    @property
    def requires(self) -> RequireScopes | None:
        """The scopes that a caller must hold; None for none."""


def admit(server: "Server", inbound: InboundRequest) -> None:
    """Let a request pass whose caller holds what the server and the component require.

    Raises:
        InsufficientScope: The caller does not.
    """
    request, caller = inbound.request, inbound.envelope.origin.principal
    required = server.options.requires
    if required is not None and request.method not in OPEN:
        required.check(caller)
    if server.registry.scoped:
        spec = asked_for(server.registry, request)
        if spec is not None and not holds(spec, caller):
            raise InsufficientScope(())  # `needed` completes it


def demand(spec: Scoped, context: "Context") -> None:
    """Let a handler run whose caller holds what it requires, however it is reached.

    Raises:
        InsufficientScope: The caller does not.
    """
    if spec.requires is not None:
        context.require(spec.requires)


def holds(spec: Scoped, caller: Principal | None) -> bool:
    """Tell whether a caller holds what a component requires."""
    return spec.requires is None or spec.requires.admits(caller)


def needed(server: "Server", request: Request, scopes: Iterable[str]) -> tuple[str, ...]:
    """List all scopes that a request needs, each once.

    Args:
        server: The server.
        request: The request.
        scopes: What was found missing.

    Raises:
        ValueError: One of those is no name of a scope.
    """
    spec = asked_for(server.registry, request)
    required = (server.options.requires, None if spec is None else spec.requires)
    known = [scope for each in required if each is not None for scope in each.scopes]
    return as_scopes([*known, *scopes])


def denial(inbound: InboundRequest, scopes: Sequence[str], transport: str) -> McpError:
    """Make the error for somebody who lacks scopes; where nobody could hold one, the log says so.

    Args:
        inbound: The request.
        scopes: All that it needs.
        transport: How it came.
    """
    method, names = inbound.request.method, " ".join(scopes)
    text = f"Insufficient scope: {method} needs {names}"
    if inbound.envelope.origin.principal is None:
        text += "; nobody has verified who is calling"
        seldom.warning(
            (method, names),
            "%s needs the scopes %s, and nobody verifies who calls on %s: serve it with auth= over"
            " HTTP, else with principal=",
            method,
            names,
            transport,
        )
    return McpError(INSUFFICIENT_SCOPE, text, {"requiredScopes": list(scopes)})


def asked_for(registry: "Registry", request: Request) -> Scoped | None:
    """Find the component that a request makes something of; None for none."""
    params: Mapping[str, Any] = request.params or {}
    match request.method:
        case "tools/call":
            return registry.tools.specs.get(_text(params, "name"))
        case "prompts/get":
            return registry.find_prompt(_text(params, "name"))
        case "resources/read" | "resources/subscribe":
            found = registry.find_resource(_text(params, "uri"))
            return None if found is None else found[0]
        case "skills/get":
            return registry.skills.specs.get(_text(params, "uri"))
        case "completion/complete":
            return _completed(registry, params.get("ref"))
    return None


def _completed(registry: "Registry", reference: Any) -> Scoped | None:
    if not isinstance(reference, Mapping):
        return None
    if reference.get("type") == "ref/prompt":
        return registry.find_prompt(_text(reference, "name"))
    return registry.templates.specs.get(_text(reference, "uri"))


def _text(params: Mapping[str, Any], name: str) -> str:
    """Read a member; what is no text is refused later, and names nothing here."""
    value = params.get(name)
    return value if isinstance(value, str) else ""
