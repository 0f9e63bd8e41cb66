"""The ledger of request ids in both directions.

An id enters when its request is accepted or made, and leaves with its answer or its cancellation.
So the ledger is the one place that knows which answers are late, forged or awaited. Inbound ids are
bounded by the limit; outbound ids by the tasks that wait, since each closes its id on its way out.
"""

from typing import Final, TypeGuard

from .._value import JSONMapping, JSONObject
from ..jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, ErrorResponse, Id, Malformed, Request
from ._events import CancelRequest, ReportProgress, Resolve, SendAnswer, is_id

# Compared with `type`, not `isinstance`: True is an int in Python, and no number in JSON.
_NUMBER: Final = (int, float)
_NUMBER_OR_NONE: Final = (int, float, type(None))
_TEXT_OR_NONE: Final = (str, type(None))


class Ledger:
    """The ids of requests without an answer: the peer's (inbound) and our own (outbound).

    Args:
        limit: Inbound requests that may be in flight at once.

    Attributes:
        methods: The methods of inbound requests without an answer, by id.
        prefix: The begin of all outbound ids, where other processes make ids for the same peer;
            without it, ids are integers.
    """

    __slots__ = ("_limit", "_next_id", "_outbound", "methods", "prefix")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.methods: dict[Id, str] = {}  # id → method
        self._outbound: dict[Id, None] = {}  # an empty set is three times as large
        self._next_id = 0
        self.prefix = ""

    @property
    def inbound(self) -> int:
        """Requests of the peer that have no answer yet."""
        return len(self.methods)

    @property
    def outbound(self) -> int:
        """Outbound requests that have no answer yet."""
        return len(self._outbound)

    def accept(self, request: Request) -> SendAnswer | None:
        """Enter an inbound request, or return the error that refuses it."""
        # Two answers with one id could not be told apart (2025-11-25 `basic/index`, "Requests").
        if request.id in self.methods:
            return refuse(request, INVALID_REQUEST, "Duplicate in-flight request id")
        # The code of a failure in the server: the specification has none for a busy peer, and its
        # reserved range is closed (2026-07-28 `basic/index`).
        if len(self.methods) >= self._limit:
            text = f"More than {self._limit} requests in flight; wait for answers"
            return refuse(request, INTERNAL_ERROR, text)
        self.methods[request.id] = request.method
        return None

    def holds(self, id_: Id) -> bool:
        """Tell whether an inbound request with this id has no answer yet."""
        return id_ in self.methods

    def finish(self, id_: Id) -> None:
        """Forget an inbound request: it is answered."""
        self.methods.pop(id_, None)

    def open(self, method: str, params: JSONObject | None) -> Request:
        """Make an outbound request with an id never used before."""
        # Never used twice, also after its answer: a late answer must not meet a new request. A
        # counter satisfies 2025-11-25 (never reused in a session) and 2026-07-28 (`basic/index`).
        self._next_id += 1
        id_: Id = f"{self.prefix}{self._next_id}" if self.prefix else self._next_id
        self._outbound[id_] = None
        return Request(id_, method, params)

    def close(self, id_: Id) -> None:
        """Forget an outbound request: a late answer to it is dropped."""
        self._outbound.pop(id_, None)

    def awaits(self, id_: object) -> TypeGuard[Id]:
        """Tell whether a value is the id of an outbound request without answer."""
        return is_id(id_) and id_ in self._outbound

    def cancelled(self, params: JSONMapping | None) -> CancelRequest | None:
        """Read `notifications/cancelled`; unknown and malformed ones are ignored.

        A cancellation of `initialize` is ignored, too: it must not be cancelled (2025-11-25
        `basic/utilities/cancellation`, "Behavior Requirements" and "Error Handling").
        """
        id_ = (params or {}).get("requestId")
        # `is_id` first: an object is not hashable. The default lets an unknown id end here, too.
        if not is_id(id_) or self.methods.get(id_, "initialize") == "initialize":
            return None
        # Free at once: a request that follows on the pipe may have the id again.
        del self.methods[id_]
        reason = (params or {}).get("reason")
        return CancelRequest(id_, reason if isinstance(reason, str) else None)

    def resolve(self, event: Resolve) -> Resolve | None:
        """Take an answer; late, forged and id-less answers are ignored."""
        id_ = event.answer.id
        # The codec lets only strings and integers through: an id can be looked up as it is.
        if id_ is None or id_ not in self._outbound:
            return None
        del self._outbound[id_]
        return event

    def progress(self, params: JSONMapping | None) -> ReportProgress | None:
        """Read `notifications/progress`; unknown tokens and malformed params are ignored.

        Our progress tokens are our request ids, so progress after the answer is ignored as well.
        """
        if params is None or not self.awaits(params.get("progressToken")):
            return None
        return ReportProgress(params["progressToken"], params) if _is_progress(params) else None

    def receive_malformed(self, message: Malformed) -> SendAnswer | Resolve | None:
        """Answer input that is not a valid JSON-RPC message.

        A malformed answer fails its request, which would wait for ever otherwise. It gets no
        answer: two peers could answer each other's malformed answers without end.
        """
        return SendAnswer(message.error) if message.answer else self.resolve(Resolve(message.error))


def _is_progress(params: JSONMapping) -> bool:
    return (
        type(params.get("progress")) in _NUMBER
        and type(params.get("total")) in _NUMBER_OR_NONE
        and type(params.get("message")) in _TEXT_OR_NONE
    )


def refuse(request: Request, code: int, message: str, data: object = None) -> SendAnswer:
    """Answer a request with an error."""
    return SendAnswer(ErrorResponse(request.id, code, message, data))
