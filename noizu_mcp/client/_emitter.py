"""Telemetry of a client: events for its requests, the server's requests, and the connection.

Without listeners `ClientSession` is used; nothing of this module is run or loaded.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from .._value import JSONObject
from ..engine import MessageStream
from ..events import (
    MAX_TEXT,
    Event,
    EventEmitter,
    EventKind,
    Outcome,
    Telemetry,
    next_key,
    read_trace,
)
from ..jsonrpc import Batch, Decoded, Notification, Request
from ..protocol import NAMED_BY, PeerEvent
from ..transports import LineStream, MemoryStream
from ._answers import Answerer, ClientSide
from ._session import ClientSession, Negotiated


class RecordedSession(ClientSession):
    """A `ClientSession` that emits events for requests of both sides and notifications.

    Args:
        stream: See `ClientSession`.
        side: See `ClientSession`.
        telemetry: The listeners.
        carrier: The stream of the transport, which `stream` may wrap.
    """

    def __init__(
        self,
        stream: MessageStream,
        side: ClientSide,
        telemetry: Telemetry,
        carrier: MessageStream,
    ) -> None:
        super().__init__(stream, side)
        self.telemetry = telemetry
        self.listeners = telemetry.listeners
        self.answerer = _RecordedAnswerer(self, side)
        self._key = next_key()
        self._label = f"client-{self._key}"
        self._transport = _transport_of(carrier)
        self._client: Negotiated | None = None

    def event(self, kind: EventKind, method: str = "") -> Event:
        """Make an event of this connection."""
        revision = self.peer.revision
        client = self._client
        return Event(
            kind,
            next_key(),
            method[:MAX_TEXT],
            self._transport,
            parent=self._key,
            revision=None if client is None else revision.name,
            session=None if revision.stateless else self._label,
            server=None if client is None else client.server_info.name[:MAX_TEXT],
        )

    @contextmanager
    def opened(self, client: Negotiated) -> Iterator[None]:
        """Emit the start and the end of the connection.

        Args:
            client: The client, after the negotiation.
        """
        self._client = client
        self._emit("opened")
        began = perf_counter()
        try:
            yield
        finally:
            self._emit("closed", perf_counter() - began)

    def _emit(self, kind: EventKind, duration: float | None = None) -> None:
        event = self.event(kind)._replace(key=self._key, parent=None, duration=duration)
        self.telemetry.emit(event)

    async def restore(self, seconds: float) -> None:
        """Restore the state of the previous session, and emit the renewal; see `ClientSession`."""
        self._emit("renewed")
        await super().restore(seconds)

    async def send_request(self, request: Request, **options: Any) -> Mapping[str, object]:
        """Send a request, and record it; see `Dispatcher`."""
        params = request.params or {}
        # Every value may have any type here: `Client.request` sends what it is given.
        name = params.get(NAMED_BY.get(request.method, ""))
        name = name[:MAX_TEXT] if isinstance(name, str) else None
        is_uri = request.method.startswith("resources/")
        event = self.event("start", request.method)._replace(
            outbound=True,
            request_id=request.id,
            name=name,
            target=None if is_uri else name,
        )
        emitter = EventEmitter(self.telemetry, event)
        with emitter.recorded(), self.telemetry.around(event):
            carried = self.telemetry.trace_context(event)
            own = params.get("_meta", {})
            if carried and isinstance(own, Mapping):
                # The caller's trace has priority.
                meta = {**carried, **own}
                request = request._replace(params={**params, "_meta": meta})
            result = await super().send_request(request, **options)
            emitter.end(_outcome_of(request, result))
        return result

    def observe_received(self, message: Decoded, event: PeerEvent | None, size: int | None) -> None:
        """Emit the event of a notification; see `Dispatcher`."""
        if isinstance(message, Batch):
            for each in message.messages:
                self.observe_received(each, None, None)
        elif isinstance(message, Notification):
            notice = self.event("notice", message.method)
            self.telemetry.emit(notice._replace(bytes_in=size))

    def observe_sent(self, method: str, size: int) -> None:
        """Emit the event of a notification that was sent; see `InFlight`."""
        notice = self.event("notice", method)
        self.telemetry.emit(notice._replace(outbound=True, bytes_out=size))


class _RecordedAnswerer(Answerer):
    """An `Answerer` that records each request.

    Args:
        session: The session.
        side: See `Answerer`.
    """

    def __init__(self, session: RecordedSession, side: ClientSide) -> None:
        super().__init__(side, session.pending)
        self._session = session

    async def answer(self, method: str, params: JSONObject) -> JSONObject:
        """Answer one request, and record it; see `Answerer`."""
        session = self._session
        meta = params.get("_meta")
        trace = read_trace(meta if isinstance(meta, Mapping) else {})
        event = session.event("start", method)._replace(trace=trace)
        emitter = EventEmitter(session.telemetry, event)
        with emitter.recorded(), session.telemetry.around(event):
            return await super().answer(method, params)


def _outcome_of(request: Request, result: Mapping[str, object]) -> Outcome:
    if result.get("resultType") == "input_required":
        return "input_required"
    failed = request.method == "tools/call" and result.get("isError") is True
    return "tool_error" if failed else "ok"


def _transport_of(stream: MessageStream) -> str:
    if isinstance(stream, LineStream):
        return "stdio"
    if isinstance(stream, MemoryStream):
        return "memory"
    # Only HTTP streams have headers.
    return "other" if stream.mirrored is None else "http"
