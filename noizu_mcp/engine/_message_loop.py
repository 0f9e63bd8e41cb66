"""The loop over the messages of a pipe: one nursery, one reader, one writer, few tasks.

Theory of operation. One task reads at any time, the *reader*. It takes the messages that arrived
together one after the other and runs their handlers itself (see `run_eager`). When a handler waits
for the first time, the task *detaches*: it belongs to that handler from then on, and a new
task resumes reading where the old one stopped, in the same inbox. So a handler that never waits, as
most do, costs neither a task nor a cancel scope: the handler takes over the scope around the reader
when it detaches.

States of the loop: *reading*, *ended* (the peer has ended the stream, or `stop` was called) and
then, in this order: requests that run get their grace, the rest is refused, the nursery is
cancelled, the outbox is drained, the stream is closed. A peer that reads no more (`hang_up`) gets
no grace: its requests are withdrawn at once, and those that it has sent before its end of the
stream are cancelled where they first wait.

Why it cannot deadlock: the reader never waits for a handler; it waits for the peer, or for room in
the outbox, which the writer makes. A peer that leaves the outbox full is given up after
`STALL_TIMEOUT`. Why it cannot grow: the ledger bounds the requests in flight, each of which holds
at most one task; the inbox holds the messages of one read.
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

#: Seconds to write the queued messages once everything else has ended; a peer that reads needs far
#: less.
DRAIN_TIMEOUT: Final = 2.0
#: Seconds that a peer may leave a full outbox unread before the connection is given up.
STALL_TIMEOUT: Final = 60.0
#: Messages taken in a row before other tasks get their turn and the answers are written. A
#: hundred echoes take about a millisecond, and their answers are one write.
MAX_STREAK: Final = 100


class MessageLoop:
    """Drives a dispatcher over a stream.

    Args:
        stream: Carries the messages; closed when `run` ends.
        dispatcher: Takes the messages; its channel becomes the outbox of the loop.
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
            grace: Seconds that running requests get then.
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
            # Repeated for the ways out that skip the end of `_serve`: tasks of other nurseries may
            # wait for an answer, or for room, and must wake.
            self._dispatcher.pending.close()
            self.outbox.close()
            # Shielded: a cancelled `run` must close its stream, too. Bounded: closing may wait for
            # the peer.
            with trio.CancelScope(shield=True, deadline=trio.current_time() + DRAIN_TIMEOUT):
                await self._stream.aclose()

    async def _serve(self, grace: float, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            self.resume_reading()
            await self._ended.wait()
            # No more answers of the peer can come: a handler that waits for one must not use up
            # the grace. A listen request never ends by itself, and would use it up as well.
            self._dispatcher.pending.close()
            self._dispatcher.end_subscriptions()
            # An answer that cannot be read is worth no time.
            await self._dispatcher.settle(0 if self.outbox.is_broken else grace)
            # Tasks that belong to no request (`spawn`) have no other end.
            self._nursery.cancel_scope.cancel()
        with trio.move_on_after(DRAIN_TIMEOUT):
            await self.outbox.drain()

    def spawn(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run a task beside the requests; it is cancelled with them."""
        self._nursery.start_soon(work)

    def stop(self) -> None:
        """Take no more messages and let `run` end in order."""
        self._ended.set()
        # Only a reader inside of `_fill_inbox` is cancelled: anywhere else its scope may be around
        # a handler, which gets its grace.
        if self._reading is not None:
            self._reading.cancel()

    def hang_up(self) -> None:
        """Write no more: the peer reads nothing. Its requests are cancelled.

        Reading goes on until the stream ends.
        """
        self.outbox.close()
        self._dispatcher.withdraw_all()

    def resume_reading(self) -> None:
        """Start a task that reads from here on."""
        self._nursery.start_soon(self._read)

    async def _read(self) -> None:
        """Read, and run handlers until one of them waits; then another task resumes reading."""
        task = _EagerTask(self)
        try:
            with task.scope:
                await self._read_until_detached(task)
        except BaseException as error:
            crash, going_on = split_cancellation(error)
            # A failure outside of every request is one of the stream or of this package: it ends
            # the connection, and is not blamed on a handler.
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
                        # Still corked: `detach` has started the reader that takes the rest of
                        # this inbox and flushes.
                        return
            outbox.corked = False
            outbox.flush_now()
            if self._inbox:
                # A flood on one connection must not starve the others of the loop.
                await trio.lowlevel.checkpoint()
            else:
                task.current = None  # failures from here on belong to no request
                await self._fill_inbox(task.scope)
        # Messages that the task before left corked.
        outbox.corked = False
        outbox.flush_now()

    async def _fill_inbox(self, scope: trio.CancelScope) -> None:
        messages: Sequence[Received | Unanswered] = ()
        self._reading = scope
        try:
            # While there is no room nothing is read, not even the end of the stream: a peer that
            # has stopped reading must not hold the connection for ever.
            has_room = self.outbox.has_room
            if not has_room:
                with trio.move_on_after(STALL_TIMEOUT):
                    await self.outbox.room()
                    has_room = True
            if has_room:
                messages = await self._stream.receive()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer is gone, or the owner of the stream closed it: both are its end
        finally:
            # Before a handler can run in this scope: `stop` must not cancel it.
            self._reading = None
        self._inbox.extend(messages)
        # The end of the stream, a broken stream, or a peer that stalled: no difference from here
        # on.
        if not messages:
            self._ended.set()

    def _take(
        self, data: Received | Unanswered, task: "_EagerTask"
    ) -> Coroutine[Any, Any, None] | None:
        """Take one message; return the rest of the work on it."""
        dispatcher = self._dispatcher
        if isinstance(data, Unanswered):
            # Over HTTP one message may fail while the others go on.
            dispatcher.pending.resolve(data.id, data.error)
            return None
        # The event is decided before observers see the message, and acted on afterwards: an
        # observer of a request must exist before its answer does.
        event = dispatcher.decide(data.message)
        if dispatcher.listeners:
            dispatcher.observe_received(data.message, event, data.size)
        if isinstance(event, Dispatch):
            dispatcher.size = data.size
            # Set before the handler runs: a failure, or the first wait, must find its request.
            task.current, job = dispatcher.begin(event, self.outbox)
            return None if job is None else job()
        if event is not None:
            dispatcher.size = None  # of each message of an array nothing is known
            dispatcher.take(event, self.outbox)
        return None


class _EagerTask:
    """A task that reads until one of the handlers it runs waits.

    Attributes:
        scope: Around all that the task does.
        current: The request whose handler runs.
        detached: The request whose handler waited; the task and its scope are its own.
    """

    __slots__ = ("_loop", "current", "detached", "scope")

    def __init__(self, loop: MessageLoop) -> None:
        self.scope = trio.CancelScope()
        self.current: InboundRequest | None = None
        self.detached: InboundRequest | None = None
        self._loop = loop

    def detach(self) -> None:
        """Leave this task to the current handler, and let another one resume reading."""
        request = self.detached = cast(InboundRequest, self.current)
        # No scope of its own is opened: this one is around everything that the handler has done.
        request.scope = self.scope
        request.trio_task = trio.lowlevel.current_task()
        # Not needed earlier: a handler that has not waited could not have been cancelled.
        self.scope.deadline = request.deadline
        # Started, not run: the handler reaches its wait before the new reader takes a message.
        self._loop.resume_reading()
