"""Flows of a simulated network: messages between objects, and bytes through a relay for TCP.

Theory of operation. A connection has two *flows*, one for each direction. A server in memory is
connected by two flows of messages. Each message has a time of arrival, drawn when it is sent: never
before an earlier message of the same stream. A stream is one request with its answer and its
notifications, as over HTTP, where each request has its own connection. Messages of no request, such
as the notification that ends a handshake, keep their place among all messages; without `reorder`,
all messages do. `receive` waits for the earliest arrival, so no task is needed, and on a virtual
clock no time passes. A URL is reached through a relay: each TCP connection has two flows of bytes,
cut into pieces, each with its own delay.

A flow ends gracefully (`end`: messages in transit arrive, then the end) or breaks (`cut`: messages
in transit are lost, and both sides see a broken connection). The two flows of a connection break
together. Other connections continue, so that over HTTP a client can return.
"""

import heapq
import itertools
import json
import math
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Final, Literal, Protocol
from urllib.parse import urlsplit

import attrs
import trio

from .._errors import TargetError
from .._limits import CLIENT_LIMITS, Limits
from .._value import JSON
from ..engine import MessageStream, single_failure
from ..jsonrpc import Received, read_message
from ..server import Server, serve
from ._references import references

#: One side of a connection.
FlowEnd = Literal["client", "server"]

#: Maximum messages in transit in one direction before the sender waits.
_CAPACITY: Final = 1000
#: Maximum bytes that a relay reads at once, and the pieces into which it cuts them.
_CHUNK: Final = 64 * 1024
_PIECES: Final = 3


@attrs.frozen(eq=False)
class DrawnFaults:
    """The faults of one connection, drawn one after the other.

    Attributes:
        random: The generator.
        delay: Seconds: the minimum and the maximum.
        drop: The probability that a message, or a piece, breaks the connection.
        reorder: True if messages of different requests may overtake each other.
    """

    random: Random
    delay: tuple[float, float]
    drop: float
    reorder: bool

    def draw_delay(self) -> float:
        """Draw the seconds that a message takes."""
        return self.random.uniform(*self.delay)

    def draw_drop(self) -> bool:
        """Draw whether a message breaks the connection."""
        return self.random.random() < self.drop

    def draw_pieces(self, data: bytes) -> Iterator[bytes]:
        """Cut bytes into pieces."""
        places = (self.random.randrange(len(data)) for _ in range(_PIECES - 1))
        borders = [0, *sorted(places), len(data)]
        return (data[begin:end] for begin, end in itertools.pairwise(borders) if begin < end)


class Flow(Protocol):
    """One direction of a connection."""

    def end(self) -> None:
        """Let everything in transit arrive, and then the end."""

    def cut(self) -> None:
        """Drop everything in transit, and break the connection."""


#: The open flows of each sender, with their loops.
Flows = dict[FlowEnd, dict[Flow, trio.lowlevel.TrioToken]]


class _MessageFlow:
    """The messages in transit from one end of a link to the other.

    Args:
        faults: The faults of the link.
        break_link: Cuts both flows of the link.
    """

    def __init__(self, faults: DrawnFaults, break_link: Callable[[], None]) -> None:
        self._faults = faults
        self._break_link = break_link
        self._order = itertools.count()
        self._under_way: list[tuple[float, int, bytes]] = []  # a heap
        #: The last arrival of each stream, and the time before which no later message may arrive.
        self._last: dict[Hashable, float] = {}
        self._floor = -math.inf
        self._ended = self._broken = False
        # Set and replaced with each change for which a task may wait.
        self._changed = trio.Event()

    @property
    def has_room(self) -> bool:
        return len(self._under_way) < _CAPACITY or self._ended or self._broken

    def put(self, data: bytes) -> None:
        """Send a message.

        Raises:
            trio.BrokenResourceError: The flow has ended, or is broken.
        """
        if self._ended or self._broken:
            raise trio.BrokenResourceError
        if self._faults.draw_drop():
            self._break_link()
            raise trio.BrokenResourceError
        now = trio.current_time()
        stream = _stream_of(data) if self._faults.reorder else None
        # Earlier arrivals do not matter: the table has at most one entry per message in transit.
        self._last = {name: arrival for name, arrival in self._last.items() if arrival > now}
        arrival = max(now + self._faults.draw_delay(), self._floor)
        if stream is None:
            self._floor = arrival = max(arrival, *self._last.values(), -math.inf)
        else:
            self._last[stream] = arrival = max(arrival, self._last.get(stream, -math.inf))
        heapq.heappush(self._under_way, (arrival, next(self._order), data))
        self._tell()

    async def take(self) -> bytes | None:
        """Wait for the next message; None at the end.

        Raises:
            trio.BrokenResourceError: The flow is broken.
        """
        await trio.lowlevel.checkpoint()
        while not self._broken:
            if not self._under_way and self._ended:
                return None
            arrival = self._under_way[0][0] if self._under_way else math.inf
            if arrival <= trio.current_time():
                self._tell()
                return heapq.heappop(self._under_way)[2]
            with trio.move_on_at(arrival):
                await self._changed.wait()
        raise trio.BrokenResourceError

    async def room(self) -> None:
        """Wait until there is room for more."""
        while not self.has_room:
            await self._changed.wait()

    def end(self) -> None:
        """Let everything in transit arrive, and then the end; see `Flow`."""
        self._ended = True
        self._tell()

    def cut(self) -> None:
        """Break the link; see `Flow`."""
        self._break_link()

    def lose(self) -> None:
        """Drop everything in transit, and break the flow."""
        self._broken = True
        self._under_way.clear()
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _stream_of(data: bytes) -> Hashable:
    """Return the stream of a message: the request that it is or belongs to, or None."""
    try:
        message: JSON = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    if "method" in message and "id" in message:
        return ("id", message["id"])
    # The client's tokens are the ids of their requests; at worst another order results.
    return next((("id", value) for *_, (_, value) in references(message)), None)


