"""Checks of scopes, before any code of the author runs.

The error for a missing scope names all scopes that the operation needs, so that one new token is
enough (2025-11-25 and later, `basic/authorization`, "Scope Challenge Handling").
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

#: Methods without scopes: a client must be able to connect before it knows which scopes to request.
OPEN: Final = frozenset({"initialize", "ping", "server/discover"})


class Scoped(Protocol):
    """A component that may require scopes."""

    @property
    def requires(self) -> "RequireScopes | None":
        """The required scopes; None if no scopes are required."""


def check_request_scopes(request: Request, context: "ServerContext") -> None:
    """Check that the caller of a request has the scopes of the server and of the component.

    Raises:
        InsufficientScope: A scope is missing.
    """
    server, caller = context.running.server, context.auth
    required = server.options.requires
    if required is not None and request.method not in OPEN:
        required.check(caller)
    # Most servers require no scopes: without this flag each request would look up its component
    # twice.
    if server.registry.scoped and request.method != "tools/call":  # see `ToolCall.check_scopes`
        # A component that is not available is unknown to the caller, with or without scopes.
        _, spec = server.registry.subject_of(request, context)
        # A caller who lost a scope may still end a subscription.
        leaving = request.method == "resources/unsubscribe"
        if spec is not None and not leaving and not holds(spec, caller):
            # Empty: `needed` adds the scopes of server and component.
            raise InsufficientScope(())


def check_scopes(spec: Scoped, context: "Context") -> None:
    """Check the scopes of a component, for every way to reach its handler.

    Raises:
        InsufficientScope: A scope is missing.
    """
    # `check_request_scopes` checks only the component that the request names. A handler may read
    # another resource, or get another prompt.
    if spec.requires is not None:
        context.require(spec.requires)


def holds(spec: Scoped, caller: "Principal | None") -> bool:
    """Tell whether a caller has the scopes of a component."""
    return spec.requires is None or spec.requires.admits(caller)


def needed(request: Request, context: "ServerContext", scopes: Iterable[str]) -> tuple[str, ...]:
    """List all scopes that a request needs, without duplicates.

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
    """Make the error for missing scopes. Without authentication a warning is logged, too.

    Args:
        inbound: The request.
        scopes: All scopes that the request needs.
        transport: The transport of the request.
    """
    method, names = inbound.request.method, " ".join(scopes)
    text = f"Insufficient scope: {method} needs {names}"
    # An error in the setup: without authentication no caller has scopes, and the client cannot find
    # out why.
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
