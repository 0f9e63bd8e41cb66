"""Peers in every phase, and the messages to feed them."""

from collections.abc import Callable
from typing import Any

import pytest

from noizu_mcp.jsonrpc import Notification, Request
from noizu_mcp.protocol import ClientPeer, Dispatch, Ready, SendAnswer, ServerPeer

CAPABILITIES = {"sampling": {}, "elicitation": {}}


@pytest.fixture
def server() -> ServerPeer:
    """Make a server that has received nothing yet."""
    return ServerPeer(in_flight=10)


@pytest.fixture
def handshaken() -> Callable[..., ServerPeer]:
    """Make a server that has a client with a handshake."""

    def make(version: str = "2025-11-25", *, ready: bool = True, in_flight: int = 10) -> ServerPeer:
        peer = ServerPeer(in_flight)
        params = {
            "protocolVersion": version,
            "capabilities": CAPABILITIES,
            "clientInfo": {"name": "c", "version": "1"},
        }
        event = peer.receive(Request("init", "initialize", params))
        assert isinstance(event, Dispatch)
        peer.ledger.finish("init")
        if ready:
            assert Ready() == peer.receive(Notification("notifications/initialized"))
        return peer

    return make


@pytest.fixture
def ready(handshaken: Callable[..., ServerPeer]) -> ServerPeer:
    """Make a server whose client has finished the handshake."""
    return handshaken()


@pytest.fixture
def client() -> ClientPeer:
    """Make a client, by default of the latest revision with a handshake."""
    return ClientPeer({"name": "c", "version": "1"}, CAPABILITIES, in_flight=3)


@pytest.fixture
def refused() -> Callable[..., Any]:
    """Return the id, code and message of the error in an event."""

    def take(event: Any) -> tuple[Any, int, str]:
        assert isinstance(event, SendAnswer)
        return event.message.id, event.message.code, event.message.message

    return take
