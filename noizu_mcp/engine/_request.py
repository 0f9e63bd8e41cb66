"""One request of the peer, from its arrival to its one answer, and where its messages go.

States of a request: *open* (it has no answer yet), *answered*, *withdrawn* (the peer has cancelled
it). Nothing leaves the last two: later answers and notices of the request are dropped. A request
leaves the open state in one of two places only, `_finish` and `withdraw`. Both remove it from the
requests in flight, so that table holds exactly the open requests.
"""

import abc
import math
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import trio

from .._log import throttled_log
from .._value import JSONMapping
from ..jsonrpc import (
    INTERNAL_ERROR,
    ErrorResponse,
    Id,
    Notification,
    Rendered,
    Request,
    encode,
    encode_batch,
    encode_error,
    encode_result,
)
from ..protocol import Envelope
from ._contracts import Delivery, Ending, ReplyChannel, RequestObserver
from ._eager import TaskScope
from ._failure import split_cancellation

#: The error for an answer that cannot be held until the peer has read it.
NO_ROOM: Final = "No memory is left for the answer: ask for less, or try again later"

#: The rest of the work on a request, to be awaited once, in any task.
Job = Callable[[], Coroutine[Any, Any, None]]


class BatchReply:
    """Gathers the answers to one array of messages into one array (2025-03-26).

    Args:
        expected: Messages of the array that will be answered or cancelled.
        channel: Takes the array.

    Attributes:
        turn: Held by the request that begins. They begin one after the other, so that the loop can
            serve others in between.
    """

    def __init__(self, expected: int, channel: ReplyChannel) -> None:
        self._expected = expected
        self.turn = trio.Lock()
        self._channel = channel
        self._answers: list[bytes] = []

    def add(self, answer: bytes | None) -> None:
        """Add one answer, or None for a cancelled request; the last one sends the array."""
        self._expected -= 1
        if answer is not None:
            self._answers.append(answer)
        if self._expected == 0 and self._answers:
            array = encode_batch(self._answers)
            self._answers.clear()
            self._channel.answer(array)
        elif self._expected == 0:
            # JSON-RPC 2.0 section 6: no array at all where there is nothing to answer.
            self._channel.abandon()


class InFlight(abc.ABC):
    """The requests of one peer, or of many stateless callers, that have no answer yet.

    Args:
        methods: The methods of the requests by id, as the ledger of a connection has them; None
            where ids come from many callers.

    Attributes:
        requests: The requests by key.
        all_answered: Set once no request is open; None while `settle` does not wait for that.
        listeners: Observers of the traffic; empty while there are none. Their owner changes it.
    """

    listeners: Sequence[object] = ()

    def __init__(self, methods: dict[Id, str] | None = None) -> None:
        self.requests: dict[Id, InboundRequest] = {}
        # The table itself: `forget` runs for every request, and saves a call with it.
        self._methods = {} if methods is None else methods
        self.all_answered: trio.Event | None = None  # while `settle` waits for it

    def forget(self, request: "InboundRequest") -> None:
        """Forget a request: it is answered, or withdrawn, and its id may be used again."""
        # Called before the answer is sent, so the peer may use the id again as soon as it has it.
        self.requests.pop(request.key, None)
        self._methods.pop(request.request.id, None)  # as `Ledger.finish` does
        if self.all_answered is not None and not self.requests:
            self.all_answered.set()

    async def settle(self, grace: float) -> None:
        """Wait until every request is answered; refuse those that are not in time.

        Args:
            grace: Seconds.
        """
        with trio.move_on_after(grace):
            while self.requests:
                # A new one for each round: a request may have begun since the last was set.
                self.all_answered = trio.Event()
                await self.all_answered.wait()
        # An answer for each: without one the peer waits until its own timeout, if it has any.
        self.refuse_all("The server is shutting down")

    def refuse_all(self, reason: str) -> None:
        """Answer every open request with an error, and cancel its work.

        Args:
            reason: The text for the peer.
        """
        # A copy: each answer removes its request. Answered before the work is cancelled, so
        # that no handler can answer otherwise on its way out.
        for request in list(self.requests.values()):
            request.send_error(INTERNAL_ERROR, reason)
            request.stop()

    def withdraw_all(self) -> None:
        """Cancel the work on every open request; no answer can reach the peer."""
        for request in list(self.requests.values()):  # a copy, as above
            request.withdraw()

    def encode_notice(self, notification: Notification) -> bytes:
        """Write a notification that is about to be sent, and show it to observers."""
        message = encode(notification)
        if self.listeners:
            self.observe_sent(notification.method, len(message))
        return message

    @abc.abstractmethod
    def observe_sent(self, method: str, size: int) -> None:
        """Observe an outbound notification. Must not raise.

        Args:
            method: Its method.
            size: Bytes of its message.
        """


