"""Both eras on one pipe: each message picks its peer.

Source: 2026-07-28 `basic/versioning`, "Backward Compatibility"; `basic/transports/stdio`.
"""

from functools import cached_property

from ..jsonrpc import (
    INVALID_REQUEST,
    Batch,
    Decoded,
    ErrorResponse,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    malformed,
)
from ..types import META_PROTOCOL_VERSION
from ._events import NOWHERE, Event, Fanout, Origin, Resolve, Send
from ._handshake import HandshakePeer, Phase
from ._inflight import Ledger
from ._malformed import receive_malformed
from ._meta import meta_of
from ._stateless import StatelessPeer, is_stateless
from ._versions import STATELESS, Revision


class ServerPeer:
    """The server's end of one connection, for clients of either era, at the same time.

    Args:
        in_flight: Requests that may be in flight at once.

    Attributes:
        origin: What the transport knows of whatever comes without an origin of its own.
        handshake: What the client with a handshake has said, if there is one.
        stateless: Serves requests that carry their own context.
        ledger: The request ids of both; one pipe has one space of ids.
    """

    def __init__(self, in_flight: int) -> None:
        self.origin = NOWHERE
        self.ledger = Ledger(in_flight)
        self.stateless = StatelessPeer(self.ledger)

    @cached_property
    def handshake(self) -> HandshakePeer:
        """What the client with a handshake has said; over HTTP most requests need none."""
        return HandshakePeer(self.ledger)

    def receive(self, message: Decoded, origin: Origin | None = None) -> Event | None:
        """Take one message.

        Args:
            message: The message.
            origin: What the transport knows of it; None for that of the peer.

        Returns:
            What it means for the engine; None when it means nothing.
        """
        origin = self.origin if origin is None else origin
        if isinstance(message, Request):
            if is_stateless(message.params):
                return self.stateless.receive_request(message, origin)
            return self.handshake.receive_request(message, origin)
        if isinstance(message, Notification):
            return self._notification(message)
        if isinstance(message, Response | ErrorResponse):
            return self.ledger.resolve(Resolve(message))
        if isinstance(message, Batch):
            return self._batch(message, origin)
        return receive_malformed(self.ledger, message)

    @property
    def revision(self) -> Revision | None:
        """What is spoken; None until the client has shown it.

        A pipe that carries both eras at once is taken for one with a handshake.
        """
        handshake: HandshakePeer | None = vars(self).get("handshake")
        if handshake is not None and handshake.phase is not Phase.NEW:
            return handshake.revision
        return STATELESS if self.stateless.used else None

    def revision_of(self, message: Decoded) -> Revision | None:
        """Tell under which revision a message was read.

        Args:
            message: One that was received.

        Returns:
            The revision; None if it is not known, or not served.
        """
        if isinstance(message, Request) and self._is_stateless(message):
            version = meta_of(message.params).get(META_PROTOCOL_VERSION, STATELESS.name)
            return STATELESS if version == STATELESS.name else None
        return self.revision

    def _is_stateless(self, request: Request) -> bool:
        # Over HTTP the headers may have said so; then no peer with a handshake has been asked.
        return is_stateless(request.params) or "handshake" not in vars(self)

    def _notification(self, message: Notification) -> Event | None:
        # Neither carries an era; both name something in the one ledger.
        if message.method == "notifications/cancelled":
            return self.ledger.cancelled(message.params)
        if message.method == "notifications/progress":
            return self.ledger.progress(message.params)
        return self.handshake.receive_notification(message)

    def _batch(self, batch: Batch, origin: Origin) -> Event:
        # Until `initialize` has negotiated one, the revision is the latest, which has no arrays.
        if not self.handshake.revision.batches:
            text = "JSON-RPC batching is not supported by this revision of MCP"
            return Send(malformed(INVALID_REQUEST, text).error)
        return Fanout(tuple(self._batched(message, origin) for message in batch.messages))

    def _batched(self, message: Message | Malformed, origin: Origin) -> Event | None:
        if isinstance(message, Request):
            text = None
            if message.method == "initialize":
                # 2025-03-26 `basic/lifecycle`, "Initialization".
                text = "initialize must not be part of a batch"
            elif is_stateless(message.params):
                text = "A 2026-07-28 request must not be part of a batch"
            if text is not None:
                return Send(ErrorResponse(message.id, INVALID_REQUEST, text))
        return self.receive(message, origin)
