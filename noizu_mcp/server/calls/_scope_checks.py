"""Checks of scopes, before any code of the author runs.

A caller who lacks a scope gets the names of all scopes that the operation needs, so that one new
token is enough (2025-11-25 and later, `basic/authorization`, "Scope Challenge Handling").
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from ... import types
from ..._errors import InsufficientScope, McpError
from ...engine import InboundRequest, throttled_log
from ...jsonrpc import INSUFFICIENT_SCOPE, Request

if TYPE_CHECKING:
    from ...components import Context
    from ...types import Principal, RequireScopes
    from .._server_context import ServerContext

#: Methods that need no scopes: a client must be able to connect before it knows which scopes to
#: ask for.
OPEN: Final = frozenset({"initialize", "ping", "server/discover"})


class Scoped(Protocol):
    """A component that may require scopes."""

    @property
    def requires(self) -> "RequireScopes | None":
        """The scopes that a caller must hold; None for none."""


def check_request_scopes(request: Request, context: "ServerContext") -> None:
    """Check that the caller of a request holds the scopes of the server and of the component.

    Raises:
        InsufficientScope: The caller does not.
    """
    server, caller = context.running.server, context.auth
    required = server.options.requires
    if required is not None and request.method not in OPEN:
        required.check(caller)
    # Most servers require nothing: without this flag each request would search for its component
    # twice.
    if server.registry.scoped and request.method != "tools/call":  # see `ToolCall.check_scopes`
        # One that is not available is unknown to the caller: no scope would help.
        _, spec = server.registry.subject_of(request, context)
        # A caller who lost a scope may still end a subscription.
        leaving = request.method == "resources/unsubscribe"
        if spec is not None and not leaving and not holds(spec, caller):
            # Empty: `needed` adds the scopes of server and component in one place.
            raise InsufficientScope(())


def check_scopes(spec: Scoped, context: "Context") -> None:
    """Check the scopes of a component, however its handler is reached.

    Raises:
        InsufficientScope: The caller does not.
    """
    # `check_request_scopes` sees only the component that the request names. A handler may read
    # another resource, or get another prompt.
    if spec.requires is not None:
        context.require(spec.requires)


def holds(spec: Scoped, caller: "Principal | None") -> bool:
    """Tell whether a caller holds the scopes of a component."""
    return spec.requires is None or spec.requires.admits(caller)


def needed(request: Request, context: "ServerContext", scopes: Iterable[str]) -> tuple[str, ...]:
    """List all scopes that a request needs, each once.

    Args:
        request: The request.
        context: Its context.
        scopes: The missing scopes.

    Raises:
        ValueError: A missing scope is not a valid scope name.
    """
    server = context.running.server
    _, spec = server.registry.subject_of(request, context, usable=False)
    required = (server.options.requires, None if spec is None else spec.requires)
    known = [scope for each in required if each is not None for scope in each.scopes]
    return types.as_scopes([*known, *scopes])


def denial(inbound: InboundRequest, scopes: Sequence[str], transport: str) -> McpError:
    """Make the error for a caller who lacks scopes; without authentication the log warns, too.

    Args:
        inbound: The request.
        scopes: All scopes that it needs.
        transport: The transport that it came on.
    """
    method, names = inbound.request.method, " ".join(scopes)
    text = f"Insufficient scope: {method} needs {names}"
    # A mistake of the author's: without authentication no caller can ever pass, and the client
    # cannot tell why.
    if inbound.envelope.origin.principal is None:
        text += "; nobody has verified who is calling"
        throttled_log.warning(
            (method, names),
            "%s needs the scopes %s, and nobody verifies who calls on %s: serve it with auth= over"
            " HTTP, else with principal=",
            method,
            names,
            transport,
        )
    return McpError(INSUFFICIENT_SCOPE, text, {"requiredScopes": list(scopes)})
