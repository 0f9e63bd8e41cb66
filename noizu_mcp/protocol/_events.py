"""Events: the meaning of a message, as a peer reports it to the engine."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..jsonrpc import ErrorResponse, Id, Notification, Request, Response
from ._metadata import Envelope


class Dispatch(NamedTuple):
    """A request to handle."""

    request: Request
    envelope: Envelope


class Send(NamedTuple):
    """An answer that needs no handler: a refusal, or the answer to a ping."""

    message: Response | ErrorResponse


class Cancel(NamedTuple):
    """The sender no longer wants the answer to a request; nothing may follow for its id."""

    id: Id
    reason: str | None


class Resolve(NamedTuple):
    """The answer to a request of ours."""

    answer: Response | ErrorResponse


class Progress(NamedTuple):
    """Progress of a request of ours."""

    token: Id
    params: Mapping[str, Any]


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

    events: "tuple[Event | None, ...]"


Event = Dispatch | Send | Cancel | Resolve | Progress | Notice | Ready | Fanout
