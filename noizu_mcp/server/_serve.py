"""Serving: a server on a pipe for as long as a connection lasts, or one stateless request.

Theory of operation. A pipe ends in this order: stop reading messages, end the subscriptions, wait
for requests and tasks (the grace), end the session, cancel its nursery. Answers can be sent until
the grace is over, so a client that closes its side still gets them. If the peer reads no answers
(`hang_up`) there is no grace. Lingering work runs in the nursery of the session; one deadline
bounds requests and tasks together, so a shutdown takes at most `grace` plus the time of
`unsubscribe`. A stateless request has no such phases: it runs in the task of its HTTP request and
ends with it.
"""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import trio

from .._limits import GRACE
from ..engine import (
    InFlight,
    Job,
    MessageLoop,
    MessageStream,
    ReplyChannel,
    TaskScope,
    enter_user_code,
    single_failure,
)
from ..events import Place, observe_notice
from ..jsonrpc import Notification
from ..protocol import STATELESS, Dispatch, Origin
from ._running import RunningServer
from ._server import Server
from ._server_request import ASKING, ServerRequest
from ._session import Session
from .features import ROUTES

if TYPE_CHECKING:
    from ..types import Principal

#: Capabilities of clients that can be asked questions.
_ASKED: Final = frozenset({"elicitation", "sampling", "roots"})


