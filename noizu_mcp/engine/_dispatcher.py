"""Routing of the messages of one peer, on any transport.

Both ends of a connection derive from `Dispatcher`. It knows no feature: a request is passed to
`begin`, a notification to `receive_notice`, an answer to the waiting task. `take` never waits and
never raises, so one message cannot delay or end later ones. The tables are bounded: the ledger
limits the requests of the peer, and each outbound request has a waiting task.
"""

import abc
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, Protocol

import trio

from .._errors import RequestTimeout
from .._value import JSONMapping
from ..jsonrpc import Decoded, ErrorResponse, Notification, Request, encode
from ..protocol import (
    CancelRequest,
    Dispatch,
    Fanout,
    Ledger,
    Notice,
    PeerEvent,
    Ready,
    ReportProgress,
    Resolve,
    Revision,
    SendAnswer,
)
from ._contracts import ReplyChannel
from ._eager import TaskScope
from ._pending import Arrival, OnProgress, PendingRequest, PendingRequests
from ._request import BatchReply, InboundRequest, InFlight, Job

#: Seconds to wait for the end of the stream after the peer has stopped accepting messages.
LAST_WORDS: Final = 1.0


class Peer(Protocol):
    """The sans-IO side of a connection: `ServerPeer` or `ClientPeer`."""

    ledger: Ledger

    def receive(self, message: Decoded) -> PeerEvent | None:
        """Convert a message to its event; None for an ignored message."""


