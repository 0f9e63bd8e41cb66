"""The server's end of a connection, for both eras on one pipe: each message picks its era.

Theory of operation. A request whose `_meta` names a protocol version or client capabilities is of
2026-07-28 and carries all its context; `read_stateless` checks it, and nothing is remembered. Every
other request belongs to the one handshake of the connection, whose phases are

    NEW --initialize--> INITIALIZING --notifications/initialized--> READY

and where each request is answered under the revision that `initialize` negotiated. Both eras share
one ledger, since one pipe has one space of request ids. The peer validates first and changes its
state last, so a refused message leaves no trace. It never waits, and everything that it keeps is
bounded: the client info and capabilities by `MAX_CLIENT`, the ids by the limit of the ledger.

Source: 2026-07-28 `basic/versioning`, "Backward Compatibility"; `basic/transports/stdio`;
2025-11-25 `basic/lifecycle`.
"""

import enum
from typing import Final

from .._value import JSONMapping, JSONObject
from ..jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Batch,
    Decoded,
    ErrorResponse,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    is_larger,
    malformed,
)
from ..types import (
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
)
from ._events import (
    NOWHERE,
    Dispatch,
    Envelope,
    Fanout,
    Notice,
    Origin,
    PeerEvent,
    Ready,
    Resolve,
    SendAnswer,
    mapping,
    meta_of,
    token_of,
)
from ._ledger import Ledger, refuse
from ._revisions import (
    CLIENT_REQUESTS,
    LATEST_HANDSHAKE,
    STATELESS,
    SUPPORTED_VERSIONS,
    Revision,
    negotiate,
)
from ._stateless import REQUIRED_KEYS, is_stateless, read_stateless

#: Bytes of JSON of `clientInfo` and `capabilities`, which are kept for the life of a connection;
#: real ones have a few hundred.
MAX_CLIENT: Final = 64 * 1024
#: Values in them: parsed, they take many times as much memory as their text.
MAX_CLIENT_VALUES: Final = 2000
_TOO_LARGE: Final = (
    f"clientInfo and capabilities may have {MAX_CLIENT} bytes of JSON and {MAX_CLIENT_VALUES}"
    " values"
)


class Phase(enum.Enum):
    """The phase of a handshake."""

    NEW = "new"
    INITIALIZING = "initializing"
    READY = "ready"


#: (phase, request) → next phase; every other phase refuses the request.
REQUEST_TRANSITIONS: Final = {(Phase.NEW, "initialize"): Phase.INITIALIZING}
# A second `notifications/initialized` is an ordinary notice: it must not fail a client.
#: (phase, notification) → next phase; a pair that is not here leaves the phase alone.
NOTIFICATION_TRANSITIONS: Final = {
    (Phase.INITIALIZING, "notifications/initialized"): Phase.READY,
}


#: `clientInfo` of a client that sends none.
_UNKNOWN_CLIENT: Final = {"name": "unknown", "version": "0.0.0"}


