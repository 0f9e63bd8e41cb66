"""Drives a peer over a stream: one nursery, one reader, one writer, at most a task a request."""

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, cast

import trio

from .._limits import Limits
from .._log import seldom
from ..jsonrpc import Decoded, Oversized, decode, too_large
from ..protocol import Dispatch
from ._abc import MessageStream, Unanswered
from ._desk import Desk, Handler, Peer
from ._exchange import Exchange
from ._failure import split
from ._leader import run_leading
from ._outbox import Outbox

#: Seconds to write what is left once everything else has ended; a peer that reads needs far less.
DRAIN_TIMEOUT: Final = 2.0
#: Seconds that a peer may leave a full outbox unread before the connection is given up.
STALL_TIMEOUT: Final = 60.0
#: Messages taken in a row before other tasks get their turn and the answers are written.
MAX_STREAK: Final = 100


class Link(Desk):
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
        super().__init__(peer, handler, self)
        self.outbox = Outbox(stream, limits.outbox)
        self._stream = stream
        self._limits = limits
        self._inbox: deque[bytes | Oversized | Unanswered] = deque()
        self._reader: trio.CancelScope | None = None
        self._ended = trio.Event()
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
            await self.settle(grace)
            self._nursery.cancel_scope.cancel()
        with trio.move_on_after(DRAIN_TIMEOUT):
            await self.outbox.drain()

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
            method = turn.current.request.method
            seldom.crash(method, "%s failed", method, error=crash)
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
        messages: Sequence[bytes | Oversized | Unanswered] = ()
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

    def _receive(
        self, data: bytes | Oversized | Unanswered, turn: "_Turn"
    ) -> Coroutine[Any, Any, None] | None:
        """Take one message; what is returned is the rest of the work on it."""
        if isinstance(data, Unanswered):
            self._waiters.resolve(data.id, data.error)
            return None
        if isinstance(data, Oversized):
            message: Decoded = too_large(data.head, self._limits)
        else:
            message = decode(data, self._limits)
        event = self._peer.receive(message)
        if self._listeners:
            self._watch.heard(message, event, None if isinstance(data, Oversized) else len(data))
        if isinstance(event, Dispatch):
            turn.current, job = self.begin(event, self)
            return None if job is None else job()
        if event is not None:
            self.take(event, self)
        return None

    # Channel: all messages of a connection go the same way.

    def answer(self, message: bytes, _code: int | None = None, /) -> None:
        """Send an answer; see `Channel`."""
        self.deliver(message)

    def abandon(self) -> None:
        """Expect no answer: the others do not depend on it; see `Channel`."""

    def release(self, _seconds: float, /) -> None:
        """Do nothing: a stream has nothing to come back to; see `Channel`."""

    def deliver(self, message: bytes) -> None:
        """Send a message; see `Channel`."""
        self.outbox.put(message)
        self._flush()

    def offer(self, message: bytes) -> None:
        """Send a message if there is room; see `Channel`."""
        self.outbox.put(message, droppable=True)
        self._flush()

    @property
    def has_room(self) -> bool:
        """False while too much is waiting; see `Channel`."""
        return self.outbox.has_room

    async def room(self) -> None:
        """Wait until there is room; see `Channel`."""
        await self.outbox.room()

    def _flush(self) -> None:
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
