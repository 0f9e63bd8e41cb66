"""The beginning of a connection in either era: `initialize`, `server/discover`, and `ping`."""

from typing import Any

from ...protocol import SUPPORTED_VERSIONS, adapt_implementation
from .._request_context import RequestContext


def initialize(ctx: RequestContext) -> None:
    """Answer `initialize` (2025-11-25 `basic/lifecycle`); the peer has chosen the revision."""
    server = ctx.running.server
    revision = ctx.envelope.revision
    # Before the result is written: what changes after it must be told.
    if ctx.dispatcher is not None:
        # A list that changes after this answer is told once the client is ready.
        ctx.dispatcher.feed.await_ready()
    result: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": server.capabilities(),
        "serverInfo": adapt_implementation(server.info, revision),
    }
    if server.options.instructions is not None:
        result["instructions"] = server.options.instructions
    ctx.complete(result)


def discover(ctx: RequestContext) -> None:
    """Answer `server/discover` (2026-07-28 `server/discover`)."""
    server = ctx.running.server
    extensions = server.extensions()
    capabilities = server.capabilities()
    result: dict[str, Any] = {
        "supportedVersions": list(SUPPORTED_VERSIONS),
        "capabilities": {**capabilities, "extensions": extensions} if extensions else capabilities,
        **server.options.cache_of("discover").to_wire(),
    }
    if server.options.instructions is not None:
        result["instructions"] = server.options.instructions
    ctx.complete(result)


def ping(ctx: RequestContext) -> None:
    """Answer `ping`, in any phase of a handshake."""
    ctx.complete({})
