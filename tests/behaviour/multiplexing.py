"""HTTP/2 for the client of the tests, without two defects of httpcore2 2.16.

In the library a task waits for a lock while another one reads from the network. It keeps waiting
when its own event has arrived, if a third task gets the lock first: with three streams a response
may come late or never. And the library does not reset a stream that is closed before its end, so
that the server cannot know that a request was cancelled.
"""

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import trio
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from httpcore2._async.http2 import AsyncHTTP2Connection


class Connection(AsyncHTTP2Connection):
    """A connection in which each arrival wakes every task."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._is_reading = False
        self._waiting = trio.lowlevel.ParkingLot()

    async def _receive_stream_event(self, request: Any, stream_id: int) -> Any:
        while not self._events.get(stream_id):
            await self._receive_more(request, stream_id)
        return await super()._receive_stream_event(request, stream_id)

    async def _wait_for_outgoing_flow(self, request: Any, stream_id: int) -> int:
        while self._h2_state.local_flow_control_window(stream_id) <= 0:
            await self._receive_more(request, None)
        return await super()._wait_for_outgoing_flow(request, stream_id)

    async def _receive_more(self, request: Any, stream_id: int | None) -> None:
        if self._is_reading:
            await self._waiting.park()
            return
        self._is_reading = True
        try:
            await self._receive_events(request, stream_id)
        finally:
            self._is_reading = False
            self._waiting.unpark_all()
        await self._write_outgoing_data(request)

    async def _response_closed(self, stream_id: int) -> None:
        with suppress(ProtocolError, OSError, trio.BrokenResourceError):
            self._h2_state.reset_stream(stream_id, ErrorCodes.CANCEL)
            await self._write_outgoing_data(SimpleNamespace(extensions={}))
        await super()._response_closed(stream_id)
