"""The requests of one peer and of our own that have no answer yet, whatever carries them."""

import abc
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import trio

from .._errors import RequestTimeout
from ..jsonrpc import INTERNAL_ERROR, Decoded, ErrorResponse, Notification, Request, encode
from ..protocol import (
    Cancel,
    Dispatch,
    Event,
    Fanout,
    Ledger,
    Notice,
    Progress,
    Ready,
    Resolve,
    Send,
)
from ._channel import Channel, Collector, Delivery
from ._exchange import Exchange, Job
from ._failure import crashes_logged
from ._waiters import OnProgress, Waiter, Waiters
from ._watch import Watch


class Peer(Protocol):
    """The sans-IO side of a connection: `ServerPeer` or `ClientPeer`."""

    ledger: Ledger

    def receive(self, message: Decoded) -> Event | None:
        """Take one message and say what it means."""


class Handler(Protocol):
    """What a connection does with what its peer wants."""

    def handle(self, exchange: Exchange) -> Job | None:
        """Begin a request: answer it at once, or return the rest of the work. Never raises."""

    def notice(self, notification: Notification) -> None:
        """Take a notification. Never raises."""

    def ready(self) -> None:
        """The handshake is complete. Never raises."""

    def cancelled(self, exchange: Exchange) -> None:
        """A request was cancelled by its sender. Never raises."""

    def expired(self, exchange: Exchange) -> None:
        """The deadline of a request has passed: answer it. Never raises."""

    def closing(self) -> None:
        """No more messages come: end what would never end by itself. Never raises."""