class Dispatcher(InFlight):
    """Handles the messages of one peer, and sends requests and notifications to it.

    Args:
        peer: The protocol state.

    Attributes:
        channel: Sends messages that belong to no request of the peer; set before the first message.
        size: Bytes of the current message; None if unknown.
        decide: Converts a message to its event; see `Peer.receive`.
        pending: Outbound requests without an answer.
        ledger: The ids of requests of both sides; `open` makes an outbound request.
    """

    channel: ReplyChannel
    size: int | None = None

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer.ledger.methods)
        self.pending = PendingRequests()
        self.ledger = peer.ledger
        self.decide = peer.receive

    # Hooks of the two ends. They must not raise: they run in the task that reads, and an exception
    # there would end the connection with all its requests.

    @abc.abstractmethod
    def spawn(self, work: Callable[[], Awaitable[object]]) -> object:
        """Run something beside the requests, until they end."""

    @abc.abstractmethod
    def begin(
        self, event: Dispatch, channel: ReplyChannel, batch: BatchReply | None = None
    ) -> tuple[InboundRequest, Job | None]:
        """Begin a request: answer it at once, or return the rest of the work.

        An unanswered request must be in `requests` afterwards.

        Args:
            event: The request.
            channel: Sends its answer.
            batch: Collects its answer instead, if it came in a batch.
        """

    @abc.abstractmethod
    def receive_notice(self, notification: Notification) -> None:
        """Act on a notification."""

    def complete_handshake(self) -> None:
        """Record that the client has sent `notifications/initialized`."""

    def end_subscriptions(self) -> None:
        """End requests that would never end by themselves: no more messages will come."""

    def observe_received(self, message: Decoded, event: PeerEvent | None, size: int | None) -> None:
        """Observe a message and its event, before it is handled.

        Args:
            message: The message.
            event: Its event.
            size: Its bytes; None if unknown.
        """

    # Messages of the peer

    def take(
        self, event: PeerEvent, channel: ReplyChannel, batch: BatchReply | None = None
    ) -> None:
        """Handle a message.

        Args:
            event: Its event.
            channel: Sends its answer.
            batch: Collects its answer instead, if it came in a batch.
        """
        # First, since for a client nearly every message is an answer.
        if isinstance(event, Resolve):
            # The ledger has dropped late and forged answers already.
            self.pending.resolve(event.answer.id, event.answer)
        elif isinstance(event, Dispatch):
            request, job = self.begin(event, channel, batch)
            if job is not None:
                # In another task: the later messages of this batch must not wait for its handler.
                turn = trio.Lock() if batch is None else batch.turn
                self.spawn(partial(_work_later, request, job, turn))
        elif isinstance(event, SendAnswer):
            # A refusal, or the answer to a ping: no handler is needed.
            _answer(event, channel, batch)
        elif isinstance(event, ReportProgress):
            self.pending.report_progress(event.token, event.params)
        elif isinstance(event, CancelRequest):
            # An answered request is ignored (2025-11-25
            # `basic/utilities/cancellation`, "Error Handling").
            request_ = self.requests.get(event.id)
            if request_ is not None:
                request_.withdraw()
        elif isinstance(event, Notice):
            self.receive_notice(event.notification)
        elif isinstance(event, Ready):
            self.complete_handshake()
        else:
            self._fan_out(event, channel)

    def _fan_out(self, fanout: Fanout, channel: ReplyChannel) -> None:
        """Handle each message of a batch; their answers are sent as one batch (2025-03-26)."""
        # Ignored messages and notifications have no answer in the batch.
        events = [event for event in fanout.events if event is not None]
        answers = sum(isinstance(event, Dispatch | SendAnswer) for event in events)
        # Counted before the first message is handled: an answer may be ready at once, and must not
        # be taken for the last one.
        batch = BatchReply(answers, channel)
        for event in events:
            self.take(event, channel, batch)

    # Messages to the peer

    def encode_request(self, request: Request, revision: Revision | None) -> bytes:
        """Encode a request that is about to be sent; see `send_request` for the arguments."""
        del revision  # every message of a connection goes the same way
        return encode(request)

    def notify(self, method: str, params: JSONMapping | None = None) -> None:
        """Send a notification that belongs to no request in flight."""
        notice = Notification(method, None if params is None else dict(params))
        self.channel.deliver(self.encode_notice(notice))

    def hold_timeouts(self) -> AbstractContextManager[None]:
        """Stop the timeouts of outbound requests while the block runs: the peer is waiting."""
        return self.pending.hold_timeouts()

    def pause_timeouts(self) -> AbstractContextManager[None]:
        """Stop the timeouts of outbound requests and their maximum; see `PendingRequests`."""
        return self.pending.pause_timeouts()

    async def send_request(
        self,
        request: Request,
        *,
        channel: ReplyChannel | None = None,
        patience: float | None = None,
        on_progress: OnProgress | None = None,
        cancellable: bool = True,
        arrived: Arrival | None = None,
        revision: Revision | None = None,
    ) -> JSONMapping:
        """Send a request, made by the peer's ledger, and wait for its answer.

        With an asyncio event, an asyncio task in the thread of the trio loop may call it. It waits
        only for this event.

        Args:
            request: The request.
            channel: Sends it, if it belongs to a request of the peer.
            patience: Seconds without an answer or progress; None for no limit.
            on_progress: Called with the params of each progress notification.
            cancellable: Notify the peer if the wait ends early; `initialize` must not be cancelled
                (2025-11-25 `basic/utilities/cancellation`).
            arrived: The event of the waiting task; None for a trio task.
            revision: The revision of the request; None for the revision of the connection.

        Returns:
            The result.

        Raises:
            McpError: The peer answered with an error.
            RequestTimeout: It did not answer in time, and was notified.
            ConnectionClosed: The connection ended first.
        """
        channel = channel or self.channel
        seconds = math.inf if patience is None else patience
        pending = PendingRequest(request.method, seconds, on_progress, arrived)
        try:
            # Added before it is sent: in memory the answer may arrive at once.
            self.pending.add(request.id, pending, self.spawn)
            channel.deliver(self.encode_request(request, revision))
            if channel.is_broken:
                # No answer can arrive. If the stream ends soon, its end says more.
                self.pending.note_unsent(pending, LAST_WORDS, self.spawn)
            return await pending.wait()
        except BaseException as error:
            # Without a notification the peer would go on in vain (2025-11-25 `basic/lifecycle`,
            # "Timeouts"). Sent without a checkpoint, which would raise in a cancelled task.
            timed_out = isinstance(error, RequestTimeout)
            # Anything that is not an `Exception` cancels the wait, in trio or asyncio.
            if cancellable and (timed_out or not isinstance(error, Exception)):
                reason = "timeout" if timed_out else "cancelled"
                params = {"requestId": request.id, "reason": reason}
                notice = Notification("notifications/cancelled", params)
                channel.deliver(self.encode_notice(notice))
            raise
        finally:
            # From here on the ledger drops a late answer: it may cross with the cancellation
            # (2025-11-25 `basic/utilities/cancellation`).
            self.pending.discard(request.id)
            self.ledger.close(request.id)

    def close(self, reason: str) -> None:
        """Refuse every open request, and wake all tasks that wait for the peer.

        Args:
            reason: The text for the peer.
        """
        # The answers are sent before this side's waiting tasks wake up: those may be parts of the
        # refused handlers, and must not answer first.
        self.refuse_all(reason)
        self.pending.close()


async def _work_later(request: InboundRequest, job: Job, turn: trio.Lock) -> None:
    async with turn:  # only orders the starts; see `BatchReply`
        pass
    if not request.withdrawn:  # by a message of the same batch
        task = TaskScope()
        await task.run(request.run(job, task))


def _answer(event: SendAnswer, channel: ReplyChannel, batch: BatchReply | None) -> None:
    answer = encode(event.message)
    # Over HTTP the code decides the status (2026-07-28 `basic/transports/streamable-http`).
    code = event.message.code if isinstance(event.message, ErrorResponse) else None
    if batch is None:
        channel.answer(answer, code)
    else:
        batch.add(answer)