class Handshake:
    """The state of one client with a handshake.

    Attributes:
        phase: The phase.
        revision: The negotiated revision; before `initialize`, the latest.
        client_info: The client's `Implementation`, as sent.
        client_capabilities: The abilities of the client, as sent.
        log_level: Set by `logging/setLevel`; until then everything is sent.
    """

    __slots__ = ("client_capabilities", "client_info", "log_level", "phase", "revision")

    def __init__(self) -> None:
        self.phase = Phase.NEW
        # In use until `initialize` is read: a ping may come before it.
        self.revision: Revision = LATEST_HANDSHAKE
        self.client_info: JSONMapping = dict(_UNKNOWN_CLIENT)
        self.client_capabilities: JSONMapping = {}
        # Without `logging/setLevel` the server decides (2025-11-25 `server/utilities/logging`).
        self.log_level: str = LOG_LEVELS[0]

    @property
    def ready(self) -> bool:
        """True once the client has sent `notifications/initialized`."""
        return self.phase is Phase.READY

    def agreed(self) -> JSONObject:
        """Write the outcome of the handshake, as JSON values, for `resume`."""
        return {
            "version": self.revision.name,
            "client": dict(self.client_info),
            "capabilities": dict(self.client_capabilities),
        }

    def resume(self, agreed: JSONMapping) -> None:
        """Continue the handshake of another process.

        Args:
            agreed: The return value of its `agreed`.
        """
        # Negotiated again: a newer process may not serve the revision that an older one agreed on.
        self.revision = negotiate(agreed["version"])
        self.client_info = agreed["client"]
        self.client_capabilities = agreed["capabilities"]
        self.phase = Phase.READY

    def complete(self) -> bool:
        """Complete the handshake: another process may have received its last message.

        Returns:
            True if the handshake was not complete before.
        """
        if self.phase is not Phase.INITIALIZING:
            return False
        self.phase = Phase.READY
        return True

    def envelope(self, meta: JSONMapping | None = None, origin: Origin = NOWHERE) -> Envelope:
        """Make the metadata of a request from the session and the request's own `_meta`."""
        meta = meta or {}
        return Envelope(
            self.revision,
            self.client_info,
            self.client_capabilities,
            self.log_level,
            token_of(meta) if meta else None,
            meta,
            origin,
        )


