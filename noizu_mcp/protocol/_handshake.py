"""The server's peer for revisions with a handshake (2025-03-26 to 2025-11-25)."""

import enum
from collections.abc import Mapping
from typing import Any, Final

from ..jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Notification,
    Request,
)
from ..types import LOG_LEVELS
from ._events import NOWHERE, Dispatch, Envelope, Event, Notice, Origin, Ready, Send
from ._inflight import Ledger, refuse
from ._kept import MAX_CLIENT, MAX_KEPT_VALUES, is_too_much
from ._meta import mapping, meta_of, token_of
from ._methods import CLIENT_REQUESTS
from ._stateless import REQUIRED_KEYS
from ._versions import LATEST_HANDSHAKE, SUPPORTED_VERSIONS, Revision, negotiate

_TOO_MUCH: Final = (
    f"clientInfo and capabilities may have {MAX_CLIENT} bytes of JSON and {MAX_KEPT_VALUES} values"
)


class Phase(enum.Enum):
    """How far the handshake is."""

    NEW = "new"
    INITIALIZING = "initializing"
    READY = "ready"


#: (phase, request) → next phase; every other phase refuses the request.
REQUEST_TRANSITIONS: Final = {(Phase.NEW, "initialize"): Phase.INITIALIZING}
#: (phase, notification) → next phase; what is not here leaves the phase alone.
NOTIFICATION_TRANSITIONS: Final = {
    (Phase.INITIALIZING, "notifications/initialized"): Phase.READY,
}


class HandshakePeer:
    """What one client with a handshake has said so far.

    Attributes:
        phase: How far the handshake is.
        revision: The negotiated revision; before `initialize`, the latest.
        client_info: The client's `Implementation`, as sent.
        client_capabilities: What the client can do, as sent.
        log_level: Set by `logging/setLevel`; until then everything is sent.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.phase = Phase.NEW
        self.revision: Revision = LATEST_HANDSHAKE
        self.client_info: Mapping[str, Any] = _unknown_client()
        self.client_capabilities: Mapping[str, Any] = {}
        self.log_level: str = LOG_LEVELS[0]
        self._ledger = ledger

    @property
    def ready(self) -> bool:
        """True once the client has sent `notifications/initialized`."""
        return self.phase is Phase.READY

    def agreed(self) -> dict[str, Any]:
        """Write what the handshake agreed on, as JSON values, for `resume`."""
        return {
            "version": self.revision.name,
            "client": dict(self.client_info),
            "capabilities": dict(self.client_capabilities),
        }

    def resume(self, agreed: Mapping[str, Any]) -> None:
        """Go on where another peer left off.

        Args:
            agreed: What `agreed` of that one gave.
        """
        self.revision = negotiate(agreed["version"])
        self.client_info = agreed["client"]
        self.client_capabilities = agreed["capabilities"]
        self.phase = Phase.READY

    def complete(self) -> bool:
        """Take the handshake for complete: another peer may have heard its last message.

        Returns:
            True if that was missing.
        """
        if self.phase is not Phase.INITIALIZING:
            return False
        self.phase = Phase.READY
        return True

    def receive_request(self, request: Request, origin: Origin = NOWHERE) -> Event:
        """Check a request against phase and method table."""
        method = CLIENT_REQUESTS.get(request.method)
        if request.method == "initialize":
            return self._initialize(request, origin)
        if self.phase is not Phase.READY and request.method != "ping":
            return self._not_ready(request)
        if method is None or not method.handshake:
            return refuse(request, METHOD_NOT_FOUND, f"Method not found: {request.method}")
        return self._ledger.accept(request) or Dispatch(
            request, self.envelope(request.params, origin)
        )

    def receive_notification(self, notification: Notification) -> Event | None:
        """Take a notification; unknown ones mean nothing."""
        phase = NOTIFICATION_TRANSITIONS.get((self.phase, notification.method))
        if phase is not None:
            self.phase = phase
            return Ready()
        return Notice(notification) if self.ready else None

    def _initialize(self, request: Request, origin: Origin) -> Event:
        params = request.params or {}
        version = params.get("protocolVersion")
        phase = REQUEST_TRANSITIONS.get((self.phase, request.method))
        if phase is None:
            return refuse(request, INVALID_REQUEST, "Already initialized")
        if not isinstance(version, str):
            return refuse(request, INVALID_PARAMS, "initialize requires a protocolVersion string")
        info, capabilities = mapping(params.get("clientInfo")), mapping(params.get("capabilities"))
        if is_too_much([info, capabilities], MAX_CLIENT):
            return refuse(request, INVALID_PARAMS, _TOO_MUCH)
        refusal = self._ledger.accept(request)
        if refusal:
            return refusal
        self.revision = negotiate(version)
        self.client_info = info or _unknown_client()
        self.client_capabilities = capabilities
        self.phase = phase
        return Dispatch(request, self.envelope(request.params, origin))

    def _not_ready(self, request: Request) -> Send:
        if self.phase is Phase.INITIALIZING:
            return refuse(request, INVALID_REQUEST, "Session not initialized")
        # Neither era: 2026-07-28 `basic/versioning` asks to name what is missing and supported.
        text = "Session not initialized: send initialize, or the 2026-07-28 fields in _meta"
        data = {"missing": list(REQUIRED_KEYS), "supported": list(SUPPORTED_VERSIONS)}
        return refuse(request, INVALID_PARAMS, text, data)

    def envelope(
        self, params: Mapping[str, Any] | None = None, origin: Origin = NOWHERE
    ) -> Envelope:
        """Make the context of a request from the session and the request's own `_meta`."""
        meta = meta_of(params)
        return Envelope(
            self.revision,
            self.client_info,
            self.client_capabilities,
            self.log_level,
            token_of(meta),
            meta,
            origin,
        )


def _unknown_client() -> dict[str, Any]:
    return {"name": "unknown", "version": "0.0.0"}
