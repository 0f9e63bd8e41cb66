"""The client's end of a connection, for either era.

Theory of operation. The peer keeps no phases: the client negotiates, then sets `revision`, and
every later message is read and written under that revision. A probe (`server/discover`) names its
revision itself, since none is negotiated yet. The ledger decides which answers are awaited; it is
bounded by the tasks of the client that wait, and by `in_flight` for requests of the server.

Source: 2026-07-28 `basic/versioning`; 2025-11-25 `basic/lifecycle`.
"""

from collections.abc import Iterable, Mapping

from .._log import SHOWN, ThrottledLog
from .._value import JSONMapping, JSONObject
from ..jsonrpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Batch,
    Decoded,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
    malformed,
)
from ..types import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_PROTOCOL_VERSION,
)
from ._events import (
    Dispatch,
    Envelope,
    Fanout,
    Notice,
    PeerEvent,
    Resolve,
    SendAnswer,
    meta_of,
    token_of,
)
from ._ledger import Ledger, refuse
from ._revisions import LATEST_HANDSHAKE, SERVER_REQUESTS, Revision


class ClientPeer:
    """The client's end of one connection.

    Args:
        info: `Implementation` of the client, as sent.
        capabilities: `ClientCapabilities`, as sent.
        in_flight: Requests of the server that may be in flight at once.

    Attributes:
        revision: The revision in use; set it once it is negotiated.
        log_level: The level that was asked for, or None; sent with every request of 2026-07-28.
    """

    def __init__(self, info: JSONMapping, capabilities: JSONMapping, in_flight: int) -> None:
        self.info = info
        self.capabilities = capabilities
        self.revision: Revision = LATEST_HANDSHAKE
        self.log_level: str | None = None
        self.ledger = Ledger(in_flight)
        # Of its own, so that one server cannot hide the entries about another.
        self._log = ThrottledLog(shown=SHOWN)

    def request(
        self,
        method: str,
        params: JSONMapping | None,
        *,
        revision: Revision | None = None,
        progress: bool = False,
        extensions: Iterable[str] = (),
    ) -> Request:
        """Make a request: its id, and the `_meta` that its revision demands.

        Args:
            method: The method.
            params: Its params, or None for no params.
            revision: Instead of the revision in use (a probe).
            progress: Ask for progress; the token is the id of the request.
            extensions: The ids of extensions that this request declares in addition to the
                client's (2026-07-28).
        """
        body = None if params is None else dict(params)
        meta = self._meta(revision or self.revision, extensions)
        if meta or progress:
            body = body or {}
            # Reserved keys win over keys of the caller (2026-07-28 `basic/index`, `_meta`).
            given = body.get("_meta")
            meta = body["_meta"] = {**given, **meta} if isinstance(given, Mapping) else meta
        request = self.ledger.open(method, body)
        if progress:
            # Our ids are never used twice, so the token is unique among the active requests
            # (2025-11-25 `basic/utilities/progress`), and needs no table of its own.
            meta[META_PROGRESS_TOKEN] = request.id
        return request

    def _meta(self, revision: Revision, extensions: Iterable[str]) -> JSONObject:
        if not revision.stateless:
            return {}
        capabilities = self.capabilities
        if extensions:
            declared = {**capabilities.get("extensions", {}), **{each: {} for each in extensions}}
            capabilities = {**capabilities, "extensions": declared}
        # The version and the capabilities must be sent with every request, the client info should
        # be (2026-07-28 `basic/index`): the server remembers nothing.
        meta: JSONObject = {
            META_PROTOCOL_VERSION: revision.name,
            META_CLIENT_INFO: self.info,
            META_CLIENT_CAPABILITIES: capabilities,
        }
        if self.log_level is not None:
            meta[META_LOG_LEVEL] = self.log_level
        return meta

    def receive(self, message: Decoded) -> PeerEvent | None:
        """Take one message from the server; see `ServerPeer.receive`."""
        # A tuple: a union would be made anew for each message.
        if isinstance(message, (Response, ErrorResponse)):
            return self.ledger.resolve(Resolve(message))
        if isinstance(message, Notification):
            return self._notification(message)
        if isinstance(message, Malformed) and not message.answer:
            return self.ledger.receive_malformed(message)
        # All else is answered, and a client of 2026-07-28 must send no answers, not even errors: a
        # server of that revision asks with an `InputRequiredResult` (`basic/transports/stdio`).
        if self.revision.stateless:
            kind = type(message).__name__
            self._log.warning(kind, "ignored %s of the server", _describe(message))
            return None
        return self._answer(message)

    def _answer(self, message: Request | Malformed | Batch) -> PeerEvent:
        if isinstance(message, Request):
            return self._request(message)
        if isinstance(message, Malformed):
            return SendAnswer(message.error)
        # 2025-03-26 `basic/index`: a receiver must accept arrays; later revisions have none.
        if self.revision.batches:
            return Fanout(tuple(map(self.receive, message.messages)))
        return SendAnswer(malformed(INVALID_REQUEST, "Batches are not supported").error)

    def _notification(self, message: Notification) -> PeerEvent | None:
        if message.method == "notifications/cancelled":
            return self._cancelled(message)
        if message.method == "notifications/progress":
            return self.ledger.progress(message.params)
        return Notice(message)

    def _cancelled(self, message: Notification) -> PeerEvent | None:
        # Before 2026-07-28 it names a request of the server; since then, a listen request
        # of the client that the server ends (2026-07-28 `basic/patterns/cancellation`).
        if self.revision.stateless:
            id_ = (message.params or {}).get("requestId")
            return Notice(message) if self.ledger.awaits(id_) else None
        return self.ledger.cancelled(message.params)

    def _request(self, request: Request) -> PeerEvent:
        if request.method not in SERVER_REQUESTS:
            return refuse(request, METHOD_NOT_FOUND, f"Method not found: {request.method}")
        # A ping needs no handler and no place in the ledger: it must be answered promptly
        # (2025-11-25 `basic/utilities/ping`), also when the handlers of the client are busy.
        if request.method == "ping" and not self.ledger.holds(request.id):
            return SendAnswer(Response(request.id, {}))
        meta = meta_of(request.params)
        envelope = Envelope(self.revision, None, {}, None, token_of(meta), meta)
        return self.ledger.accept(request) or Dispatch(request, envelope)


def _describe(message: Request | Batch | Malformed) -> str:
    if isinstance(message, Request):
        # Cut: the server chooses the text, and the log must stay readable.
        return f"the request {message.method[:60]!r}"
    return "an array of messages" if isinstance(message, Batch) else "a malformed message"
