"""One connection: a reader, the applications of its requests, and its deadlines."""

from math import inf
from typing import Final, cast

import trio
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h11 import H2ProtocolAssumedError
from hypercorn.typing import ConnectionState, WorkerContext

from ._application import Application, Endpoint
from ._config import HostConfig
from ._http1 import Http1
from ._http2 import Http2
from ._options import PACE, HostOptions
from ._places import Places
from ._wire import Wire


class Connection:
    """Carries a protocol of hypercorn from a wire to an application, as its `TCPServer` does.

    The reader waits for the client with a deadline that moves: for a whole head, or for the next
    request. While requests are being answered it waits without one, for the client's end.

    Args:
        app: The application.
        config: The settings of hypercorn.
        options: Those of the host.
        context: Tells the protocols that the host ends.
        wire: The bytes; closed at the end.
        client: Who it is.
        server: What it is connected to.
        places: Where it has a place, until the client has left or was left.

    Attributes:
        running: Applications that have not returned.
    """

    def __init__(
        self,
        *,
        app: Application,
        config: HostConfig,
        options: HostOptions,
        context: WorkerContext,
        wire: Wire,
        client: Endpoint,
        server: Endpoint,
        places: "Places[Connection]",
    ) -> None:
        self.app = app
        self.config = config
        self.options = options
        self.context = context
        self.secure = wire.secure
        self.client = client
        self.server = server
        self.state = ConnectionState({})
        self.running = 0
        self.nursery: trio.Nursery
        self._wire: Final = wire
        self._places: Final = places
        self._protocol: Http1 | Http2
        self._reading = trio.CancelScope()
        self._due = inf
        self._head_begun = False
        self._stopped = False
        self._finished = False
        self._left = False
        self._woken = False
        self._receiving = False
        self._quiet = 0.0  # seconds that the rest of a request is late

    async def run(self) -> None:
        """Serve the client until one of both ends it, and every application has returned."""
        try:
            if await self._wire.open():
                await self._serve()
        finally:
            self._close()

    def end(self) -> None:
        """Close at once if it is idle; else it closes after the answers that are under way."""
        if self._due < inf:
            self.stop()

    def drop(self) -> None:
        """Close at once, without a word."""
        self._wire.close()
        self.stop()

    def stop(self) -> None:
        """Read no other request, and end the connection when what is said has gone out."""
        self._stopped = True
        self._reading.cancel()

    def wake(self) -> None:
        """Let the reader go on with what it has read already."""
        self._woken = True
        self._reading.cancel()

    async def deliver(self, event: Event) -> None:
        """Take what the protocol sends: bytes, its end, whether it is idle."""
        if isinstance(event, RawData):
            await self._wire.send(event.data)
            if self._wire.broken:
                await self._protocol.handle(Closed())
        elif isinstance(event, Closed):
            self._finished = True
            self.stop()
            await self._protocol.handle(event)
        else:
            self._set_idle(idle=cast(Updated, event).idle)
            self._note_waiting(receiving=self._receiving)

    @property
    def is_free(self) -> bool:
        """True while nothing is being written, and `write` writes."""
        return self._wire.is_free

    def write(self, data: bytes) -> int:
        """Write what the system takes at once, while the wire is free; returns how much that is."""
        return self._wire.write(data)

    async def _serve(self) -> None:
        async with trio.open_nursery() as self.nursery:
            self._protocol = Http2(self) if self._wire.protocol == "h2" else Http1(self)
            self._set_idle(idle=True)
            self._wait_for_head()
            await self._protocol.initiate()
            await self._read()
            if self._stopped:
                await self._protocol.farewell()
            await self._protocol.handle(Closed())
            await self._leave()
            # Applications may go on, be it for hours: nothing of the client is kept for them.
            self._close()

    async def _leave(self) -> None:
        """Let what is said go out, then end the connection."""
        if self._left:
            # It may have ended its side only, and still take what was said to it by then.
            await self._wire.flush()
            return
        self._places.set_idle(self, idle=True)
        if self._due == inf and not self._finished:  # a body was given up
            with trio.CancelScope() as self._reading:  # until the application says so
                await self._wire.skip()
        if self._due == inf or self._finished:
            await self._wire.linger()

    def _close(self) -> None:
        self._wire.close()
        self._places.remove(self)

    async def _read(self) -> None:
        """Feed the protocol until the client ends the connection, or has to be waited for."""
        while not self._stopped:
            if not self._woken:
                data = await self._receive()
                if data is not None:
                    await self._feed(data)
                    if data:
                        continue
                    self._left = True
                    return
            if not self._woken:
                await self._expire()
                return
            self._woken = False
            await self._protocol.resume()

    async def _receive(self) -> bytes | None:
        """Wait for the client; None if that was ended by the clock, or by somebody else."""
        data, began, owing = None, trio.current_time(), self._protocol.unfinished
        self._note_waiting(receiving=True)
        with trio.CancelScope(deadline=self._due) as self._reading:
            data = await self._wire.receive()
        self._note_waiting(receiving=False)
        # A byte now and then is worth next to nothing: a place costs a client more than that.
        worth = len(data or b"") * self.options.body_timeout / PACE
        late = self._quiet + trio.current_time() - began - worth
        self._quiet = max(0.0, late) if owing else 0.0
        if data == b"":
            # An application that was started by the last bytes answers before it hears of the end.
            await trio.lowlevel.checkpoint()
        return data

    def _note_waiting(self, *, receiving: bool) -> None:
        # While nothing is received, it is the application that takes its time with a body.
        self._receiving = receiving
        waiting = receiving and self._protocol.unfinished
        self._places.set_waiting(self, trio.current_time() - self._quiet if waiting else None)

    async def _expire(self) -> None:
        if not self._stopped:
            self._stopped = True
            await self._protocol.expire()

    async def _feed(self, data: bytes) -> None:
        try:
            await self._protocol.handle(RawData(data))
        except H2ProtocolAssumedError as error:
            # HTTP/2 with prior knowledge (RFC 9113 3.3).
            self._protocol = Http2(self)
            await self._protocol.initiate()
            await self._protocol.handle(RawData(error.data))
        if self._due < inf and not self._head_begun and self._protocol.head_begun:
            self._wait_for_head()

    def _set_idle(self, *, idle: bool) -> None:
        self._places.set_idle(self, idle=idle)
        if not idle:
            self._due = inf
        elif self.context.terminated.is_set():
            self.stop()
        else:
            self._head_begun = False
            self._due = self._reading.deadline = (
                trio.current_time() + self.options.keep_alive_timeout
            )

    def _wait_for_head(self) -> None:
        self._head_begun = True
        self._due = trio.current_time() + self.options.header_timeout
