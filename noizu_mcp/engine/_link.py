"""Drives a peer over a stream: one nursery, one reader, one writer, at most a task a request."""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Protocol, cast

import trio

from .._errors import RequestTimeout
from .._limits import Limits
from ..jsonrpc import (
    INTERNAL_ERROR,
    Decoded,
    Notification,
    Oversized,
    Request,
    decode,
    encode,
    too_large,
)
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
from ._abc import MessageStream
from ._exchange import Collector, Delivery, Exchange
from ._failure import crashes_logged, split
from ._leader import run_leading
from ._log import logger
from ._outbox import Outbox
from ._waiters import OnProgress, Waiter, Waiters

#: Seconds to write what is left once everything else has ended; a peer that reads needs far less.
DRAIN_TIMEOUT: Final = 2.0
#: Seconds that a peer may leave a full outbox unread before the connection is given up.
STALL_TIMEOUT: Final = 60.0
#: Messages taken in a row before other tasks get their turn and the answers are written.
MAX_STREAK: Final = 100

#: The rest of the work on a request, to be run in a task of its own.
Job = Callable[[], Coroutine[Any, Any, None]]


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


class Link:
    """One connection.

    Args:
        stream: Carries the messages; closed when `run` ends.
        peer: Knows the protocol.
        handler: Does the work.
        limits: The limits of the connection.

    Attributes:
        outbox: What waits to be written.
    """

    def __init__(self, stream: MessageStream, peer: Peer, handler: Handler, limits: Limits) -> None:
        self.outbox = Outbox(stream, limits.outbox)
        self._stream = stream
        self._peer = peer
        self._handler = handler
        self._limits = limits
        self._exchanges: dict[Any, Exchange] = {}
        self._waiters = Waiters()
        self._inbox: deque[bytes | Oversized] = deque()
        self._reader: trio.CancelScope | None = None
        self._ended = trio.Event()
        self._idle = trio.Event()
        self._in_chunk = False
        self._nursery: trio.Nursery

    async def run(
        self,
        *,
        grace: float = 5.0,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the connection until the peer ends it, or `stop` is called.

        Then: no more reading; what runs gets `grace` seconds; what still runs is cancelled and
        answered with an error; what is queued is written; the stream is closed.

        Args:
            grace: Seconds.
            task_status: Started once requests can be sent.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.outbox.write)
                try:
                    await self._serve(grace, task_status)
                finally:
                    nursery.cancel_scope.cancel()
        finally:
            self._waiters.close()
            self.outbox.close()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + DRAIN_TIMEOUT):
                await self._stream.aclose()

    async def _serve(self, grace: float, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            self._nursery.start_soon(self._lead)
            await self._ended.wait()
            self._waiters.close()
            self._handler.closing()
            await self._finish(grace)
            self._nursery.cancel_scope.cancel()
        with trio.move_on_after(DRAIN_TIMEOUT):
            await self.outbox.drain()

    async def _finish(self, grace: float) -> None:
        with trio.move_on_after(grace):
            while self._exchanges:
                self._idle = trio.Event()
                await self._idle.wait()
        for exchange in list(self._exchanges.values()):
            exchange.fail(INTERNAL_ERROR, "The server is shutting down")

    def held(self) -> AbstractContextManager[None]:
        """Stop the timeouts of our requests while the block runs: the peer waits for us."""
        return self._waiters.held()

    def spawn(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run something beside the requests; it is cancelled when they are."""
        self._nursery.start_soon(work)

    def lead_on(self) -> None:
        """Start a task that reads from here on."""
        self.spawn(self._lead)

    def stop(self) -> None:
        """Take no more messages and let `run` end in order."""
        self._ended.set()
        if self._reader is not None:
            self._reader.cancel()

    async def _lead(self) -> None:
        """Read, and run handlers until one waits; then another task takes over from here."""
        turn = _Turn(self)
        try:
            with turn.scope:
                await self._take_turn(turn)
        except BaseException as error:
            crash, going_on = split(error)
            if turn.current is None or crash is None:
                raise
            logger.error("%s failed", turn.current.request.method, exc_info=crash)
            if going_on is not None:
                raise going_on from None
            if turn.exchange is None:
                turn.hand_over()  # the messages behind the one that failed must still be read
        if turn.exchange is not None:
            self._conclude(turn.exchange, turn.scope)

    async def _take_turn(self, turn: "_Turn") -> None:
        while not self._ended.is_set():
            self._in_chunk = True
            for _ in range(min(len(self._inbox), MAX_STREAK)):
                work = self._receive(self._inbox.popleft(), turn)
                if work is not None:
                    await run_leading(work, turn.hand_over)
                    if turn.exchange is not None:
                        return
            self._in_chunk = False
            self.outbox.flush_now()
            if self._inbox:
                await trio.lowlevel.checkpoint()
            else:
                turn.current = None  # what fails from here on is not the fault of a request
                await self._fill_inbox(turn.scope)
        # What the last turn left to this one.
        self._in_chunk = False
        self.outbox.flush_now()

    async def _fill_inbox(self, scope: trio.CancelScope) -> None:
        messages: Sequence[bytes | Oversized] = ()
        self._reader = scope
        try:
            if await self._has_room():
                messages = await self._stream.receive()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer is gone, or whoever made the stream closed it: both are its end
        finally:
            self._reader = None
        self._inbox.extend(messages)
        if not messages:
            self._ended.set()

    async def _has_room(self) -> bool:
        """Wait until the peer has taken enough of what is waiting for it; False if it never does.

        While there is no room nothing is read, not even the end of the stream: a peer that has
        stopped reading must not hold the connection for ever.
        """
        if not self.outbox.has_room:
            with trio.move_on_after(STALL_TIMEOUT):
                await self.outbox.room()
        return self.outbox.has_room

    def _receive(self, data: bytes | Oversized, turn: "_Turn") -> Coroutine[Any, Any, None] | None:
        """Take one message; what is returned is the rest of the work on it."""
        if isinstance(data, Oversized):
            message: Decoded = too_large(data.head, self._limits)
        else:
            message = decode(data, self._limits)
        event = self._peer.receive(message)
        if isinstance(event, Dispatch):
            turn.current, job = self._begin(event, None)
            return None if job is None else job()
        if event is not None:
            self._take(event, None)
        return None

    def _take(self, event: Event, batch: Collector | None) -> None:
        if isinstance(event, Dispatch):
            exchange, job = self._begin(event, batch)
            if job is not None:
                self.spawn(partial(self._work, exchange, job))
        elif isinstance(event, Send):
            self._gathered(batch, encode(event.message))
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
            self._fan_out(event)

    def _fan_out(self, fanout: Fanout) -> None:
        events = [event for event in fanout.events if event is not None]
        answers = sum(isinstance(event, Dispatch | Send) for event in events)
        collector = Collector(answers)
        for event in events:
            self._take(event, collector)

    def _begin(self, event: Dispatch, batch: Collector | None) -> tuple[Exchange, Job | None]:
        exchange = Exchange(self, event.request, event.envelope, batch)
        job = self._handler.handle(exchange)
        if not exchange.answered:
            self._exchanges[exchange.id] = exchange
        return exchange, job

    async def _work(self, exchange: Exchange, job: Job) -> None:
        if exchange.cancelled:
            return  # by a message in the same array
        exchange.scope = scope = trio.CancelScope(deadline=exchange.deadline)
        # What the scope leaves of a group: handlers answer for everything else themselves.
        with crashes_logged("%s failed", exchange.request.method), scope:
            await job()
        self._conclude(exchange, scope)

    def _conclude(self, exchange: Exchange, scope: trio.CancelScope) -> None:
        if exchange.answered or exchange.cancelled or exchange.open:
            return
        if scope.cancelled_caught:
            self._handler.expired(exchange)
        else:
            exchange.fail(INTERNAL_ERROR, "Request handler failed")

    def _cancel(self, event: Cancel) -> None:
        exchange = self._exchanges.pop(event.id, None)
        if exchange is not None:
            exchange.cancel()
            self._handler.cancelled(exchange)
            self._note_idle()

    def answer(self, exchange: Exchange, answer: bytes) -> None:
        """Send the answer to a request and strike it out."""
        self._peer.ledger.finish(exchange.id)
        self._exchanges.pop(exchange.id, None)
        self._note_idle()
        self._gathered(exchange.batch, answer)

    def _note_idle(self) -> None:
        if not self._exchanges:
            self._idle.set()

    def _gathered(self, batch: Collector | None, answer: bytes) -> None:
        if batch is None:
            self.outbox.put(answer)
            self.flush()
        else:
            self.gather(batch, answer)

    def gather(self, batch: Collector, answer: bytes | None) -> None:
        """Add an answer to those of its array; the last one sends the array."""
        whole = batch.add(answer)
        if whole is not None:
            self.outbox.put(whole)
            self.flush()

    def flush(self) -> None:
        """Write what is queued: now, if nothing else is in flight; else together with the rest.

        Writing at once saves a task switch when a peer asks one thing at a time; leaving it to
        the writer saves a system call an answer when it asks many.
        """
        if self._in_chunk:
            return
        if self._exchanges:
            self.outbox.flush_soon()
        else:
            self.outbox.flush_now()

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notice that belongs to no request in flight."""
        self.send(Notification(method, None if params is None else dict(params)))

    def inform(self, method: str, params: Mapping[str, Any]) -> Delivery:
        """Send a notice that can do without being sent: it is dropped if there is no room."""
        self.outbox.put(encode(Notification(method, dict(params))), droppable=True)
        self.flush()
        return Delivery(self.outbox)

    def send(self, notification: Notification) -> None:
        """Send a notification."""
        self.outbox.put(encode(notification))
        self.flush()

    async def request(
        self,
        request: Request,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - progress starts it again
        on_progress: OnProgress | None = None,
        cancellable: bool = True,
    ) -> Mapping[str, Any]:
        """Send a request, made by the peer's ledger, and wait for its answer.

        Args:
            request: The request.
            timeout: Seconds without answer or progress; None for no limit.
            on_progress: Called with the params of each progress notice.
            cancellable: Tell the peer when we stop waiting (not for `initialize`).

        Returns:
            The result.

        Raises:
            McpError: The peer answered with an error.
            RequestTimeout: It did not answer in time; it has been told to stop.
            ConnectionClosed: The connection ended first.
        """
        waiter = Waiter(request.method, math.inf if timeout is None else timeout, on_progress)
        try:
            self._waiters.add(request.id, waiter)
            self.outbox.put(encode(request))
            self.flush()
            return await waiter.wait()
        except (RequestTimeout, trio.Cancelled) as error:
            if cancellable:
                reason = "timeout" if isinstance(error, RequestTimeout) else "cancelled"
                params = {"requestId": request.id, "reason": reason}
                self.notify("notifications/cancelled", params)
            raise
        finally:
            self._waiters.discard(request.id)
            self._peer.ledger.close(request.id)


class _Turn:
    """The time in which one task leads: it reads until a handler that it runs waits.

    Attributes:
        scope: Around all of it. A handler that waits takes it over as its own: so a handler that
            never waits, as most do, costs neither a task nor a scope.
        current: The request whose handler runs.
        exchange: The request whose handler waited; it ended the turn.
    """

    __slots__ = ("_link", "current", "exchange", "scope")

    def __init__(self, link: Link) -> None:
        self.scope = trio.CancelScope()
        self.current: Exchange | None = None
        self.exchange: Exchange | None = None
        self._link = link

    def hand_over(self) -> None:
        """Let another task lead; this one belongs to the current handler from here on."""
        exchange = self.exchange = cast(Exchange, self.current)
        exchange.scope = self.scope
        self.scope.deadline = exchange.deadline
        self._link.lead_on()
