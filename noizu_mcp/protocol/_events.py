"""Events: the meaning of a message, as a peer reports it to the engine, with its metadata.

Handlers never see an era: 2026-07-28 fills an `Envelope` from `_meta`, the handshake revisions fill
it from the session.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from .._value import JSONMapping, JSONObject
from ..jsonrpc import ErrorResponse, Id, Notification, Request, Response
from ..types import META_PROGRESS_TOKEN
from ._revisions import Revision

if TYPE_CHECKING:
    from ..types import Principal

#: HTTP headers as they came, by their lower-case names; see `read_header`.
HttpHeaders = Mapping[bytes, bytes]


class Origin(NamedTuple):
    """The context of a request that its transport knows, beside its text.

    Attributes:
        headers: Its HTTP headers; None on a pipe, which has no headers.
        principal: The verified caller; None if callers are not verified.
        client: The name of the client among those that share the server; None: it shares nothing.
    """

    headers: HttpHeaders | None = None
    principal: "Principal | None" = None
    client: str | None = None


#: The origin of messages on a pipe.
NOWHERE: Final = Origin()


class Envelope(NamedTuple):
    """The metadata of one request of either era.

    Attributes:
        revision: The revision it is served under.
        client_info: `Implementation` as sent, or None.
        client_capabilities: The abilities of the client, as sent.
        log_level: The least severe level it wants; None: it wants no log messages.
        progress_token: The token of its progress notices, or None.
        meta: `_meta` of the request as sent.
        origin: Its headers and its verified caller.
    """

    revision: Revision
    client_info: JSONMapping | None
    client_capabilities: JSONMapping
    log_level: str | None
    progress_token: Id | None
    meta: JSONMapping
    origin: Origin = NOWHERE


def is_id(value: object) -> TypeGuard[Id]:
    """Tell whether a value can be a request id or a progress token: a string or an integer."""
    # Not isinstance: True is an int, and equal to 1.
    return type(value) is str or type(value) is int


def mapping(value: object) -> JSONObject:
    """Return a JSON object as it is, and an empty one instead of anything else."""
    # Tolerant on purpose: `_meta` is free text of the peer, and must not fail a request that does
    # not depend on it.
    return value if type(value) is dict else {}


def meta_of(params: JSONMapping | None) -> JSONObject:
    """Find the `_meta` of a message; anything but an object counts as absent."""
    return mapping(params.get("_meta")) if params else {}


def token_of(meta: JSONMapping) -> Id | None:
    """Find the progress token; anything but a string or an integer counts as absent."""
    token = meta.get(META_PROGRESS_TOKEN)
    return token if is_id(token) else None


class Dispatch(NamedTuple):
    """A request to handle."""

    request: Request
    envelope: Envelope


class SendAnswer(NamedTuple):
    """An answer that needs no handler: a refusal, or the answer to a ping."""

    message: Response | ErrorResponse


class CancelRequest(NamedTuple):
    """The sender no longer wants the answer to a request; nothing may follow for its id."""

    id: Id
    reason: str | None


class Resolve(NamedTuple):
    """The answer to an outbound request."""

    answer: Response | ErrorResponse


class ReportProgress(NamedTuple):
    """Progress of an outbound request."""

    token: Id
    params: JSONMapping


class Notice(NamedTuple):
    """Any other notification."""

    notification: Notification


class Ready:
    """The handshake is complete."""

    # Not a NamedTuple: one without fields is false, so `if event` would drop it.
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ready)

    def __hash__(self) -> int:
        return hash(Ready)


class Fanout(NamedTuple):
    """The events of an array of messages; their answers travel as one array."""

    events: "tuple[PeerEvent | None, ...]"


PeerEvent = (
    Dispatch | SendAnswer | CancelRequest | Resolve | ReportProgress | Notice | Ready | Fanout
)