class ServerPeer:
    """The server's end of one connection, for clients of either era, at the same time.

    Args:
        in_flight: Requests that may be in flight at once.

    Attributes:
        origin: The origin of messages that come without one of their own.
        handshake: The state of the client with a handshake, if there is one.
        ledger: The request ids of both eras.
    """

    def __init__(self, in_flight: int) -> None:
        self.origin = NOWHERE
        self.ledger = Ledger(in_flight)
        self.handshake = Handshake()
        self._served_stateless = False

    def receive(self, message: Decoded, origin: Origin | None = None) -> PeerEvent | None:
        """Turn one message into its event.

        Args:
            message: The message.
            origin: Its headers and caller; None for the origin of the peer.

        Returns:
            The event for the engine; None if the message is ignored.
        """
        origin = self.origin if origin is None else origin
        if isinstance(message, Request):
            return self._request(message, origin)
        if isinstance(message, Notification):
            return self._notification(message)
        if isinstance(message, Response | ErrorResponse):
            return self.ledger.resolve(Resolve(message))
        if isinstance(message, Batch):
            return self._batch(message, origin)
        return self.ledger.receive_malformed(message)

    @property
    def revision(self) -> Revision | None:
        """The revision in use; None until the client has shown it.

        A pipe that carries both eras at once counts as one with a handshake.
        """
        if self.handshake.phase is not Phase.NEW:
            return self.handshake.revision
        return STATELESS if self._served_stateless else None

    def revision_of(self, message: Decoded) -> Revision | None:
        """Find the revision under which a message was read.

        Args:
            message: A message that was received.

        Returns:
            The revision; None if it is not known, or not served.
        """
        if isinstance(message, Request) and is_stateless(message.params):
            version = meta_of(message.params).get(META_PROTOCOL_VERSION, STATELESS.name)
            return STATELESS if version == STATELESS.name else None
        return self.revision

    # Requests

    def _request(self, request: Request, origin: Origin) -> PeerEvent:
        params = request.params
        # `meta_of` and `is_stateless`, written out: every request passes here.
        meta = params.get("_meta") if params else None
        if type(meta) is not dict:
            meta = {}
        elif META_PROTOCOL_VERSION in meta or META_CLIENT_CAPABILITIES in meta:
            # Before `initialize` is looked at: with metadata of 2026-07-28 that method does not
            # exist, even on a server that knows it from the other era (2026-07-28
            # `basic/versioning`).
            event = read_stateless(request, origin)
            if isinstance(event, SendAnswer):
                return event
            self._served_stateless = True
            # Checked first, entered last: a refused request must leave no id behind.
            return self.ledger.accept(request) or event
        handshake = self.handshake
        if request.method == "initialize":
            return self._initialize(request, origin)
        if handshake.phase is not Phase.READY and request.method != "ping":
            return self._not_ready(request)
        # `ping` is allowed in every phase (2025-11-25 `basic/lifecycle`, "Initialization").
        method = CLIENT_REQUESTS.get(request.method)
        if method is None or not method.handshake:
            return refuse(request, METHOD_NOT_FOUND, f"Method not found: {request.method}")
        event = Dispatch(request, handshake.envelope(meta, origin))
        return self.ledger.accept(request) or event

    def _initialize(self, request: Request, origin: Origin) -> PeerEvent:
        params = request.params or {}
        handshake = self.handshake
        version = params.get("protocolVersion")
        # Once per process on stdio, once per session over HTTP (2026-07-28 `basic/versioning`).
        phase = REQUEST_TRANSITIONS.get((handshake.phase, request.method))
        if phase is None:
            return refuse(request, INVALID_REQUEST, "Already initialized")
        if not isinstance(version, str):
            return refuse(request, INVALID_PARAMS, "initialize requires a protocolVersion string")
        info, capabilities = mapping(params.get("clientInfo")), mapping(params.get("capabilities"))
        # Kept for the life of the connection, so bounded far below the size of a message.
        if is_larger([info, capabilities], MAX_CLIENT, MAX_CLIENT_VALUES):
            return refuse(request, INVALID_PARAMS, _TOO_LARGE)
        # Entered as every request is: a duplicate id must be refused here, too.
        refusal = self.ledger.accept(request)
        if refusal:
            return refusal
        # Validated: from here on nothing refuses the message.
        handshake.revision = negotiate(version)
        handshake.client_info = info or dict(_UNKNOWN_CLIENT)
        handshake.client_capabilities = capabilities
        handshake.phase = phase
        return Dispatch(request, handshake.envelope(meta_of(params), origin))

    def _not_ready(self, request: Request) -> SendAnswer:
        if self.handshake.phase is Phase.INITIALIZING:
            # A client should send only pings before `initialized` (2025-11-25 `basic/lifecycle`).
            return refuse(request, INVALID_REQUEST, "Session not initialized")
        # Neither era: 2026-07-28 `basic/versioning` asks for the supported versions.
        text = "Session not initialized: send initialize, or the 2026-07-28 fields in _meta"
        data = {"missing": list(REQUIRED_KEYS), "supported": list(SUPPORTED_VERSIONS)}
        return refuse(request, INVALID_PARAMS, text, data)

    # Everything else

    def _notification(self, message: Notification) -> PeerEvent | None:
        # Neither of the two carries an era; both name a request of the one ledger.
        if message.method == "notifications/cancelled":
            return self.ledger.cancelled(message.params)
        if message.method == "notifications/progress":
            return self.ledger.progress(message.params)
        handshake = self.handshake
        phase = NOTIFICATION_TRANSITIONS.get((handshake.phase, message.method))
        if phase is not None:
            handshake.phase = phase
            return Ready()
        # Dropped before the handshake is complete: its meaning depends on the revision. A client of
        # 2026-07-28 has no other notifications (`basic/patterns/cancellation`).
        return Notice(message) if handshake.ready else None

    def _batch(self, batch: Batch, origin: Origin) -> PeerEvent:
        # Until `initialize` has negotiated one, the revision is the latest, which has no arrays.
        if not self.handshake.revision.batches:
            text = "JSON-RPC batching is not supported by this revision of MCP"
            return SendAnswer(malformed(INVALID_REQUEST, text).error)
        # Each message is decided in order, before any is acted on: a cancellation in the array
        # finds the request that stands before it.
        return Fanout(tuple(self._batched(message, origin) for message in batch.messages))

    def _batched(self, message: Message | Malformed, origin: Origin) -> PeerEvent | None:
        if isinstance(message, Request):
            text = None
            if message.method == "initialize":
                # 2025-03-26 `basic/lifecycle`, "Initialization".
                text = "initialize must not be part of a batch"
            elif is_stateless(message.params):
                # 2026-07-28 has no arrays, whatever the handshake beside it agreed on.
                text = "A 2026-07-28 request must not be part of a batch"
            if text is not None:
                return SendAnswer(ErrorResponse(message.id, INVALID_REQUEST, text))
        return self.receive(message, origin)
