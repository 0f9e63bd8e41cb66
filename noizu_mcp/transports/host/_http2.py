"""HTTP/2: hypercorn's protocol on h2, bounded, and whole after whatever a client does."""

import contextlib
from collections.abc import Awaitable
from functools import partial
from math import inf
from typing import Any, Final

import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import trio
from hypercorn.events import Closed, Event, Updated
from hypercorn.protocol.events import Body, EndBody, Request, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h2 import (
    BUFFER_HIGH_WATER,
    BUFFER_LOW_WATER,
    BufferCompleteError,
    H2Protocol,
    StreamBuffer,
)
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.utils import filter_pseudo_headers

from ._crumbs import TURN, Crumbs
from ._inbox import Inbox
from ._link import Carrier, protocol_arguments, task_group
from ._options import PACE

_Codes: Final = h2.errors.ErrorCodes

#: Applications of streams that are closed already, beside those of open ones. More of them come of
#: a client that opens streams and resets them at once (CVE-2023-44487).
LEFT_OVER: Final = 100


class Http2(H2Protocol):
    """One HTTP/2 connection.

    Each stream is bounded by its own window, which opens as the application takes what came; so
    an application that takes nothing holds up its own stream only. No WebSocket, no push.

    Args:
        carrier: The connection.
    """

    #: Bytes that have come count for nothing: only a whole head does, and `h2` bounds its size.
    head_begun = False

    def __init__(self, carrier: Carrier) -> None:
        super().__init__(*protocol_arguments(carrier))
        self._carrier = carrier
        # Of the streams whose body has not come to its end.
        self._uploads: dict[int, Crumbs] = {}
        codes = h2.settings.SettingCodes
        # As hypercorn does, but for the extended CONNECT.
        self.connection.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                codes.MAX_CONCURRENT_STREAMS: carrier.config.h2_max_concurrent_streams,
                codes.MAX_HEADER_LIST_SIZE: carrier.config.h2_max_header_list_size,
            },
        )
        # hypercorn announces the limit, and h2 would keep to its own.
        self.connection.decoder.max_header_list_size = carrier.config.h2_max_header_list_size

    @property
    def unfinished(self) -> bool:
        """True while there are requests, and each still lacks a part that the client has to send.

        Where the window is full it is the application that has to take something first.
        """
        known, room = self.connection.streams, self.connection.remote_flow_control_window
        all_owe = bool(self.streams) and len(self._uploads) == len(self.streams)
        # One that was reset is not known any more, and about to be closed here, too.
        return all_owe and all(each in known and room(each) > 0 for each in self._uploads)

    async def initiate(self, *_: Any) -> None:
        """Say the first word, and start to write what streams leave to be written."""
        self.connection.initiate_connection()
        await self._flush()
        self._carrier.nursery.start_soon(self.send_task)

    async def handle(self, event: Event) -> None:
        """Take what the client sent, or its end."""
        await super().handle(event)
        if isinstance(event, Closed):
            # Whoever waits for room in the window of a stream would wait for ever.
            for buffer in self.stream_buffers.values():
                await buffer.close()

    async def resume(self) -> None:
        """Nothing is ever left to be gone through."""

    async def expire(self) -> None:
        """Nothing is said to a client that sends no request."""

    async def farewell(self) -> None:
        """Tell the client that no request will be taken any more."""
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self.connection.close_connection()
        await self._flush()

    async def stream_send(self, event: StreamEvent) -> None:
        """Take what a stream sends."""
        if isinstance(event, Body):
            for start in range(0, len(event.data), PACE):
                piece = Body(stream_id=event.stream_id, data=event.data[start : start + PACE])
                await self._within_bound(event.stream_id, super().stream_send(piece))
        elif isinstance(event, EndBody):
            await self._within_bound(event.stream_id, super().stream_send(event))
        else:
            if isinstance(event, StreamClosed):
                await self._end_abandoned(event.stream_id)
            await super().stream_send(event)

    async def _handle_events(self, events: list[h2.events.Event]) -> None:
        for number, event in enumerate(events, 1):
            if isinstance(event, h2.events.DataReceived):
                await self._take_data(event)
            elif isinstance(event, h2.events.RequestReceived):
                await self._take_request(event)
            elif not isinstance(event, h2.events.PriorityUpdated):  # RFC 9113 5.3: deprecated
                if isinstance(event, h2.events.StreamEnded):
                    self._uploads.pop(event.stream_id, None)
                elif isinstance(event, h2.events.StreamReset):
                    await self._drop_buffer(event.stream_id)
                await super()._handle_events([event])
            if number % TURN == 0:
                await trio.lowlevel.checkpoint()
        await self._flush()

    async def _take_request(self, event: h2.events.RequestReceived) -> None:
        if self._carrier.running >= self._carrier.options.max_streams + LEFT_OVER:
            self.connection.close_connection(_Codes.ENHANCE_YOUR_CALM)
            await self.send(Closed())
        elif self.context.terminated.is_set():
            self._refuse(event.stream_id, _Codes.REFUSED_STREAM)
        elif not _is_servable(event.headers):
            self._refuse(event.stream_id, _Codes.PROTOCOL_ERROR)
        else:
            await self._create_stream(event)
            await self.send(Updated(idle=False))

    async def _take_data(self, event: h2.events.DataReceived) -> None:
        stream = self.streams.get(event.stream_id)
        size = event.flow_controlled_length
        if stream is not None and self._uploads[event.stream_id].add(len(event.data)):
            await self._reset(event.stream_id, _Codes.ENHANCE_YOUR_CALM)
        elif stream is not None:
            size -= len(event.data)  # the rest is padding
            await stream.handle(Body(stream_id=event.stream_id, data=event.data))
        await self._acknowledge(event.stream_id, size)

    async def _create_stream(self, request: h2.events.RequestReceived) -> None:
        stream_id = request.stream_id
        inbox = Inbox(
            limit=inf,  # the window of the stream is the limit
            patience=self._carrier.options.body_timeout,
            wanted=_nothing,
            taken=partial(self._acknowledge, stream_id),
            late=partial(self._reset, stream_id, _Codes.CANCEL),
        )
        stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            task_group(self._carrier, inbox),
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            stream_id,
        )
        self.streams[stream_id] = stream
        self._uploads[stream_id] = Crumbs()
        self.stream_buffers[stream_id] = _Buffer(self.context.event_class)
        self.priority.insert_stream(stream_id)
        self.priority.block(stream_id)
        self.keep_alive_requests += 1
        pseudo = dict(request.headers)
        await stream.handle(
            Request(
                stream_id=stream_id,
                headers=filter_pseudo_headers(request.headers),
                http_version="2",
                method=pseudo[b":method"].decode(),
                raw_path=pseudo[b":path"],
                state=self.connection_state,
            )
        )

    async def _close_stream(self, stream_id: int) -> None:
        self._uploads.pop(stream_id, None)
        await super()._close_stream(stream_id)

    async def _acknowledge(self, stream_id: int, size: int) -> None:
        """Open the windows for as many bytes as are no longer kept."""
        if size:
            self.connection.acknowledge_received_data(size, stream_id)
            await self._flush()
            if stream_id in self._uploads:  # it may send again, and owes that
                await self.send(Updated(idle=False))

    async def _within_bound(self, stream_id: int, sending: Awaitable[None]) -> None:
        # All that is waited for in here is the window of the stream, never the socket.
        with trio.move_on_after(self._carrier.options.write_timeout) as scope:
            await sending
        if scope.cancelled_caught:
            await self._reset(stream_id, _Codes.CANCEL)

    async def _end_abandoned(self, stream_id: int) -> None:
        stream = self.streams.get(stream_id)
        if stream is not None and stream.state is not ASGIHTTPState.CLOSED:
            await self._reset(stream_id, _Codes.INTERNAL_ERROR)

    async def _drop_buffer(self, stream_id: int) -> None:
        """Forget what is to be sent: whoever waits for room in the window waits no longer."""
        with contextlib.suppress(KeyError):
            await self.stream_buffers[stream_id].close()

    async def _reset(self, stream_id: int, code: h2.errors.ErrorCodes) -> None:
        """End a stream from this side; its application sees a disconnect."""
        self._refuse(stream_id, code)
        await self._drop_buffer(stream_id)
        await self._flush()
        await self._close_stream(stream_id)
        await self._window_updated(stream_id)

    def _refuse(self, stream_id: int, code: h2.errors.ErrorCodes) -> None:
        # The client may have ended it itself, in the same bytes.
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self.connection.reset_stream(stream_id, code)


class _Buffer(StreamBuffer):
    """Bytes that wait for the window of a stream to open.

    That of hypercorn lets the application go on when the window is shut, and grows without bound.
    """

    async def push(self, data: bytes) -> None:
        if self._complete:
            raise BufferCompleteError
        self.buffer.extend(data)
        await self._is_empty.clear()
        if len(self.buffer) >= BUFFER_HIGH_WATER:
            await self._paused.clear()
            await self._paused.wait()

    async def pop(self, max_length: int) -> bytes:
        data = bytes(self.buffer[:max_length])
        del self.buffer[:max_length]
        if len(self.buffer) < BUFFER_LOW_WATER:
            await self._paused.set()
        if not self.buffer:
            await self._is_empty.set()
        return data


def _is_servable(headers: Any) -> bool:
    """Tell a request that can be put in the words of ASGI."""
    pseudo = dict(headers)
    method, path = pseudo[b":method"], pseudo.get(b":path", b"")
    return method != b"CONNECT" and method.isascii() and path.isascii() and bool(path)


async def _nothing() -> None:
    """HTTP/2 has `Expect`, too, but nobody waits for it: the window is open."""
