"""One request of the peer, from its arrival to its one answer."""

import math
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import trio

from ..jsonrpc import (
    INTERNAL_ERROR,
    ErrorResponse,
    Id,
    Rendered,
    Request,
    encode_batch,
    encode_error,
    encode_result,
)
from ..protocol import Envelope
from ._log import logger
from ._outbox import Outbox

if TYPE_CHECKING:
    from ._link import Link


class Delivery:
    """A notice that is on its way; awaiting it waits until the connection has room for more."""

    __slots__ = ("_outbox",)

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def __await__(self) -> Generator[Any, Any, None]:
        return self._outbox.room().__await__()


class Collector:
    """Gathers the answers to one array of messages into one array (2025-03-26).

    Args:
        expected: How many of the messages will be answered or cancelled.
    """

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._answers: list[bytes] = []

    def add(self, answer: bytes | None) -> bytes | None:
        """Take one answer, or None for a request that gets none; the last yields the array."""
        self._expected -= 1
        if answer is not None:
            self._answers.append(answer)
        if self._expected == 0 and self._answers:
            return encode_batch(self._answers)
        return None


@attrs.define(eq=False, repr=False)
class Exchange:
    """A request in flight.

    Exactly one of `reply` and `fail` counts, the first; after a cancellation neither does.

    Attributes:
        link: The connection it came on.
        request: The request.
        envelope: Its context.
        batch: Where its answer is gathered, if it came in an array.
        deadline: When it expires, on trio's clock.
        scope: Cancels its task.
        cancelled: True once the peer has cancelled it: nothing may follow for its id.
        answered: True once it has its answer.
        open: True once it needs no task: it stays until its peer or its connection ends it.
    """

    link: "Link"
    request: Request
    envelope: Envelope
    batch: Collector | None = None
    deadline: float = math.inf
    scope: trio.CancelScope | None = None
    cancelled: bool = False
    answered: bool = False
    open: bool = False
    _left: float = math.inf

    @property
    def id(self) -> Id:
        """The id of the request."""
        return self.request.id

    def reply(self, result: Mapping[str, Any] | Rendered) -> None:
        """Answer with a result; one that is no JSON becomes an internal error."""
        try:
            answer = encode_result(self.request.id, result)
        except (ValueError, TypeError, RecursionError) as error:
            logger.error("the result of %s is not JSON", self.request.method, exc_info=error)
            answer = encode_error(ErrorResponse(self.id, INTERNAL_ERROR, "Result is not JSON"))
        self._answer(answer)

    def fail(self, code: int, message: str, data: Any = None) -> None:
        """Answer with an error."""
        self._answer(encode_error(ErrorResponse(self.id, code, message, data)))

    def _answer(self, answer: bytes) -> None:
        if not self.answered and not self.cancelled:
            self.answered = True
            self.link.answer(self, answer)

    def notify(self, method: str, params: Mapping[str, Any]) -> Delivery:
        """Send a notice that belongs to this request; after its answer it is dropped."""
        if not self.answered and not self.cancelled:
            return self.link.inform(method, params)
        return Delivery(self.link.outbox)

    def expire_at(self, deadline: float) -> None:
        """Move the deadline while the work is on its way; on trio's clock."""
        self.deadline = deadline
        if self.scope is not None:
            self.scope.deadline = deadline

    def pause(self) -> None:
        """Stop the clock of the deadline; `resume` lets it go on with what was left."""
        self._left = self.deadline - trio.current_time()
        self.expire_at(math.inf)

    def resume(self) -> None:
        """Let the clock go on."""
        self.expire_at(trio.current_time() + self._left)

    def stop(self) -> None:
        """End the work on it: it has its answer."""
        if self.scope is not None:
            self.scope.cancel()

    def cancel(self) -> None:
        """Stop working on it: the peer no longer wants the answer."""
        self.cancelled = True
        if self.batch is not None:
            self.link.gather(self.batch, None)
        if self.scope is not None:
            self.scope.cancel()
