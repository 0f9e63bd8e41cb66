"""HTTP/1.1: hypercorn's protocol on h11, in fewer writes and with fewer ways to be misread."""

from functools import partial
from typing import Final, cast

import h11
import trio
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Body, EndBody, Request, Response
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import STREAM_ID, H2ProtocolAssumedError, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.typing import ASGISendEvent, H11SendableEvent, TaskGroup

from ._crumbs import TURN, Crumbs
from ._head import BAD_REQUEST, head_fault
from ._inbox import Inbox
from ._link import Carrier, protocol_arguments, task_group
from ._options import PACE
from ._target import Headers, origin_form

_VERSIONS: Final = (b"1.1", b"1.0")
# An application that fails before it has sent a byte of a body has not answered yet.
_FAILED: Final = b"HTTP/1.1 500 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\n"
#: RFC 9110 15.5.9 and 15.6.6.
_REQUEST_TIMEOUT: Final = 408
_VERSION_NOT_SUPPORTED: Final = 505


class Http1(H11Protocol):
    """One HTTP/1.1 connection.

    What an answer consists of is written at its end, or when the application says that more will
    come: one write for most. WebSocket and h2c are not offered: `Upgrade` is ignored, as a server
    may (RFC 9110 7.8); an upgrade is a way around the rules of a proxy.

    Args:
        carrier: The connection.
    """

    connection: h11.Connection

    def __init__(self, carrier: Carrier) -> None:
        super().__init__(*protocol_arguments(carrier))
        self._carrier = carrier
        self._refused = False
        self._pending: list[bytes] = []
        self._head_pending = False
        self._crumbs = Crumbs()
        self._late = False

    @property
    def head_begun(self) -> bool:
        """True while a part of a head has come, and not all of it."""
        return bool(self.connection.trailing_data[0])

    @property
    def unfinished(self) -> bool:
        """True while a request lacks a part that the client has to send."""
        connection = self.connection
        return (
            connection.their_state is h11.SEND_BODY
            and not connection.they_are_waiting_for_100_continue
        )

    async def handle(self, event: Event) -> None:
        """Take what the client sent, or its end."""
        if isinstance(event, RawData):
            self.connection.receive_data(event.data)
            await self.resume()
            while self._is_full():
                await self.can_read.clear()
                await self.can_read.wait()
                await self.resume()
        else:
            self._refused = True
            await self.can_read.set()
            await self._close_stream()

    async def resume(self) -> None:
        """Go through what was received, as far as the request that is being answered lets it."""
        taken = 0
        while not self._refused:
            if (status := self._fault()) is not None:
                await self._refuse(status)
                return
            try:
                event = self.connection.next_event()
            except h11.RemoteProtocolError as error:
                await self._refuse(error.error_status_hint)
                return
            if not isinstance(event, h11.Request | h11.Data | h11.EndOfMessage):
                return  # no more data, or more than may be looked at by now
            await self._take(event)
            taken += 1
            if taken % TURN == 0:
                await trio.lowlevel.checkpoint()

    async def expire(self) -> None:
        """Answer a head that took too long."""
        if self.head_begun:
            await self._refuse(_REQUEST_TIMEOUT)

    async def farewell(self) -> None:
        """Nothing is to be said at the end."""

    async def end_application(self) -> None:
        """Say that the body took too long, if the application has not."""
        if self._late:
            await self._refuse(_REQUEST_TIMEOUT)

    async def stream_send(self, event: StreamEvent) -> None:
        """Take what a stream sends."""
        if isinstance(event, Response):
            self._head_pending = True
            if self.context.terminated.is_set():
                event.headers.append((b"connection", b"close"))
        await super().stream_send(event)
        if isinstance(event, EndBody):
            await self.flush()

    async def flush(self) -> None:
        """Write what is pending."""
        if self._pending:
            data = b"".join(self._pending)
            self._pending.clear()
            self._head_pending = False
            await self.send(RawData(data))

    def _write_nowait(self, number: int, data: bytes) -> int | None:
        """Write a part of an answer at once; see `WRITE_NOWAIT`.

        Args:
            number: Which request of the connection it answers.
            data: The part.
        """
        answers = number == self.keep_alive_requests and self.stream is not None
        ready = self.connection.our_state is h11.SEND_BODY and not self._pending
        if not (answers and ready and self._carrier.is_free):
            return None
        part = self.connection.send(h11.Data(data=data))
        rest = part[self._carrier.write(part) :]
        self._pending += [rest] if rest else []
        return len(rest)

    def _fault(self) -> int | None:
        if self.connection.their_state is not h11.IDLE:
            return None
        return head_fault(self.connection.trailing_data[0], self.config.h11_max_incomplete_size)

    def _is_full(self) -> bool:
        # What is sent ahead of its turn is kept, so that the end of the connection is seen, but
        # not without a bound: h11 watches no sizes by then.
        return not self._refused and len(self.connection.trailing_data[0]) > PACE

    async def _take(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        if isinstance(event, h11.Request):
            start = (event.method, event.target, event.http_version)
            if start == (b"PRI", b"*", b"2.0") and self.keep_alive_requests == 0:
                raise H2ProtocolAssumedError(_PREFACE + self.connection.trailing_data[0])
            if event.http_version not in _VERSIONS:
                await self._refuse(_VERSION_NOT_SUPPORTED)
            else:
                await self._take_request(event)
        elif isinstance(event, h11.Data) and self._crumbs.add(
            len(event.data), pieces=int(event.chunk_start)
        ):
            await self._refuse(BAD_REQUEST)
        else:  # a stream is open until nothing is read any more
            await cast(Http1Stream, self.stream).handle(_stream_event(event))

    async def _take_request(self, request: h11.Request) -> None:
        read = origin_form(request.target, list(request.headers))
        if read is None:
            await self._refuse(BAD_REQUEST)
        else:
            await self._open_stream(request, *read)

    async def _open_stream(self, request: h11.Request, target: bytes, headers: Headers) -> None:
        await self.send(Updated(idle=False))
        self._crumbs = Crumbs()
        inbox = Inbox(
            limit=PACE,
            patience=self._carrier.options.body_timeout,
            wanted=self._continue,
            taken=_nothing,
            late=self._give_up,
        )
        self.keep_alive_requests += 1
        quick = partial(self._write_nowait, self.keep_alive_requests)
        tasks = task_group(self._carrier, inbox, None if request.method == b"HEAD" else quick)
        self.stream = Http1Stream(self, tasks)
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=headers,
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii"),
                raw_path=target,
                state=self.connection_state,
            )
        )

    async def _continue(self) -> None:
        # Only now: an application that refuses a request by its headers is spared the body.
        if self.connection.they_are_waiting_for_100_continue:
            await self._send_h11_event(h11.InformationalResponse(status_code=100, headers=[]))
            await self.flush()
            await self.send(Updated(idle=False))  # from now on the client owes the body

    async def _give_up(self) -> None:
        """Stop waiting for a body; the application may still say so."""
        self._late = True
        await self.handle(Closed())
        self._carrier.stop()

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        try:
            data = self.connection.send(event)
        except h11.LocalProtocolError:
            if self.connection.their_state is not h11.ERROR:
                raise
        else:
            self._pending += [data] if data else []

    async def _maybe_recycle(self) -> None:
        if self._head_pending and self.connection.our_state is h11.SEND_BODY:
            self._pending = [_FAILED]
        await self.flush()
        await super()._maybe_recycle()
        if self.head_begun:
            self._carrier.wake()

    async def _refuse(self, status: int) -> None:
        """Answer what is no request, where an answer is possible, and listen no more."""
        self._refused = True
        self._pending.clear()
        if self.connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send_error_response(status)
            await self.flush()
        await self.send(Closed())


class Http1Stream(HTTPStream):
    """One request and its answer.

    Args:
        protocol: The connection's.
        tasks: Starts the application.
    """

    def __init__(self, protocol: Http1, tasks: TaskGroup) -> None:
        super().__init__(
            protocol.app,
            protocol.config,
            protocol.context,
            tasks,
            protocol.ssl,
            protocol.client,
            protocol.server,
            protocol.stream_send,
            STREAM_ID,
        )
        self._protocol: Final = protocol

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """Take what the application sends; whatever is not the last of it goes out at once."""
        await super().app_send(message)
        if message is not None and message.get("more_body"):
            await self._protocol.flush()
            # Else an application that streams to a quick client would keep the loop to itself.
            await trio.lowlevel.checkpoint()
        elif message is None:
            await self._protocol.end_application()


def _stream_event(event: h11.Data | h11.EndOfMessage) -> StreamEvent:
    if isinstance(event, h11.Data):
        return Body(stream_id=STREAM_ID, data=bytes(event.data))
    return EndBody(stream_id=STREAM_ID)


async def _nothing(_size: int) -> None:
    """HTTP/1.1 keeps no account of what was taken."""
