"""How a connection begins in either era: `initialize`, `server/discover`, and `ping`."""

from typing import Any

from ...engine import Exchange
from ...protocol import SUPPORTED_VERSIONS, adapt_implementation
from .._connection import Connection


def initialize(connection: Connection, exchange: Exchange) -> None:
    """Answer `initialize` (2025-11-25 `basic/lifecycle`); the peer has chosen the revision."""
    server = connection.server
    revision = exchange.envelope.revision
    # Before the result is written: what changes after it must be told.
    connection.await_ready()
    result: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": server.capabilities(),
        "serverInfo": adapt_implementation(server.info, revision),
    }
    if server.options.instructions is not None:
        result["instructions"] = server.options.instructions
    connection.reply(exchange, result)


def discover(connection: Connection, exchange: Exchange) -> None:
    """Answer `server/discover` (2026-07-28 `server/discover`)."""
    server = connection.server
    extensions = server.extensions()
    capabilities = server.capabilities()
    result: dict[str, Any] = {
        "supportedVersions": list(SUPPORTED_VERSIONS),
        "capabilities": {**capabilities, "extensions": extensions} if extensions else capabilities,
        **server.options.cache_of("discover").to_wire(),
    }
    if server.options.instructions is not None:
        result["instructions"] = server.options.instructions
    connection.reply(exchange, result)


def ping(connection: Connection, exchange: Exchange) -> None:
    """Answer `ping`, in any phase of a handshake."""
    connection.reply(exchange, {})