class Desk(abc.ABC):
    """Takes what messages mean, runs what they ask for, and sends what comes of it.

    Args:
        peer: Knows the protocol.
        handler: Does the work.
        channel: Where messages go that belong to no request of the peer.

    Attributes:
        channel: As given.
    """

    _listeners: Sequence[object] = ()
    _watch: Watch

    def __init__(self, peer: Peer, handler: Handler, channel: Channel) -> None:
        self.channel = channel
        self._peer = peer
        self._handler = handler
        self._exchanges: dict[Any, Exchange] = {}
        self._waiters = Waiters()
        self._idle: trio.Event | None = None  # while somebody waits for it

    def watch(self, listeners: Sequence[object], watch: Watch) -> None:
        """Let something see every message, for as long as anybody listens.

        Args:
            listeners: Who listens; empty as long as nobody does. It may change at any time.
            watch: Sees the messages.
        """
        self._listeners = listeners
        self._watch = watch

    @abc.abstractmethod
    def spawn(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run something beside the requests; it is cancelled when they are."""

    def take(self, event: Event, channel: Channel, batch: Collector | None = None) -> None:
        """Do what a message means.

        Args:
            event: What it means.
            channel: Where its answer goes.
            batch: Where its answer is gathered, if it came in an array.
        """
        if isinstance(event, Dispatch):
            exchange, job = self.begin(event, channel, batch)
            if job is not None:
                self.spawn(partial(self._work, exchange, job))
        elif isinstance(event, Send):
            self._refuse(event, channel, batch)
        elif isinstance(event, Resolve):
            self._waiters.resolve(event.answer.id, event.answer)
        elif isinstance(event, Progress):
            self._waiters.progress(event.token, event.params)
        elif isinstance(event, Cancel):
            self._cancel(event)
        elif isinstance(event, Notice):
            self._handler.notice(event.notification)
        elif isinstance(event, Ready):
            self._handler.ready()
        else:
            self._fan_out(event, channel)

    def begin(
        self, event: Dispatch, channel: Channel, batch: Collector | None = None
    ) -> tuple[Exchange, Job | None]:
        """Begin a request: it is answered now, or by the rest of the work, which is returned."""
        exchange = Exchange(self, event.request, event.envelope, channel, batch)
        job = self._handler.handle(exchange)
        if not exchange.answered:
            self._exchanges[exchange.id] = exchange
        return exchange, job

    def _refuse(self, event: Send, channel: Channel, batch: Collector | None) -> None:
        answer, code = encode(event.message), None
        if isinstance(event.message, ErrorResponse):
            code = event.message.code
        if batch is None:
            channel.answer(answer, code)
        else:
            batch.add(answer)

    def _fan_out(self, fanout: Fanout, channel: Channel) -> None:
        events = [event for event in fanout.events if event is not None]
        answers = sum(isinstance(event, Dispatch | Send) for event in events)
        collector = Collector(answers, channel)
        for event in events:
            self.take(event, channel, collector)

    async def _work(self, exchange: Exchange, job: Job) -> None:
        if not exchange.cancelled:  # by a message in the same array
            await self.work(exchange, job())

    async def work(self, exchange: Exchange, work: Awaitable[None]) -> None:
        """Do the rest of the work on a request, within its deadline.

        Raises:
            trio.Cancelled: And what else must go on; what fails is answered and logged here.
        """
        exchange.scope = scope = trio.CancelScope(deadline=exchange.deadline)
        # What the scope leaves of a group: handlers answer for everything else themselves.
        with crashes_logged("%s failed", exchange.request.method), scope:
            await work
        self._conclude(exchange, scope)

    def _conclude(self, exchange: Exchange, scope: trio.CancelScope) -> None:
        exchange.scope = None
        if exchange.cancelled:
            exchange.abandon()
        elif exchange.answered or exchange.open:
            pass
        elif scope.cancelled_caught:
            self._handler.expired(exchange)
        else:
            exchange.mark("crashed")
            exchange.fail(INTERNAL_ERROR, "Request handler failed")

    def _cancel(self, event: Cancel) -> None:
        exchange = self._exchanges.get(event.id)
        if exchange is not None:
            self.drop(exchange)

    def drop(self, exchange: Exchange) -> None:
        """Stop working on a request: nobody waits for the answer any more."""
        self._peer.ledger.finish(exchange.id)
        self._exchanges.pop(exchange.id, None)
        exchange.cancel()
        self._handler.cancelled(exchange)
        self._note_idle()

    async def settle(self, grace: float) -> None:
        """Wait until every request is answered; refuse what is not within the time.

        Args:
            grace: Seconds.
        """
        with trio.move_on_after(grace):
            while self._exchanges:
                self._idle = trio.Event()
                await self._idle.wait()
        self._refuse_all("The server is shutting down")

    def _refuse_all(self, reason: str) -> None:
        for exchange in self.unanswered:
            exchange.fail(INTERNAL_ERROR, reason)
            exchange.stop()

    @property
    def unanswered(self) -> Sequence[Exchange]:
        """The requests of the peer that have no answer."""
        return list(self._exchanges.values())

    @property
    def busy(self) -> bool:
        """True while requests of the peer have no answer."""
        return bool(self._exchanges)

    def close(self, reason: str) -> None:
        """End: what has no answer is refused, and our own requests get none any more.

        Args:
            reason: What the peer reads.
        """
        self._refuse_all(reason)
        self._waiters.close()

    def finish(self, exchange: Exchange, answer: bytes, code: int | None) -> None:
        """Send the answer to a request and strike it out."""
        self._peer.ledger.finish(exchange.id)
        self._exchanges.pop(exchange.id, None)
        self._note_idle()
        if exchange.batch is None:
            exchange.channel.answer(answer, code)
        else:
            exchange.batch.add(answer)

    def _note_idle(self) -> None:
        if self._idle is not None and not self._exchanges:
            self._idle.set()

    def held(self) -> AbstractContextManager[None]:
        """Stop the timeouts of our requests while the block runs: the peer waits for us."""
        return self._waiters.held()

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notice that belongs to no request in flight."""
        self.send(Notification(method, None if params is None else dict(params)))

    def send(self, notification: Notification) -> None:
        """Send a notification that belongs to no request in flight."""
        self.channel.deliver(self.encode(notification))

    def inform(
        self, method: str, params: Mapping[str, Any], channel: Channel | None = None
    ) -> Delivery:
        """Send a notice that can do without being sent: it is dropped if there is no room."""
        channel = channel or self.channel
        channel.offer(self.encode(Notification(method, dict(params))))
        return Delivery(channel.room)

    def encode(self, notification: Notification) -> bytes:
        """Write a notification that is about to be sent, in whatever way."""
        message = encode(notification)
        if self._listeners:
            self._watch.told(notification.method, len(message))
        return message

    async def request(
        self,
        request: Request,
        *,
        channel: Channel | None = None,
        patience: float | None = None,
        on_progress: OnProgress | None = None,
        cancellable: bool = True,
    ) -> Mapping[str, Any]:
        """Send a request, made by the peer's ledger, and wait for its answer.

        Args:
            request: The request.
            channel: Where it goes, if it belongs to a request of the peer.
            patience: Seconds without answer or progress; None for no limit.
            on_progress: Called with the params of each progress notice.
            cancellable: Tell the peer when we stop waiting (not for `initialize`).

        Returns:
            The result.

        Raises:
            McpError: The peer answered with an error.
            RequestTimeout: It did not answer in time; it has been told to stop.
            ConnectionClosed: The connection ended first.
        """
        channel = channel or self.channel
        waiter = Waiter(request.method, math.inf if patience is None else patience, on_progress)
        try:
            self._waiters.add(request.id, waiter)
            channel.deliver(encode(request))
            return await waiter.wait()
        except (RequestTimeout, trio.Cancelled) as error:
            if cancellable:
                reason = "timeout" if isinstance(error, RequestTimeout) else "cancelled"
                params = {"requestId": request.id, "reason": reason}
                channel.deliver(self.encode(Notification("notifications/cancelled", params)))
            raise
        finally:
            self._waiters.discard(request.id)
            self._peer.ledger.close(request.id)
