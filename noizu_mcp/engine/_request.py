"""One request of the peer, from its arrival to its one answer, and where its messages go.

States of a request: *open* (it has no answer yet), *answered*, *withdrawn* (the peer has cancelled
it). Nothing leaves the last two: later answers and notices of the request are dropped. A request
leaves the open state in one of two places only, `_finish` and `withdraw`. Both strike it out of
the requests in flight, so the table holds exactly the open requests, and its size is bounded by the
limit of the ledger.

Eager tasks: a handler runs in the task that read its request, for as long as it does not wait.
Starting a task for every request costs more than most handlers do (a task of trio takes about
20 µs, an echo 5 µs). So the task that reads runs the handler itself. If the handler never waits,
no task was needed. If it waits, `on_block` starts another reader, and the task is the handler's own
from then on: cancel scopes and nurseries that the handler opens stay in one task throughout, which
trio demands.
"""

import abc
import contextvars
import math
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

import trio

from .._log import seldom
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
from ._failure import split_cancellation
from ._observer import Ending, RequestObserver

Result = TypeVar("Result")

#: The rest of the work on a request, to be awaited once, in any task.
Job = Callable[[], Coroutine[Any, Any, None]]


class TaskScope:
    """A cancel scope that is entered at once, and left by the block that gets it.

    A scope costs as much as an echo (9 µs). With this one a task can read something under a
    timeout, and then run a handler under another, for the price of one scope. It must be left in
    the task that made it, and after all scopes that were entered later.

    Attributes:
        scope: The scope.
        left: True once a block has left it.
    """

    __slots__ = ("left", "scope")

    def __init__(self) -> None:
        self.left = False
        self.scope = trio.CancelScope()
        self.scope.__enter__()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self.left = True
        return self.scope.__exit__(kind, error, traceback)


@types.coroutine
def run_eager(
    work: Coroutine[Any, Any, Result], on_block: Callable[[], None]
) -> Generator[Any, Any, Result]:
    """Run a coroutine in the calling task, and report its first wait.

    Args:
        work: The handler; it gets a copy of the context variables, as a task of its own would.
        on_block: Called once, before the first wait; must not wait itself.

    Returns:
        The return value of the coroutine.
    """
    # A copy: the next handler runs in this task, too, and must not see variables of this one.
    step = contextvars.copy_context().run
    resume: Callable[[Any], Any]
    result: Result
    try:
        trap = step(work.send, None)
    except StopIteration as end:
        result = end.value
        return result
    # Before the trap reaches trio: once the task sleeps, nobody would read.
    on_block()
    while True:
        try:
            # trio sees the waits of the handler as waits of this task, so scopes and cancellation
            # work as if the task had awaited the handler itself.
            value = yield trap
        except BaseException as error:  # noqa: BLE001 - thrown into `work`, Cancelled too
            resume, value = work.throw, error
        else:
            resume = work.send
        try:
            trap = step(resume, value)
        except StopIteration as end:
            result = end.value
            return result


class Delivery:
    """A notice that has been handed on; awaiting it waits until there is room for more.

    Args:
        room: Waits for room; a checkpoint.
    """

    __slots__ = ("_room",)

    def __init__(self, room: Callable[[], Awaitable[None]]) -> None:
        self._room = room

    def __await__(self) -> Generator[Any, Any, None]:
        return self._room().__await__()


class ReplyChannel(Protocol):
    """Takes the messages of one request to the peer, in order, without waiting.

    On a pipe it is the outbox of the connection; over HTTP, the answer to one POST.
    """

    def answer(self, message: bytes, code: int | None = None, /) -> None:
        """Send the answer to the request, or the array of answers to a batch.

        Args:
            message: The answer.
            code: The error code of the answer; None for a result.
        """

    def abandon(self) -> None:
        """Expect no answer: the peer has cancelled the request."""

    def release(self, seconds: float, /) -> None:
        """Let the peer come back for the rest, where it can (2025-11-25 over HTTP).

        Args:
            seconds: Time that the peer must wait before it comes back.
        """

    def deliver(self, message: bytes) -> None:
        """Send a message that must not get lost."""

    def offer(self, message: bytes) -> None:
        """Send a message that is dropped if there is no room."""

    @property
    def has_room(self) -> bool:
        """False while too much is waiting to be written."""

    async def room(self) -> None:
        """Wait until there is room for more; a checkpoint."""