class InboundRequest:
    """A request of the peer.

    Exactly one answer counts, the first; after `withdraw` none does.

    Args:
        in_flight: Holds the request until it is answered.
        request: The request as received.
        envelope: Its revision, client, log level, progress token and origin.
        channel: Takes its messages.
        key: Names it among the requests in flight.
        batch: Gathers its answer, if it came in an array.

    Attributes:
        deadline: Time of its expiry on trio's clock.
        scope: Cancels its work; None while it needs no task, or has run in the reader's task.
        trio_task: The task of its work; None until that waits.
        withdrawn: True once the peer has cancelled it: nothing may follow for its id
            (`basic/utilities/cancellation`, "Behavior Requirements").
        answered: True once its answer is sent.
        observer: Observes it; None without an observer.
    """

    __slots__ = (
        "_reserved",
        "answered",
        "batch",
        "channel",
        "deadline",
        "envelope",
        "in_flight",
        "key",
        "observer",
        "request",
        "scope",
        "trio_task",
        "withdrawn",
    )

    def __init__(
        self,
        in_flight: InFlight,
        request: Request,
        envelope: Envelope,
        channel: ReplyChannel,
        *,
        key: Id | None = None,
        batch: BatchReply | None = None,
    ) -> None:
        self.in_flight = in_flight
        self.request = request
        self.envelope = envelope
        self.channel = channel
        self.key = request.id if key is None else key
        self.batch = batch
        self.deadline = math.inf
        self.scope: trio.CancelScope | None = None
        self.trio_task: trio.lowlevel.Task | None = None
        self.withdrawn = False
        self.answered = False
        self.observer: RequestObserver | None = None
        self._reserved = 0  # bytes of the answer that were counted before it was there

    @property
    def id(self) -> Id:
        """The id of the request."""
        return self.request.id

    @property
    def stays_open(self) -> bool:
        """True for a request without work that stays open until its peer ends it."""
        return False

    # The answer

    def send_result(self, result: JSONMapping | Rendered) -> None:
        """Answer with a result; a result that is not JSON becomes an internal error."""
        try:
            answer = encode_result(self.request.id, result)
        except (ValueError, TypeError, RecursionError) as error:
            method = self.request.method
            throttled_log.crash(method, "the result of %s is not JSON", method, error=error)
            self.mark_ending("crashed")
            self.send_error(INTERNAL_ERROR, "Result is not JSON")
            return
        if self.observer is not None:
            self.observer.observe_result(result)
        self._finish(answer, None)

    def send_error(self, code: int, message: str, data: object = None) -> None:
        """Answer with an error of the protocol."""
        self._finish(encode_error(ErrorResponse(self.request.id, code, message, data)), code)

    def reserve(self, size: int) -> bool:
        """Count bytes of a result that is to be encoded later.

        Returns:
            False if there is no room for them: then an error is the answer.
        """
        if not self.channel.reserve(size):
            self.send_error(INTERNAL_ERROR, NO_ROOM)
            return False
        self._reserved = size
        return True

    def _finish(self, answer: bytes, code: int | None) -> None:
        """Send the one answer; every request that is answered ends here."""
        # The first answer counts (JSON-RPC 2.0 section 5: one response for a request); a handler
        # may end after its timeout or shutdown has answered for it.
        if self.answered or self.withdrawn:
            return
        # Set before anything is sent: an observer or a channel may come back to this request.
        self.answered = True
        # Forgotten first: the outbox writes at once if nothing else is in flight.
        self.in_flight.forget(self)
        more = len(answer) - self._reserved
        if more > 0 and not self.channel.reserve(more):
            code = INTERNAL_ERROR
            answer = encode_error(ErrorResponse(self.request.id, code, NO_ROOM))
        if self.batch is None:
            self.channel.answer(answer, code)
        else:
            self.batch.add(answer)
        if self.observer is not None:
            self.observer.observe_answer(len(answer), code)

    def mark_ending(self, ending: Ending) -> None:
        """Tell the observer how the request is about to end, where the answer does not tell."""
        if self.observer is not None:
            self.observer.mark(ending)

    # Messages beside the answer

    def send_notice(self, method: str, params: JSONMapping) -> Delivery:
        """Send a notice that belongs to this request; after its answer it is dropped.

        Progress must stop with the answer (`basic/utilities/progress`, "Behavior Requirements").
        """
        if not self.answered and not self.withdrawn:
            notice = self.in_flight.encode_notice(Notification(method, dict(params)))
            self.channel.offer(notice)
        # Also for a dropped notice: a handler that reports in a loop must reach a checkpoint.
        return Delivery(self.channel.room)

    def release(self, seconds: float) -> None:
        """Let the peer come back for the answer, where that is possible; see `ReplyChannel`."""
        if not self.answered and not self.withdrawn:
            self.channel.release(seconds)

    # Its work, and its time

    async def run(
        self, job: Job, entered: TaskScope, on_wait: Callable[[], object] | None = None
    ) -> None:
        """Do the rest of the work in the calling task, until the deadline.

        Args:
            job: The work.
            entered: The scope of the task that runs this method; entered, and left, here.
            on_wait: Called before the work waits for the first time.

        Raises:
            trio.Cancelled: A scope around the task was cancelled. Failures are answered and logged.
        """
        self.scope = scope = entered.enter()

        def detach() -> None:
            # Not earlier: a scope with a deadline costs more, and most handlers never wait.
            self.expire_at(self.deadline)
            self.trio_task = trio.lowlevel.current_task()
            if on_wait is not None:
                on_wait()

        entered.on_wait = detach
        try:
            with entered:
                await job()
        except BaseException as error:
            # The scope takes `Cancelled` out of a group and lets the rest pass.
            crash, going_on = split_cancellation(error)
            if crash is None:
                raise
            method = self.request.method
            throttled_log.crash(method, "%s failed", method, error=crash)
            if going_on is not None:
                raise going_on from None
        finally:
            entered.on_wait = None
            # As `leave_scope`.
            self.scope = None
            if self.withdrawn:
                self._abandon()
        if not self.answered:
            # Not answered: withdrawn, expired, failed, or meant to stay open.
            self.conclude(scope)

    def leave_scope(self) -> None:
        """Note that the work has ended, also if the task around it is cancelled."""
        # If only that task was cancelled, `withdraw` must not wait for the handler.
        self.scope = None
        if self.withdrawn:
            # Only now: the handler can send no more messages.
            self._abandon()

    def conclude(self, scope: trio.CancelScope) -> None:
        """Answer the request after its work, which may have failed or been cancelled.

        Args:
            scope: The scope that surrounded the work.
        """
        if self.withdrawn or self.answered or self.stays_open:
            return
        if scope.cancelled_caught:
            # By the deadline: `stop` follows an answer, and `withdraw` has set `withdrawn`.
            self.expire()
        else:
            self.mark_ending("crashed")
            self.send_error(INTERNAL_ERROR, "Request handler failed")

    def expire(self) -> None:
        """Answer: the deadline has passed."""
        self.mark_ending("timed_out")
        self.send_error(INTERNAL_ERROR, "Request timed out")

    def expire_at(self, deadline: float) -> None:
        """Move the deadline, also while the work runs; on trio's clock."""
        self.deadline = deadline
        if self.scope is not None:
            self.scope.deadline = deadline

    def stop(self) -> None:
        """Cancel the work: the request has its answer."""
        if self.scope is not None:
            self.scope.cancel()
        else:
            # The handler may run in the task that read its request, and has not waited yet.
            self.deadline = -math.inf

    def detach(self, scope: trio.CancelScope) -> None:
        """Leave the calling task and its scope to the work, which is about to wait.

        Args:
            scope: The scope around everything that the work has done.
        """
        self.scope = scope
        self.trio_task = trio.lowlevel.current_task()
        # Not needed earlier: work that has not waited could not have been cancelled.
        scope.deadline = self.deadline

    # Its cancellation by the peer

    def mark_withdrawn(self) -> None:
        """Record that the peer no longer wants it, while its work ends by itself."""
        self.withdrawn = True

    def withdraw(self) -> None:
        """End without an answer: the peer no longer wants it."""
        # Its id is free at once: 2026-07-28 `basic/index` allows an id again that no open request
        # has, and a late message for it would reach the new request.
        self.in_flight.forget(self)
        self.withdrawn = True
        if self.scope is None:
            self._abandon()
        else:
            # `leave_scope` follows once the handler has ended: it cancels its own questions to the
            # peer first, on the channel that is abandoned then.
            self.scope.cancel()

    def _abandon(self) -> None:
        if self.batch is None:
            self.channel.abandon()
        else:
            self.batch.add(None)
        if self.observer is not None:
            self.observer.observe_cancellation()
