"""Routing of the messages of one peer, on any transport.

Both ends of a connection derive from `Dispatcher`. It knows no feature: a request goes to `begin`,
a notification to `receive_notice`, an answer to the task that waits for it. `take` never waits and
never raises, so one message cannot delay or end the messages behind it. The tables are bounded: the
ledger limits the requests of the peer, and each outbound request is held by a waiting task.
"""

import abc
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Protocol

import trio

from .._errors import RequestTimeout
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

#: Seconds to wait for the end of the stream of a peer that takes no more messages.
LAST_WORDS: Final = 1.0


class Peer(Protocol):
    """The sans-IO side of a connection: `ServerPeer` or `ClientPeer`."""

    ledger: Ledger

    def receive(self, message: Decoded) -> PeerEvent | None:
        """Turn a message into its event; None for a message that is ignored."""


class Dispatcher(InFlight):
    """Takes the messages of one peer, and sends requests and notifications to it.

    Args:
        peer: Knows the protocol.

    Attributes:
        channel: Takes messages that belong to no request of the peer; set before any message.
        size: Bytes of the message that is being taken; None if they are not known.
        decide: Turns a message into its event; see `Peer.receive`.
        pending: Outbound requests that have no answer yet.
    """

    channel: ReplyChannel
    size: int | None = None

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer.ledger.methods)
        self.pending = PendingRequests()
        self._ledger = peer.ledger
        self.decide = peer.receive

    # Hooks of the two ends. They must not raise: they run in the task that reads, and an exception
    # there would end the connection with every other request on it.

    @abc.abstractmethod
    def spawn(self, work: Callable[[], Awaitable[object]]) -> object:
        """Run something beside the requests, until they end."""

    @abc.abstractmethod
    def begin(
        self, event: Dispatch, channel: ReplyChannel, batch: BatchReply | None = None
    ) -> tuple[InboundRequest, Job | None]:
        """Begin a request: answer it at once, or return the rest of the work.

        A request that has no answer yet must stand in `requests` afterwards.

        Args:
            event: The request.
            channel: Takes its answer.
            batch: Gathers its answer instead, if it came in an array.
        """

    @abc.abstractmethod
    def receive_notice(self, notification: Notification) -> None:
        """Act on a notification."""

    def complete_handshake(self) -> None:
        """Note that the client has sent `notifications/initialized`."""

    def end_subscriptions(self) -> None:
        """End requests that would never end by themselves: no more messages come."""

    def observe_received(self, message: Decoded, event: PeerEvent | None, size: int | None) -> None:
        """Observe a message and its meaning, before it is acted on.

        Args:
            message: The message.
            event: Its meaning.
            size: Its bytes; None if they are not known.
        """

    # Messages of the peer

    def take(
        self, event: PeerEvent, channel: ReplyChannel, batch: BatchReply | None = None
    ) -> None:
        """Act on a message.

        Args:
            event: Its meaning.
            channel: Takes its answer.
            batch: Gathers its answer instead, if it came in an array.
        """
        # First, since for a client nearly every message is one.
        if isinstance(event, Resolve):
            # The ledger has dropped late and forged answers already.
            self.pending.resolve(event.answer.id, event.answer)
        elif isinstance(event, Dispatch):
            request, job = self.begin(event, channel, batch)
            if job is not None:
                # A task of its own: the messages behind this one in an array must not wait for its
                # handler.
                turn = trio.Lock() if batch is None else batch.turn
                self.spawn(partial(_work_later, request, job, turn))
        elif isinstance(event, SendAnswer):
            # A refusal, or the answer to a ping: the peer has decided, no handler is needed.
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
        """Act on each message of an array; their answers travel as one array (2025-03-26)."""
        # Ignored messages and notifications have no place in the array of answers.
        events = [event for event in fanout.events if event is not None]
        answers = sum(isinstance(event, Dispatch | SendAnswer) for event in events)
        # Counted before the first message is acted on: an answer may come at once, and must not be
        # taken for the last one.
        batch = BatchReply(answers, channel)
        for event in events:
            self.take(event, channel, batch)

    # Messages to the peer

    def encode_request(self, request: Request, revision: Revision | None) -> bytes:
        """Write a request that is about to be sent; `send_request` explains the arguments."""
        del revision  # every message of a connection goes the same way
        return encode(request)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification that belongs to no request in flight."""
        notice = Notification(method, None if params is None else dict(params))
        self.channel.deliver(self.encode_notice(notice))

    def hold_timeouts(self) -> AbstractContextManager[None]:
        """Stop the timeouts of our requests while the block runs: the peer waits for us."""
        return self.pending.hold_timeouts()

    def pause_timeouts(self) -> AbstractContextManager[None]:
        """Stop the timeouts of our requests and their maximum: see `PendingRequests`."""
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
    ) -> Mapping[str, Any]:
        """Send a request, made by the peer's ledger, and wait for its answer.

        With an event of asyncio, a task of asyncio may call it that runs in the thread of the trio
        loop. It waits for nothing but this event.

        Args:
            request: The request.
            channel: Takes it, if it belongs to a request of the peer.
            patience: Seconds without answer or progress; None for no limit.
            on_progress: Called with the params of each progress notice.
            cancellable: Tell the peer when we stop waiting; `initialize` must not be cancelled
                (2025-11-25 `basic/utilities/cancellation`).
            arrived: The event of the waiting task; None: a task of trio waits.
            revision: The revision that the request is written in; None: that of the connection.

        Returns:
            The result.

        Raises:
            McpError: The peer answered with an error.
            RequestTimeout: It did not answer in time; it has been told to stop.
            ConnectionClosed: The connection ended first.
        """
        channel = channel or self.channel
        seconds = math.inf if patience is None else patience
        pending = PendingRequest(request.method, seconds, on_progress, arrived)
        try:
            # Entered before it is sent: in memory the answer may be there at once.
            self.pending.add(request.id, pending, self.spawn)
            channel.deliver(self.encode_request(request, revision))
            if channel.is_broken:
                # No answer can come to it. The end of the stream says more, if it is near.
                self.pending.note_unsent(pending, LAST_WORDS, self.spawn)
            return await pending.wait()
        except BaseException as error:
            # Without a notice the peer would work for nothing (2025-11-25 `basic/lifecycle`,
            # "Timeouts"). Delivered without a checkpoint: in a cancelled task that would raise.
            timed_out = isinstance(error, RequestTimeout)
            # All that is no `Exception` cancels the wait, of trio or of asyncio.
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
            self._ledger.close(request.id)

    def close(self, reason: str) -> None:
        """Refuse every open request, and wake all that wait for the peer.

        Args:
            reason: The text for the peer.
        """
        # The answers are sent before our own waiting tasks wake: those may be parts of the handlers
        # that are refused, and must not answer first.
        self.refuse_all(reason)
        self.pending.close()


async def _work_later(request: InboundRequest, job: Job, turn: trio.Lock) -> None:
    async with turn:  # which only puts the beginnings in a row; see `BatchReply`
        pass
    if not request.withdrawn:  # by a message of the same array
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