class PipeSession(Session):
    """The session of one stream, from its first message to its end.

    Args:
        server: The server.
        stream: Carries the messages; `run` closes it.
        state: The value that the server's lifespan yielded.
        transport: The value of `ctx.transport`.
        principal: The caller, as given by the serving program; None if it names no caller.
        parks: See `RunningServer`.
    """

    def __init__(
        self,
        server: Server,
        stream: MessageStream,
        state: object,
        transport: str,
        principal: "Principal | None" = None,
        *,
        parks: bool = True,
    ) -> None:
        running = RunningServer(server, ROUTES, state, transport, self._linger, parks=parks)
        super().__init__(running)
        self.peer.origin = Origin(None, principal)
        self._loop = MessageLoop(stream, self, server.options.limits)
        self._nursery: trio.Nursery
        self._ended = 0.0
        self._is_unread = False

    async def run(self, grace: float) -> None:
        """Serve until the peer ends the connection or `stop` is called.

        Args:
            grace: Seconds that running requests and tasks get once no more messages can come.
        """
        async with trio.open_nursery() as self._nursery:
            try:
                await self.running.begin_serving()
                await self._loop.run(grace=grace)
                # One grace for both: tasks get the time that requests have left.
                left = 0.0 if self._is_unread else self._ended + grace - trio.current_time()
                await self.running.settle_tasks(max(0.0, left))
            finally:
                # In `finally`, so that a broken stream also ends the author's subscriptions.
                self.end_session()
                for request in self.requests.values():
                    request.mark_withdrawn()  # a thread that goes on sees `ctx.cancelled`
                self.running.end_serving()
                self._nursery.cancel_scope.cancel()

    def end_subscriptions(self) -> None:
        """End the listen requests and start the grace; see `Dispatcher`."""
        super().end_subscriptions()
        self._ended = trio.current_time()

    def stop(self) -> None:
        """Take no more messages, so that `run` ends gracefully."""
        self._loop.stop()

    def hang_up(self) -> None:
        """Cancel all requests: the peer reads no answers. `run` ends once the stream does."""
        self._is_unread = True
        self._loop.hang_up()

    def spawn(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run work beside the requests; it is cancelled when they are."""
        self._loop.spawn(work)

    def _linger(self, work: Callable[[], Awaitable[object]]) -> None:
        self._nursery.start_soon(work)


@asynccontextmanager
async def open_session(
    server: Server,
    stream: MessageStream,
    *,
    transport: str,
    principal: "Principal | None" = None,
    parks: bool = True,
) -> AsyncIterator[PipeSession]:
    """Make the session of a server on a stream; its `run` serves it, its `stop` ends it.

    Args:
        server: The server; its `lifespan` surrounds the session.
        stream: Carries the messages; `run` closes it.
        transport: The value of `ctx.transport`: `stdio`, `http` or `memory`.
        principal: The caller, `ctx.auth`; None if unknown.
        parks: See `RunningServer`.
    """
    async with enter_user_code(server.lifespan()) as state:
        yield PipeSession(server, stream, state, transport, principal, parks=parks)


async def serve(
    server: Server,
    stream: MessageStream,
    *,
    transport: str,
    grace: float = GRACE,
    principal: "Principal | None" = None,
    parks: bool = True,
) -> None:
    """Serve one connection, from its first message to its graceful end.

    Args:
        server: The server.
        stream: Carries the messages; closed at the end.
        transport: The value of `ctx.transport`.
        grace: Seconds that running requests get once no more messages can come.
        principal: The caller, `ctx.auth`; None if unknown.
        parks: False to run each handler again from its start for each answer of 2026-07-28.
    """
    with single_failure():
        session_of_stream = open_session(
            server, stream, transport=transport, principal=principal, parks=parks
        )
        # Closed here too: if the lifespan fails or is cancelled, the session never ran.
        async with aclosing(stream), session_of_stream as session:
            await session.run(grace)


class Reply(ReplyChannel, Protocol):
    """The answer to one HTTP request, as `serve_request` uses it."""

    on_gone: Callable[[], None] | None
    #: The scope of the calling task.
    entered: TaskScope
    #: True once another task sends the answer; `on_gone` is called when it ends.
    handed_over: bool

    def watch_disconnect(self) -> None:
        """Start to watch for the client's disconnect: the answer takes time."""

    async def finish(self, *, may_hand_over: bool = True) -> None:
        """Wait until the answer is sent or handed over to another task.

        Args:
            may_hand_over: False while a handler works on the request in another task.
        """


async def serve_in_task(ctx: ServerRequest, job: Job | None, reply: Reply) -> None:
    """Do the rest of the work on a request in the calling task, and send its answer.

    Args:
        ctx: The request.
        job: The rest of the work; None if there is no more work.
        reply: Its answer.
    """
    try:
        if job is not None and _may_be_parked(ctx):
            # The task of the POST ends with the answer, and a parked handler goes on after it.
            waits = trio.Event()
            ctx.running.linger(partial(_serve_beside, ctx, job, waits))
            await waits.wait()
            # Most handlers answer before they wait: then the disconnect need not be watched.
            await reply.finish(may_hand_over=False)
            return
        if job is not None:
            await _work_on(ctx, job, reply.entered, reply.watch_disconnect)
        await reply.finish()
    finally:
        # A parked handler gets another channel with its retry.
        is_open = ctx.channel is reply and not reply.handed_over
        if is_open and not (ctx.answered or ctx.withdrawn):
            ctx.withdraw()  # the host has cancelled the task


def _may_be_parked(request: ServerRequest) -> bool:
    """Tell whether the handler may ask the client, and then be parked."""
    envelope, spec = request.envelope, request.component
    if not envelope.revision.stateless or request.request.method not in ASKING:
        return False  # a session asks while its request is open
    if _ASKED.isdisjoint(envelope.client_capabilities):
        return False
    # A sync handler cannot wait for an answer. An override may ask in place of any handler.
    asks = spec is None or (spec.takes_context and spec.mode == "async")
    return asks or bool(request.running.server.registry.overridden)


async def _serve_beside(ctx: ServerRequest, job: Job, waits: trio.Event) -> None:
    """Do the rest of the work on a request in a task of its own.

    Args:
        ctx: The request.
        job: The rest of the work.
        waits: Set once the work waits, or is done.
    """
    if not (ctx.answered or ctx.withdrawn):  # before the task began
        task = TaskScope()
        await task.run(_work_on(ctx, job, task, waits.set))
    waits.set()


async def _work_on(
    ctx: ServerRequest,
    job: Job,
    entered: TaskScope,
    on_wait: Callable[[], object] | None = None,
) -> None:
    working = ctx.running.working
    # For diagnostics: a handler may go on for a while after its request was refused.
    working[ctx] = None
    try:
        await ctx.run(job, entered, on_wait)
    finally:
        working.pop(ctx, None)  # a parked request is removed already


class StatelessRequests(InFlight):
    """The requests of 2026-07-28 over HTTP that have no answer yet, of all callers.

    There is no session object. A request is in `requests` while it is open.

    Args:
        running: The server while it is served.

    Attributes:
        running: See Args.
    """

    def __init__(self, running: RunningServer) -> None:
        super().__init__()
        self.running = running
        self.listeners = running.listeners
        self._keys = itertools.count()

    def observe_sent(self, method: str, size: int) -> None:
        """Observe a sent notification; see `InFlight`."""
        place = Place("http", STATELESS.name)
        notice = Notification(method)
        observe_notice(self.running.server.telemetry, place, notice, size, outbound=True)

    def end_subscriptions(self, reply: Reply | None = None) -> None:
        """Answer open listen requests.

        Args:
            reply: The answer to one of them; None for all.
        """
        for request in list(self.requests.values()):
            meant = reply is None or request.channel is reply
            if meant and isinstance(request, ServerRequest) and request.feed is not None:
                request.feed.end_listens()

    def refuse_all(self, reason: str) -> None:
        """Refuse open requests, but answer listen requests with their results; see `InFlight`."""
        self.end_subscriptions()  # a hook may have accepted one since the end began
        super().refuse_all(reason)

    async def serve_one(self, event: Dispatch, reply: Reply, size: int | None) -> None:
        """Serve one request in the calling task, and answer it.

        Args:
            event: The request, checked.
            reply: Its answer.
            size: Bytes of the message.
        """
        # Keyed by a counter: the ids come from many callers, and each may use 1.
        key = next(self._keys)
        ctx = ServerRequest(self.running, None, self, event, reply, size=size, key=key)
        job = ctx.begin()
        ctx = ctx.resumed or ctx
        if not ctx.answered:
            # Only if unfinished: most requests are answered by now, and never enter the table.
            self.requests[key] = ctx
            # The end of the HTTP request is its cancellation (`basic/patterns/cancellation`).
            reply.on_gone = ctx.withdraw
        try:
            await serve_in_task(ctx, job, reply)
        finally:
            if ctx.feed is not None and not reply.handed_over:
                ctx.feed.close()
