"""The ledger of request ids in both directions."""

from collections.abc import Mapping
from typing import Any

from ..jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, ErrorResponse, Id, Request
from ._events import Cancel, Progress, Resolve, Send


class Ledger:
    """Which requests have no answer yet: the peer's (inbound) and ours (outbound).

    Args:
        limit: Inbound requests that may be in flight at once.
    """

    __slots__ = ("_inbound", "_limit", "_next_id", "_outbound")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inbound: set[Id] = set()
        self._outbound: set[Id] = set()
        self._next_id = 0

    def accept(self, request: Request) -> Send | None:
        """Enter an inbound request, or return the error that refuses it."""
        if request.id in self._inbound:
            return refuse(request, INVALID_REQUEST, "Duplicate in-flight request id")
        if len(self._inbound) >= self._limit:
            text = f"More than {self._limit} requests in flight; wait for answers"
            return refuse(request, INTERNAL_ERROR, text)
        self._inbound.add(request.id)
        return None

    def finish(self, id_: Id) -> None:
        """Strike an inbound request out: it is answered."""
        self._inbound.discard(id_)

    def open(self, method: str, params: dict[str, Any] | None) -> Request:
        """Make an outbound request with an id never used before."""
        self._next_id += 1
        self._outbound.add(self._next_id)
        return Request(self._next_id, method, params)

    def close(self, id_: Id) -> None:
        """Forget an outbound request: a late answer to it is dropped."""
        self._outbound.discard(id_)

    def cancelled(self, params: Mapping[str, Any] | None) -> Cancel | None:
        """Read `notifications/cancelled`; unknown and malformed ones mean nothing.

        Source: 2025-11-25 `basic/utilities/cancellation`, "Error Handling".
        """
        id_ = (params or {}).get("requestId")
        if not is_id(id_) or id_ not in self._inbound:
            return None
        self._inbound.discard(id_)
        reason = (params or {}).get("reason")
        return Cancel(id_, reason if isinstance(reason, str) else None)

    def resolve(self, event: Resolve) -> Resolve | None:
        """Take an answer; late, forged and id-less ones mean nothing."""
        id_ = event.answer.id
        if id_ is None or id_ not in self._outbound:
            return None
        self._outbound.discard(id_)
        return event

    def progress(self, params: Mapping[str, Any] | None) -> Progress | None:
        """Read `notifications/progress`; our progress tokens are our request ids."""
        token = (params or {}).get("progressToken")
        if params is None or not is_id(token) or token not in self._outbound:
            return None
        return Progress(token, params)


def refuse(request: Request, code: int, message: str, data: Any = None) -> Send:
    """Answer a request with an error."""
    return Send(ErrorResponse(request.id, code, message, data))


def is_id(value: Any) -> bool:
    """Tell whether a value can be a request id or a progress token: a string or an integer."""
    return type(value) is str or type(value) is int
