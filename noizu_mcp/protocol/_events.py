"""What a peer tells the engine after it has taken a message."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..jsonrpc import ErrorResponse, Id, Notification, Request, Response
from ..types import Principal
from ._request_headers import Mirrored
from ._versions import Revision


class Origin(NamedTuple):
    """What a transport knows of a request beside its text.

    Attributes:
        headers: The HTTP headers that mirror it; None where there are none.
        principal: Who asks, verified; None where nobody verifies it.
    """

    headers: Mirrored | None = None
    principal: Principal | None = None


#: Of messages on a pipe.
NOWHERE: Final = Origin()


class Envelope(NamedTuple):
    """The context of one request, whatever era it came in.

    Attributes:
        revision: The revision it is served under.
        client_info: `Implementation` as sent, or None.
        client_capabilities: What the client can do, as sent.
        log_level: The least severe level it wants; None: it wants no log messages.
        progress_token: Where progress goes, or None.
        meta: `_meta` of the request as sent.
        origin: What the transport knows of it.
    """

    revision: Revision
    client_info: Mapping[str, Any] | None
    client_capabilities: Mapping[str, Any]
    log_level: str | None
    progress_token: Id | None
    meta: Mapping[str, Any]
    origin: Origin = NOWHERE


class Dispatch(NamedTuple):
    """A request to handle."""

    request: Request
    envelope: Envelope


class Send(NamedTuple):
    """An answer that needs no handler."""

    message: Response | ErrorResponse


class Cancel(NamedTuple):
    """The sender no longer wants the answer to a request; nothing may follow for its id."""

    id: Id
    reason: str | None


class Resolve(NamedTuple):
    """The answer to a request of ours."""

    answer: Response | ErrorResponse


class Progress(NamedTuple):
    """News of a request of ours."""

    token: Id
    params: Mapping[str, Any]


class Notice(NamedTuple):
    """Any other notification."""

    notification: Notification


class Ready:
    """The handshake is complete."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ready)

    def __hash__(self) -> int:
        return hash(Ready)


class Fanout(NamedTuple):
    """The messages of an array, each with what it means; their answers travel as one array."""

    events: "tuple[Event | None, ...]"


Event = Dispatch | Send | Cancel | Resolve | Progress | Notice | Ready | Fanout
