"""The client's end of a connection: its requests, and the server's requests and notifications.

Requests of the server are answered in separate tasks. Notifications are passed to the handler one
at a time, in order, through a queue that drops the oldest if the handler is too slow.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Final, Protocol, Required, TypedDict, Unpack

import attrs
import trio

from .._errors import ConnectionClosed, McpError, ProtocolError
from .._value import JSON
from ..engine import (
    Arrival,
    BatchReply,
    Dispatcher,
    InboundRequest,
    Job,
    MessageLoop,
    MessageStream,
    Outgoing,
    ReplyChannel,
    SessionEnded,
    crashes_logged,
    logger,
)
from ..jsonrpc import Id, Notification, Request, Response, encode
from ..protocol import ACKNOWLEDGED, CHANGES, RESOURCE_UPDATED, ClientPeer, Dispatch, Revision
from ..types import META_SUBSCRIPTION_ID, Implementation, ServerCapabilities
from ._answers import Answerer, ClientSide
from ._renewal import Renewal

#: Maximum notifications that wait for the handler; then the oldest is dropped and logged.
MAX_NOTICES: Final = 1000
#: Seconds for the handler to process the remaining ones at the end of the connection.
NOTICE_TIMEOUT: Final = 1.0


@attrs.frozen
class Progress:
    """A progress notification of a running call.

    Attributes:
        progress: The progress so far; it increases with each notification.
        total: The progress at the end; None if unknown.
        message: A description of the current step, or None.
    """

    progress: float
    total: float | None = None
    message: str | None = None


class ExchangeOptions(TypedDict, total=False):
    """Options of `ClientSession.exchange`."""

    patience: Required[float]
    progress: Callable[[Progress], object] | None
    extensions: Iterable[str]
    arrived: Arrival | None


class Negotiated(Protocol):
    """The facts about a server that the negotiation found; `Client` has these attributes."""

    server_info: Implementation
    capabilities: ServerCapabilities
    instructions: str | None


class ClientSession(Dispatcher):
    """The client's end of a connection.

    Args:
        stream: Carries the messages.
        side: The client's side.

    Attributes:
        limits: The limits of the connection.
        renewal: Begins a new session when the server has ended the previous one.
        watched: URIs of resources to which the client has subscribed, in order.
        observers: Called with each notification before it is queued for the handler; must not
            raise.
    """

    def __init__(self, stream: MessageStream, side: ClientSide) -> None:
        self.mirrored = stream.mirrored
        self.limits = side.limits
        self.peer = ClientPeer(side.info, side.capabilities, side.limits.in_flight)
        super().__init__(self.peer)
        self.loop = MessageLoop(stream, self, side.limits)
        self.answerer = Answerer(side, self.pending)
        self.renewal = Renewal()
        self.watched: dict[str, None] = {}
        self.observers: list[Callable[[Notification], object]] = []
        self._stream = stream
        self._handler = side.handler
        # One thread: notifications are handled one at a time, in order.
        self._thread = trio.CapacityLimiter(1)
        # Requests of `call` only: `initialize` must not be cancelled (2025-11-25
        # `basic/utilities/cancellation`).
        self._running: set[Id] = set()
        self._ended = trio.Event()
        self._listens: set[Id] = set()
        self._unacknowledged: dict[Id, Callable[[Mapping[str, object]], object]] = {}
        self._send_notice, self._notices = trio.open_memory_channel[Notification](MAX_NOTICES)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the connection until it is stopped or the server ends it."""
        try:
            async with trio.open_nursery() as delivering:
                delivering.start_soon(self._deliver)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.renewal.run, self._stream)
                    await self.loop.run(grace=0, task_status=task_status)
                    nursery.cancel_scope.cancel()
                # Nothing is added to the queue from here on: its end is the end of the task.
                # Notifications before the last answer are delivered, even if the block ends at
                # once.
                self._send_notice.close()
                delivering.cancel_scope.deadline = trio.current_time() + NOTICE_TIMEOUT
        finally:
            self._ended.set()

    def opened(self, client: Negotiated) -> AbstractContextManager[None]:
        """Surround the use of the connection, from the negotiation to its end, for listeners.

        Args:
            client: The client.
        """
        return nullcontext()

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None,
        **options: Unpack[ExchangeOptions],
    ) -> Mapping[str, object]:
        """Send a request and wait for its answer, in a new session if the current one has ended.

        Args:
            method: The method.
            params: The params; `_meta` of the revision is added.
            **options: Options of `exchange`.

        Returns:
            The result.

        Raises:
            McpError: The server answered with an error.
            RequestTimeout: It did not answer, or no new session began, in time.
            AuthError: No new session began: the server requires other credentials.
            TransportError: No new session began: the server cannot be reached.
            ConnectionClosed: The connection ended, or the new session ended, too.
        """
        # A request that finds that its session has ended was not processed, so it can be repeated;
        # no other error allows that. Only once: a server may end every session at once.
        may_repeat = not self.renewal.is_lost
        while True:
            if self.renewal.is_lost:
                await self.renewal.renew(options["patience"])
            # Read before the request is sent: it identifies the session of the request.
            generation = self.renewal.generation
            try:
                return await self.exchange(method, params, **options)
            except SessionEnded as error:
                if not may_repeat:
                    text = "the session is over, and so is the one that began in its place"
                    raise ConnectionClosed(f"{text}: {error}") from error
                self.renewal.lose(generation)
                may_repeat = False

    async def exchange(
        self,
        method: str,
        params: Mapping[str, object] | None,
        *,
        patience: float,
        progress: Callable[[Progress], object] | None = None,
        extensions: Iterable[str] = (),
        arrived: Arrival | None = None,
    ) -> Mapping[str, object]:
        """Send a request in the current session and wait for its answer.

        Args:
            method: The method.
            params: The params; `_meta` of the revision is added.
            patience: Seconds without an answer or progress.
            progress: Called with each progress notification.
            extensions: The ids of extensions that this request declares in addition to the
                client (2026-07-28).
            arrived: The event of the waiting task; see `Dispatcher.send_request`.

        Raises:
            SessionEnded: The session has ended, and the request was not processed.
            BaseException: See `call`.
        """
        request = self.peer.request(
            method, params, progress=progress is not None, extensions=extensions
        )
        self._running.add(request.id)
        try:
            return await self.send_request(
                request,
                patience=patience,
                on_progress=None if progress is None else partial(_report, progress),
                arrived=arrived,
            )
        finally:
            self._running.discard(request.id)

    @property
    def credentials(self) -> Hashable:
        """The credentials of the last messages; see `MessageStream`."""
        return self._stream.credentials

    def observe_gaps(self, tell: Callable[[], object]) -> None:
        """Call a function whenever notifications may have been lost; see `MessageStream`."""
        self._stream.observe_gaps(tell)

    async def leave(self) -> None:
        """End the connection gracefully; requests that still run in other tasks are cancelled.

        Those tasks raise `ConnectionClosed`. The server is notified, since over HTTP it does not
        see the end of a connection, and would continue (2025-11-25 `basic/transports`).
        """
        # `initialize` is never in the set: it must not be cancelled.
        for id_ in self._running:
            params = {"requestId": id_, "reason": "the connection ends"}
            self.notify("notifications/cancelled", params)
        self.loop.stop()
        await self._ended.wait()

    async def wait_ended(self) -> None:
        """Wait until the connection has ended, for any reason."""
        await self._ended.wait()

    async def _deliver(self) -> None:
        async for notice in self._notices:
            with crashes_logged("handle_notification failed for %s", notice.method):
                args = (notice.method, notice.params or {})
                await self._handler.call("handle_notification", *args, limiter=self._thread)

    def drop_questions(self) -> None:
        """Drop open requests of the server when a session ends; ids restart in the next session."""
        for request in list(self.requests.values()):
            request.withdraw()

    async def restore(self, seconds: float) -> None:
        """Restore the log level and the subscriptions of the previous session in a new one.

        A refusal of the server is logged. Changes of the resources between the sessions were lost,
        so the handler is notified of each resource as if it had changed.

        Args:
            seconds: Timeout of each request in seconds.

        Raises:
            RequestTimeout: The server does not answer.
            ConnectionClosed: The connection ended, or this session, too.
            TransportError: The server cannot be reached.
        """
        if self.peer.log_level is not None:
            await self._ask_again("logging/setLevel", {"level": self.peer.log_level}, seconds)
        for uri in tuple(self.watched):
            await self._ask_again("resources/subscribe", {"uri": uri}, seconds)
            self.report_changes((), (uri,))

    async def _ask_again(self, method: str, params: Mapping[str, object], seconds: float) -> None:
        try:
            await self.send_request(self.peer.request(method, params), patience=seconds)
        except McpError as error:
            logger.warning("%s was not restored in a new session: %s", method, error)

    # engine.Dispatcher

    def encode_request(self, request: Request, revision: Revision | None) -> bytes:
        """Encode a request; see `Dispatcher`."""
        data = encode(request)
        if self.mirrored is None:
            return data
        return Outgoing(data, request, revision or self.peer.revision)

    def encode_notice(self, notification: Notification) -> bytes:
        """Encode a notification; see `InFlight`."""
        data = super().encode_notice(notification)
        return data if self.mirrored is None else Outgoing(data, notification, self.peer.revision)

    def spawn(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run something beside the requests; see `InFlight`."""
        self.loop.spawn(work)

    def begin(
        self, event: Dispatch, channel: ReplyChannel, batch: BatchReply | None = None
    ) -> tuple[InboundRequest, Job | None]:
        """Begin a request of the server; see `Dispatcher`."""
        request, envelope = event
        inbound = InboundRequest(self, request, envelope, channel, batch=batch)
        # Before the task starts, so that a cancellation right after the request finds it.
        self.requests[request.id] = inbound

        async def respond() -> None:
            try:
                # The call during which the server asks waits for this answer: the time of a person
                # must not use up the timeouts of the client's requests.
                with self.hold_timeouts():
                    answer = await self.answerer.answer(request.method, request.params or {})
                inbound.send_result(answer)
            except McpError as error:
                inbound.send_error(error.code, error.message, error.data)

        return inbound, respond

    def observe_sent(self, method: str, size: int) -> None:
        """Do nothing: a session with listeners is a `RecordedSession`; see `InFlight`."""

    async def listen(
        self, request: Request, acknowledged: Callable[[Mapping[str, object]], object]
    ) -> None:
        """Send a listen request and keep it open until the server ends it.

        Args:
            request: The request.
            acknowledged: Called with the kinds of notification that the server agreed to send.

        Raises:
            McpError: The server refused.
            ProtocolError: It ended the request without acknowledging it.
        """
        self._listens.add(request.id)
        self._unacknowledged[request.id] = acknowledged
        try:
            await self.send_request(request)
            if request.id in self._unacknowledged:
                raise ProtocolError("subscriptions/listen ended without an acknowledgement")
        finally:
            self._listens.discard(request.id)
            self._unacknowledged.pop(request.id, None)

    def _acknowledge(self, params: Mapping[str, object]) -> None:
        meta, agreed = params.get("_meta"), params.get("notifications")
        id_ = meta.get(META_SUBSCRIPTION_ID) if isinstance(meta, Mapping) else None
        # The client's ids are integers. `True` is an integer in Python, and equals the id 1.
        if type(id_) is int and id_ in self._unacknowledged:
            acknowledged = self._unacknowledged.pop(id_)
            acknowledged(agreed if isinstance(agreed, Mapping) else {})

    def report_changes(self, kinds: Iterable[str], uris: Iterable[str] = ()) -> None:
        """Handle a notification for each list and each resource: real ones may have been lost.

        Args:
            kinds: The lists; names in `CHANGES`.
            uris: The URIs of the resources.
        """
        for kind in kinds:
            self.receive_notice(Notification(CHANGES[kind][0], None))
        for uri in uris:
            self.receive_notice(Notification(RESOURCE_UPDATED, {"uri": uri}))

    def receive_notice(self, notification: Notification) -> None:
        """Show a notification to the observers, and queue it for the handler."""
        if notification.method == ACKNOWLEDGED:
            self._acknowledge(notification.params or {})
            return
        id_ = (notification.params or {}).get("requestId")
        if notification.method == "notifications/cancelled" and id_ in self._listens:
            # The server ends a listen request like this, by a result, or by both (2026-07-28
            # `basic/patterns/cancellation` and `basic/patterns/subscriptions`).
            self.pending.resolve(id_, Response(id_, {}))
        # A copy: an observer may be removed.
        for observe in tuple(self.observers):
            observe(notification)
        if not self._handler.overrides("handle_notification"):
            return  # the base class ignores all of them
        # The reader must not wait for a slow handler, and memory is bounded: the oldest is dropped.
        try:
            self._send_notice.send_nowait(notification)
        except trio.WouldBlock:
            oldest = self._notices.receive_nowait()
            logger.warning("dropped %s: the handler is too slow", oldest.method)
            self._send_notice.send_nowait(notification)


def _report(progress: Callable[[Progress], object], params: Mapping[str, JSON]) -> None:
    progress(Progress(params["progress"], params.get("total"), params.get("message")))