class _LinkEnd(MessageStream):
    """One end of a link."""

    def __init__(self, incoming: _MessageFlow, outgoing: _MessageFlow, limits: Limits) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._limits = limits

    async def receive(self) -> Sequence[Received]:
        """Wait for a message; see `MessageStream`."""
        data = await self._incoming.take()
        return () if data is None else [read_message(data, self._limits)]

    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Send messages; see `MessageStream`."""
        for message in messages:
            self._outgoing.put(message)
        return self._outgoing.has_room

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages, and wait until there is room; see `MessageStream`."""
        await trio.lowlevel.checkpoint()
        self.send_nowait(messages)
        await self._outgoing.room()

    async def aclose(self) -> None:
        """Close both directions. The other end reads the remaining messages, then the end."""
        self._incoming.end()
        self._outgoing.end()
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def open_link(
    server: Server, faults: DrawnFaults, flows: Flows
) -> AsyncIterator[MessageStream]:
    """Serve a server at one end of a link.

    Args:
        server: The server.
        faults: The faults of the link.
        flows: Contains the flows of the link, by sender, while the block runs.

    Yields:
        The other end.
    """

    def break_link() -> None:
        there.lose()
        back.lose()

    there, back = _MessageFlow(faults, break_link), _MessageFlow(faults, break_link)
    flows["client"][there] = flows["server"][back] = trio.lowlevel.current_trio_token()
    ours = _LinkEnd(back, there, CLIENT_LIMITS)
    theirs = _LinkEnd(there, back, server.options.limits)
    try:
        with single_failure():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(serve, server, theirs, transport="memory"))
                try:
                    yield ours
                finally:
                    there.end()
    finally:
        del flows["client"][there], flows["server"][back]


class _ByteFlow:
    """The bytes in transit from one side of a TCP connection to the other."""

    def __init__(self, faults: DrawnFaults, connection: trio.CancelScope) -> None:
        self._faults = faults
        self._connection = connection
        self._reading = trio.CancelScope()

    async def run(self, source: trio.SocketStream, sink: trio.SocketStream) -> None:
        """Copy bytes until EOF, then close the sink.

        Args:
            source: The stream to read from.
            sink: The stream to write to.
        """
        try:
            with self._reading:
                while chunk := await source.receive_some(_CHUNK):
                    for piece in self._faults.draw_pieces(chunk):
                        await trio.sleep(self._faults.draw_delay())
                        if self._faults.draw_drop():
                            self.cut()
                        await sink.send_all(piece)
            await sink.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.cut()

    def end(self) -> None:
        """Stop copying bytes, and end; see `Flow`."""
        self._reading.cancel()

    def cut(self) -> None:
        """Break the connection; see `Flow`."""
        self._connection.cancel()


@asynccontextmanager
async def open_relay(
    url: str, faults: Iterator[DrawnFaults], flows: Flows, is_down: Callable[[], bool]
) -> AsyncIterator[str]:
    """Relay TCP connections to the server of a URL.

    Args:
        url: The URL; without TLS, whose certificates name another host.
        faults: The faults of each connection.
        flows: Contains the flows of all connections, by sender.
        is_down: Tells whether to close a new connection at once.

    Yields:
        The URL of the relay, with the same path.

    Raises:
        TargetError: The URL uses TLS.
    """
    parts = urlsplit(url)
    if parts.scheme != "http":
        raise TargetError(f"no network can stand before {url}: its certificate is for its own host")

    async def carry(client: trio.SocketStream) -> None:
        async with client:
            with trio.CancelScope() as scope:
                try:
                    server = await trio.open_tcp_stream(parts.hostname or "", parts.port or 80)
                except OSError:
                    return
                async with server:
                    # Checked here, not before the wait above: the network can cut only known flows.
                    if not is_down():
                        await _carry(client, server, next(faults), scope, flows)

    (listener, *_) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, carry, [listener])
            try:
                yield parts._replace(netloc=f"127.0.0.1:{port}").geturl()
            finally:
                nursery.cancel_scope.cancel()


async def _carry(
    client: trio.SocketStream,
    server: trio.SocketStream,
    faults: DrawnFaults,
    scope: trio.CancelScope,
    flows: Flows,
) -> None:
    there, back = _ByteFlow(faults, scope), _ByteFlow(faults, scope)
    flows["client"][there] = flows["server"][back] = trio.lowlevel.current_trio_token()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(there.run, client, server)
            nursery.start_soon(back.run, server, client)
    finally:
        del flows["client"][there], flows["server"][back]
