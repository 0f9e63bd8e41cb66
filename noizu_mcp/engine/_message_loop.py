"""The loop over the messages of a pipe: one nursery, one reader, one writer, few tasks.

Theory of operation. One task reads at any time, the *reader*. It handles the messages that arrived
together one after the other and runs their handlers itself (see `run_eager`). When a handler waits
for the first time, the task *detaches*: it belongs to that handler from then on, and a new task
continues to read, from the same inbox. So a handler that never waits, as most do, needs neither a
task nor a cancel scope: the handler takes over the scope around the reader when it detaches.

States of the loop: *reading*, *ended* (the peer has ended the stream, or `stop` was called) and
then, in this order: running requests get their grace, the rest is refused, the nursery is
cancelled, the outbox is drained, the stream is closed. A peer that no longer reads (`hang_up`) gets
no grace: its requests are withdrawn at once, and requests that it sent before the end of the stream
are cancelled at their first wait.

Why it cannot deadlock: the reader never waits for a handler; it waits for the peer, or for room in
the outbox, which the writer makes. A peer that leaves the outbox full is disconnected after
`STALL_TIMEOUT`. Why memory is bounded: the ledger limits the requests in flight, each of which has
at most one task; the inbox has the messages of one read.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, cast

import trio

from .._limits import GRACE, Limits
from .._log import throttled_log
from ..jsonrpc import Received
from ..protocol import Dispatch
from ._contracts import MessageStream, Unanswered
from ._dispatcher import Dispatcher
from ._eager import run_eager
from ._failure import split_cancellation
from ._outbox import Outbox
from ._request import InboundRequest

#: Seconds to write the queued messages at the end. A peer that reads needs far less.
DRAIN_TIMEOUT: Final = 2.0
#: Seconds that a peer may leave a full outbox unread before the connection is closed.
STALL_TIMEOUT: Final = 60.0
#: Messages handled in a row before other tasks run and the answers are written. A hundred echoes
#: take about a millisecond, and their answers are one write.
MAX_STREAK: Final = 100


class MessageLoop:
    """Drives a dispatcher over a stream.

    Args:
        stream: Carries the messages; closed when `run` ends.
        dispatcher: Handles the messages; its channel is set to the outbox of the loop.
        limits: The limits of the connection.

    Attributes:
        outbox: The messages that wait to be written.
    """

    def __init__(self, stream: MessageStream, dispatcher: Dispatcher, limits: Limits) -> None:
        self.outbox = dispatcher.channel = Outbox(stream, limits.outbox, dispatcher.requests)
        self._stream = stream
        self._dispatcher = dispatcher
        self._inbox: deque[Received | Unanswered] = deque()
        self._reading: trio.CancelScope | None = None
        self._ended = trio.Event()
        self._nursery: trio.Nursery

    async def run(
        self,
        *,
        grace: float = GRACE,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the connection until the peer ends it, or `stop` is called.

        Args:
            grace: Seconds for running requests at the end.
            task_status: Started once requests can be sent.
        """
        try:
            async with trio.open_nursery() as nursery:
                # In the outer nursery: the writer must outlive the requests, whose last answers
                # `drain` waits for.
                nursery.start_soon(self.outbox.write)
                try:
                    await self._serve(grace, task_status)
                finally:
                    # The writer never ends by itself.
                    nursery.cancel_scope.cancel()
        finally:
            # Repeated for exits that skip the end of `_serve`: tasks of other nurseries may wait
            # for an answer, or for room, and must wake up.
            self._dispatcher.pending.close()
            self.outbox.close()
            # Shielded: a cancelled `run` must also close its stream. Bounded: closing may wait for
            # the peer.
            with trio.CancelScope(shield=True, deadline=trio.current_time() + DRAIN_TIMEOUT):
                await self._stream.aclose()

    async def _serve(self, grace: float, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            self.resume_reading()
            await self._ended.wait()
            # No more answers of the peer can arrive: a handler that waits for one must not use up
            # the grace. A listen request never ends by itself, and would use it up as well.
            self._dispatcher.pending.close()
            self._dispatcher.end_subscriptions()
            # If the answers cannot be read, there is no grace.
            await self._dispatcher.settle(0 if self.outbox.is_broken else grace)
            # Tasks that belong to no request (`spawn`) have no other end.
            self._nursery.cancel_scope.cancel()
        with trio.move_on_after(DRAIN_TIMEOUT):
            await self.outbox.drain()

    def spawn(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run a task beside the requests. It is cancelled with them."""
        self._nursery.start_soon(work)

    def stop(self) -> None:
        """Take no more messages, so that `run` ends gracefully."""
        self._ended.set()
        # Only a reader in `_fill_inbox` is cancelled: elsewhere its scope may be around a handler,
        # which gets its grace.
        if self._reading is not None:
            self._reading.cancel()

    def hang_up(self) -> None:
        """Write no more: the peer no longer reads. Its requests are cancelled.

        Reading continues until the stream ends.
        """
        self.outbox.close()
        self._dispatcher.withdraw_all()

    def resume_reading(self) -> None:
        """Start a task that continues to read."""
        self._nursery.start_soon(self._read)

    async def _read(self) -> None:
        """Read, and run handlers until one of them waits; then another task continues to read."""
        task = _EagerTask(self)
        try:
            with task.scope:
                await self._read_until_detached(task)
        except BaseException as error:
            crash, going_on = split_cancellation(error)
            # A failure outside of every request comes from the stream or this package: it ends the
            # connection, and is not attributed to a handler.
            if task.current is None or crash is None:
                raise
            method = task.current.request.method
            throttled_log.crash(method, "%s failed", method, error=crash)
            if going_on is not None:
                raise going_on from None
            if task.detached is None:
                task.detach()  # the messages after the failed one must still be read
        finally:
            if task.detached is not None:
                task.detached.leave_scope()
        if task.detached is not None:
            task.detached.conclude(task.scope)

    async def _read_until_detached(self, task: "_EagerTask") -> None:
        outbox = self.outbox
        while not self._ended.is_set():
            # One write for the answers to all messages that arrived together.
            outbox.corked = True
            for _ in range(min(len(self._inbox), MAX_STREAK)):
                work = self._take(self._inbox.popleft(), task)
                if work is not None:
                    await run_eager(work, task.detach)
                    if task.detached is not None:
                        # Still corked: `detach` has started the reader that handles the rest of
                        # this inbox and flushes.
                        return
            outbox.corked = False
            has_room = outbox.flush_now()
            if self._inbox:
                # A flood on one connection must not starve others of the loop.
                await trio.lowlevel.checkpoint()
            else:
                task.current = None  # failures from here on belong to no request
                await self._fill_inbox(task.scope, has_room=has_room)
        # Messages that the previous task left corked.
        outbox.corked = False
        outbox.flush_now()

    async def _fill_inbox(self, scope: trio.CancelScope, *, has_room: bool) -> None:
        messages: Sequence[Received | Unanswered] = ()
        self._reading = scope
        try:
            # While there is no room nothing is read, not even the end of the stream: a peer that
            # has stopped reading must not keep the connection forever.
            if not has_room:
                with trio.move_on_after(STALL_TIMEOUT):
                    await self.outbox.room()
                    has_room = True
            if has_room:
                messages = await self._stream.receive()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer is gone, or the owner closed the stream: both are its end
        finally:
            # Before a handler can run in this scope: `stop` must not cancel it.
            self._reading = None
        self._inbox.extend(messages)
        # The end of the stream, a broken stream, or a stalled peer are treated the same from here
        # on.
        if not messages:
            self._ended.set()

    def _take(
        self, data: Received | Unanswered, task: "_EagerTask"
    ) -> Coroutine[Any, Any, None] | None:
        """Handle one message; return the rest of the work on it."""
        dispatcher = self._dispatcher
        if isinstance(data, Unanswered):
            # Over HTTP one message may fail while others succeed.
            dispatcher.pending.resolve(data.id, data.error)
            return None
        # The event is decided before observers see the message, and handled afterwards: an observer
        # of a request must exist before its answer.
        event = dispatcher.decide(data.message)
        if dispatcher.listeners:
            dispatcher.observe_received(data.message, event, data.size)
        if isinstance(event, Dispatch):
            dispatcher.size = data.size
            # Set before the handler runs: a failure, or the first wait, needs its request.
            task.current, job = dispatcher.begin(event, self.outbox)
            return None if job is None else job()
        if event is not None:
            dispatcher.size = None  # unknown for each message of a batch
            dispatcher.take(event, self.outbox)
        return None


class _EagerTask:
    """A task that reads until one of its handlers waits.

    Attributes:
        scope: The scope around everything in the task.
        current: The request whose handler is running.
        detached: The request whose handler waited, and to which the task and its scope belong.
    """

    __slots__ = ("_loop", "current", "detached", "scope")

    def __init__(self, loop: MessageLoop) -> None:
        self.scope = trio.CancelScope()
        self.current: InboundRequest | None = None
        self.detached: InboundRequest | None = None
        self._loop = loop

    def detach(self) -> None:
        """Leave this task to the current handler, and let another task continue to read."""
        request = self.detached = cast(InboundRequest, self.current)
        request.detach(self.scope)
        # Started, not run: the handler reaches its wait before the new reader handles a message.
        self._loop.resume_reading()
