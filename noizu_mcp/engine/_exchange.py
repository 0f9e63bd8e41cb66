"""One request of the peer, from its arrival to its one answer."""

import math
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import attrs
import trio

from .._log import seldom
from ..jsonrpc import (
    INTERNAL_ERROR,
    ErrorResponse,
    Id,
    Rendered,
    Request,
    encode_error,
    encode_result,
)
from ..protocol import Envelope
from ._channel import Channel, Collector, Delivery
from ._watch import Fate, Record

if TYPE_CHECKING:
    from ._desk import Desk

#: The rest of the work on a request, to be run in a task of its own.
Job = Callable[[], Coroutine[Any, Any, None]]


@attrs.define(eq=False, repr=False)
class Exchange:
    """A request in flight.

    Exactly one of `reply` and `fail` counts, the first; after a cancellation neither does.

    Attributes:
        desk: Keeps it until it is answered.
        request: The request.
        envelope: Its context.
        channel: Where its messages go.
        batch: Where its answer is gathered, if it came in an array.
        deadline: When it expires, on trio's clock.
        scope: Cancels its task.
        cancelled: True once the peer has cancelled it: nothing may follow for its id.
        answered: True once it has its answer.
        open: True once it needs no task: it stays until its peer or its connection ends it.
        record: Watches it; None: nobody does.
    """

    desk: "Desk"
    request: Request
    envelope: Envelope
    channel: Channel
    batch: Collector | None = None
    deadline: float = math.inf
    scope: trio.CancelScope | None = None
    cancelled: bool = False
    answered: bool = False
    open: bool = False
    record: Record | None = None
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
            method = self.request.method
            seldom.crash(method, "the result of %s is not JSON", method, error=error)
            self.mark("crashed")
            self.fail(INTERNAL_ERROR, "Result is not JSON")
        else:
            if self.record is not None:
                self.record.replied(result)
            self._answer(answer, None)

    def fail(self, code: int, message: str, data: Any = None) -> None:
        """Answer with an error."""
        self._answer(encode_error(ErrorResponse(self.id, code, message, data)), code)

    def _answer(self, answer: bytes, code: int | None) -> None:
        if not self.answered and not self.cancelled:
            self.answered = True
            self.desk.finish(self, answer, code)
            if self.record is not None:
                self.record.answered(len(answer), code)

    def mark(self, fate: Fate) -> None:
        """Say to who watches how it is about to end, where the answer does not tell."""
        if self.record is not None:
            self.record.mark(fate)

    def notify(self, method: str, params: Mapping[str, Any]) -> Delivery:
        """Send a notice that belongs to this request; after its answer it is dropped."""
        if not self.answered and not self.cancelled:
            return self.desk.inform(method, params, self.channel)
        return Delivery(self.channel.room)

    async def ask(self, request: Request, seconds: float | None) -> Mapping[str, Any]:
        """Send a request that belongs to this one to the peer, and wait for its answer.

        Args:
            request: Made by the peer's ledger.
            seconds: How long it may take; None for no limit.

        Raises:
            McpError: The peer answered with an error.
            RequestTimeout: It did not answer in time; it has been told to stop.
            ConnectionClosed: The connection ended first.
        """
        watched = nullcontext() if self.record is None else self.record.asking(request)
        with watched:
            return await self.desk.request(request, channel=self.channel, patience=seconds)

    def release(self, seconds: float) -> None:
        """Let the peer come back for the answer, where that is possible; see `Channel`."""
        if not self.answered and not self.cancelled:
            self.channel.release(seconds)

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
        if self.scope is None:
            self.abandon()
        else:
            self.scope.cancel()  # what it has asked the peer is called off before the end

    def abandon(self) -> None:
        """Expect no answer: it was cancelled, and nothing works on it any more."""
        if self.batch is None:
            self.channel.abandon()
        else:
            self.batch.add(None)
        if self.record is not None:
            self.record.cancelled()