class BatchReply:
    """Gathers the answers to one array of messages into one array (2025-03-26).

    Args:
        expected: Messages of the array that will be answered or cancelled.
        channel: Takes the array.
    """

    def __init__(self, expected: int, channel: ReplyChannel) -> None:
        self._expected = expected
        self._channel = channel
        self._answers: list[bytes] = []

    def add(self, answer: bytes | None) -> None:
        """Add one answer, or None for a cancelled request; the last one sends the array."""
        self._expected -= 1
        if answer is not None:
            self._answers.append(answer)
        if self._expected == 0 and self._answers:
            self._channel.answer(encode_batch(self._answers))
        elif self._expected == 0:
            # JSON-RPC 2.0 section 6: no array at all where there is nothing to answer.
            self._channel.abandon()


class InFlight(abc.ABC):
    """The requests of one peer, or of many stateless callers, that have no answer yet.

    Attributes:
        requests: The requests by key.
        all_answered: Set once no request is open; None while nobody waits for that.
        listeners: Observers of the traffic; empty while nobody observes. Others change it.
    """

    listeners: Sequence[object] = ()

    def __init__(self) -> None:
        self.requests: dict[Any, InboundRequest] = {}
        self.all_answered: trio.Event | None = None  # while `settle` waits for it

    def strike_out(self, request: "InboundRequest") -> None:
        """Forget a request: it is answered, or withdrawn."""
        self.requests.pop(request.key, None)
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
        # A copy: each answer strikes its request out. Answered before the work is cancelled, so
        # that no handler can answer otherwise on its way out.
        for request in list(self.requests.values()):
            request.send_error(INTERNAL_ERROR, reason)
            request.stop()

    def encode_notice(self, notification: Notification) -> bytes:
        """Write a notification that is about to be sent, and show it to observers."""
        message = encode(notification)
        if self.listeners:
            self.observe_sent(notification.method, len(message))
        return message

    @abc.abstractmethod
    def observe_sent(self, method: str, size: int) -> None:
        """Observe a notification of ours. Must not raise.

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
        withdrawn: True once the peer has cancelled it: nothing may follow for its id
            (`basic/utilities/cancellation`, "Behavior Requirements").
        answered: True once its answer is sent.
        stays_open: True for a request without work that stays open until its peer ends it.
        observer: Observes it; None for nobody.
    """

    __slots__ = (
        "_left",
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
        "stays_open",
        "withdrawn",
    )

    def __init__(
        self,
        in_flight: InFlight,
        request: Request,
        envelope: Envelope,
        channel: ReplyChannel,
        *,
        key: Any = None,
        batch: BatchReply | None = None,
    ) -> None:
        self.in_flight = in_flight
        self.request = request
        self.envelope = envelope
        self.channel = channel
        self.key: Any = request.id if key is None else key
        self.batch = batch
        self.deadline = math.inf
        self.scope: trio.CancelScope | None = None
        self.withdrawn = False
        self.answered = False
        self.stays_open = False
        self.observer: RequestObserver | None = None
        self._left = math.inf

    @property
    def id(self) -> Id:
        """The id of the request."""
        return self.request.id

    # The answer

    def send_result(self, result: Mapping[str, Any] | Rendered) -> None:
        """Answer with a result; a result that is not JSON becomes an internal error."""
        try:
            answer = encode_result(self.request.id, result)
        except (ValueError, TypeError, RecursionError) as error:
            method = self.request.method
            seldom.crash(method, "the result of %s is not JSON", method, error=error)
            self.mark_ending("crashed")
            self.send_error(INTERNAL_ERROR, "Result is not JSON")
            return
        if self.observer is not None:
            self.observer.observe_result(result)
        self._finish(answer, None)

    def send_error(self, code: int, message: str, data: Any = None) -> None:
        """Answer with an error of the protocol."""
        self._finish(encode_error(ErrorResponse(self.request.id, code, message, data)), code)

    def _finish(self, answer: bytes, code: int | None) -> None:
        """Send the one answer; every request that is answered ends here."""
        # The first answer counts (JSON-RPC 2.0 section 5: one response for a request); a handler
        # may end after its timeout or shutdown has answered for it.
        if self.answered or self.withdrawn:
            return
        # Set before anything is sent: an observer or a channel may come back to this request.
        self.answered = True
        # Struck out first: the outbox writes at once if nothing else is in flight.
        self.in_flight.strike_out(self)
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

    def send_notice(self, method: str, params: Mapping[str, Any]) -> Delivery:
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

    async def run(self, work: Awaitable[None], entered: TaskScope | None = None) -> None:
        """Run the rest of the work in the calling task, until the deadline.

        Args:
            work: The work.
            entered: A scope of the task to use; None: one is made. `detach` sets its deadline.

        Raises:
            trio.Cancelled: A scope around the task was cancelled. Failures are answered and logged.
        """
        if entered is None:
            manager: AbstractContextManager[Any] = trio.CancelScope(deadline=self.deadline)
            self.scope = scope = cast(trio.CancelScope, manager)
        else:
            manager, self.scope, scope = entered, entered.scope, entered.scope
        try:
            with manager:
                await work
        except BaseException as error:
            # The scope takes `Cancelled` out of a group and lets the rest pass.
            crash, going_on = split_cancellation(error)
            if crash is None:
                raise
            method = self.request.method
            seldom.crash(method, "%s failed", method, error=crash)
            if going_on is not None:
                raise going_on from None
        if self.answered:
            self.scope = None  # as nearly always
        else:
            # Not answered: withdrawn, expired, failed, or meant to stay open.
            self.conclude(scope)

    def detach(self) -> None:
        """Start the clock of the deadline: the work waits for the first time."""
        self.expire_at(self.deadline)

    def conclude(self, scope: trio.CancelScope) -> None:
        """End the request after its work, which may have failed or been cancelled.

        Args:
            scope: The scope that surrounded the work.
        """
        self.scope = None
        if self.withdrawn:
            # Only now: no code of the handler runs any more that could send a message.
            self._abandon()
        elif self.answered or self.stays_open:
            pass
        elif scope.cancelled_caught:
            # Nothing else cancels the scope of an open request: `stop` follows an answer, and
            # `withdraw` has set `withdrawn`.
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

    def stop_clock(self) -> None:
        """Stop the clock of the deadline; `resume_clock` continues with the time left."""
        # The time that a person takes to answer is not time of the handler.
        self._left = self.deadline - trio.current_time()
        self.expire_at(math.inf)

    def resume_clock(self) -> None:
        """Let the clock of the deadline go on."""
        self.expire_at(trio.current_time() + self._left)

    def stop(self) -> None:
        """Cancel the work: the request has its answer."""
        if self.scope is not None:
            self.scope.cancel()

    # Its cancellation by the peer

    def withdraw(self) -> None:
        """End without an answer: the peer no longer wants it."""
        # Its id is free at once: 2026-07-28 `basic/index` allows an id again that no open request
        # has, and a late message for it would reach the new request.
        self.in_flight.strike_out(self)
        self.withdrawn = True
        if self.scope is None:
            self._abandon()
        else:
            # `conclude` follows once the handler has ended: it cancels its own questions to the
            # peer first, on the channel that is abandoned then.
            self.scope.cancel()

    def _abandon(self) -> None:
        if self.batch is None:
            self.channel.abandon()
        else:
            self.batch.add(None)
        if self.observer is not None:
            self.observer.observe_cancellation()
