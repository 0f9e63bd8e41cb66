"""One connection of a server: what it remembers, and where its requests go."""

import abc
import math
import os
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Iterable,
    Mapping,
)
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import trio

from .._errors import ConnectionClosed, InsufficientScope, McpError, RequestTimeout
from .._util import UNSET, Unset
from ..components import Context
from ..engine import (
    Desk,
    Exchange,
    Job,
    LoopGate,
    crashes_logged,
    is_crash,
    logger,
    lone,
)
from ..jsonrpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Batch,
    Decoded,
    Id,
    Notification,
    Rendered,
)
from ..protocol import CLIENT_REQUESTS, Envelope, Event, Interests, ServerPeer
from ..types import META_SERVER_INFO, META_SUBSCRIPTION_ID, Principal, ToolResult
from ._authored import authored
from ._bus import Merger, Windows
from ._call import BeginTask, Call
from ._calls import TIMED_OUT
from ._clock import Timed
from ._farewell import say_farewell
from ._record import hear, observe, tell
from ._rounds import timed_out
from ._scopes import admit, denial, needed
from ._task import RunningTask
from ._tasks import TaskChange, TaskStore

if TYPE_CHECKING:
    from ._server import Server

_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


#: Serves one method: answers at once, or returns the rest of the work. May raise `McpError`.
Route = Callable[["Connection", Exchange], Job | None]


def _is_ping(exchange: Exchange) -> bool:
    """Pings are answered in every phase, whatever the server is waiting for itself."""
    return exchange.request.method == "ping"


class Connection(abc.ABC):
    """Serves one peer; the `engine.Handler` of its desk.

    Args:
        server: The server.
        routes: Which feature serves which method.
        state: What the server's lifespan yielded.
        transport: `stdio`, `http` or `memory`.
        gate: The way in for other threads.
        tasks: Where its calls go on that outlive their requests.
        windows: Those in which its change notices are merged.

    Attributes:
        desk: Its requests; given by what carries them.
        peer: What the client has said.
        interests: Which change notices it asked for.
        session: What handlers stored with `put_session`; replaced, never changed.
        gate: The way in for other threads.
        task_store: As given as `tasks`.
        listeners: Who listens to the server's telemetry.
        size: Bytes of the message that is being taken, if known; only while somebody listens.
    """

    desk: Desk

    def __init__(
        self,
        server: "Server",
        routes: Mapping[str, Route],
        state: Any,
        transport: str,
        gate: LoopGate,
        *,
        tasks: TaskStore,
        windows: Windows,
    ) -> None:
        limits = server.options.limits
        self.server = server
        self.state = state
        self.transport = transport
        self.peer = ServerPeer(limits.in_flight)
        self.interests = Interests(limits.subscriptions)
        self.session = _EMPTY
        self.gate = gate
        self.task_store = tasks
        self._windows = windows
        self.listeners = server.telemetry.listeners
        self.size: int | None = None
        self._label: str | None = None
        self._routes = routes
        self._listening: dict[Any, Exchange] = {}
        self._merger: Merger | None = None  # once there was something to tell
        self._hears = False
        self._initialised: trio.Event | None = None  # while `init` runs
        self._failed = False

    @abc.abstractmethod
    def stop(self) -> None:
        """Take no more messages and end in order."""

    @abc.abstractmethod
    def linger(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run something that ends after the requests; it must be bounded."""

    def close(self) -> None:
        """Tell and hear nothing any more: the peer is gone."""
        if self._hears:
            self._hears = False
            self.server.bus.discard(self._hear)
        if self._merger is not None:
            self._merger.close()
        for exchange in list(self._listening.values()):
            self._hang_up(exchange)
        self.leave(self.interests.close(), None)
        self.server.telemetry.sessions.discard(self)
        for exchange in self.desk.unanswered:
            if exchange.record is not None:
                exchange.record.cancelled()

    def _listen_for_changes(self) -> None:
        if not self._hears:
            self._hears = True
            self.server.bus.add(self._hear)

    def _hear(self, change: Hashable) -> None:
        self.gate.run_soon(partial(self._report, change))

    def _report(self, change: Hashable) -> None:
        # Most connections want to hear of most changes nothing.
        if self._hears:
            if self._merger is None:
                channel = self.desk.channel
                self._merger = Merger(self._notices, self._send_change, channel, self._windows)
            self._merger.report(change)

    # engine.Handler

    def handle(self, exchange: Exchange) -> Job | None:
        """Begin a request."""
        if self.listeners and exchange.record is None:
            return observe(self, exchange)
        waiting = self._initialised
        if waiting is None or exchange.envelope.revision.stateless or _is_ping(exchange):
            return self._route(exchange)

        async def after_init() -> None:
            await waiting.wait()
            if self._failed:
                exchange.fail(INTERNAL_ERROR, "The session could not be set up")
                return
            job = self._route(exchange)
            if job is not None:
                exchange.expire_at(exchange.deadline)
                await job()

        return after_init

    def _route(self, exchange: Exchange) -> Job | None:
        method = CLIENT_REQUESTS[exchange.request.method]
        if method.capability is not None and not self.server.offers(method.capability):
            self.refuse(exchange)
            return None
        try:
            admit(self.server, exchange)
            return self._routes[method.name](self, exchange)
        except BaseException as error:
            if not is_crash(error):
                raise
            self.crash(exchange, error)
        return None

    def notice(self, notification: Notification) -> None:
        """Take a notification; none of those that are left means anything to a server."""
        logger.debug("ignored %s", notification.method)

    def await_ready(self) -> None:
        """Keep list changes from now on: a handshake begins, and they are told at its end."""
        self.interests.await_ready()
        self._listen_for_changes()

    def ready(self) -> None:
        """Begin to push list changes, and let the server set the session up."""
        self.server.telemetry.sessions.add(self)
        self._listen_for_changes()
        for notice in self.interests.push():
            self.send_notice(notice, None)
        if self.server.overrides("init"):
            self._initialised = trio.Event()
            self.desk.spawn(partial(self._init, self._initialised))

    async def _init(self, done: trio.Event) -> None:
        self._failed = True  # unless it comes to its end
        text, log = "init of %r failed; the session ends", self.server.crash_log
        with crashes_logged(text, self.server, log=log):
            await authored(self.server.init(self._context_of_session()))
            self._failed = False
        if self._failed:
            self.stop()
        self._initialised = None
        done.set()

    def cancelled(self, exchange: Exchange) -> None:
        """Forget a request that its sender no longer wants."""
        self._hang_up(exchange)

    def expired(self, exchange: Exchange) -> None:
        """Answer a request that has run out of time."""
        exchange.mark("timed_out")
        if exchange.request.method == "tools/call":
            self.reply(exchange, TIMED_OUT.to_wire())
        else:
            exchange.fail(INTERNAL_ERROR, "Request timed out")

    def closing(self) -> None:
        """End the listen requests, with their result.

        2026-07-28 is of two minds: `basic/patterns/cancellation` demands a notification,
        `basic/patterns/subscriptions` the result. On a pipe both are sent, a client takes either;
        on HTTP the end of the answer says the same as the notification.
        """
        for exchange in list(self._listening.values()):
            if self.transport != "http":
                self.desk.notify("notifications/cancelled", {"requestId": exchange.id})
            self._hang_up(exchange)
            self.reply(exchange, {"_meta": {META_SUBSCRIPTION_ID: exchange.id}})

    # engine.Watch

    def heard(self, message: Decoded, event: Event | None, size: int | None) -> None:
        """See a message of the client and what it means."""
        if self.listeners:
            self.size = None if isinstance(message, Batch) else size
            hear(self, message, event, size)

    def told(self, method: str, size: int) -> None:
        """See a notification of ours."""
        tell(self, method, size)

    @property
    def label(self) -> str:
        """Name the connection in events: made up, since the id of a session is a secret."""
        if self._label is None:
            self._label = os.urandom(8).hex()
        return self._label

    # What features need

    def context(
        self, exchange: Exchange, *, completion_arguments: Mapping[str, str] = _EMPTY
    ) -> Context:
        """Make the context of a request that cannot ask the client."""
        return Context(self._call(exchange, completion_arguments))

    def context_of_round(self, exchange: Exchange, begin_task: BeginTask | None = None) -> Context:
        """Make the context of a request that may ask, with what an earlier round left.

        Args:
            exchange: The request.
            begin_task: Begins its task, if its handler may.

        Raises:
            McpError: The request carries a state that is not good for it (-32602).
        """
        call = self._call(exchange)
        call.begin_task = begin_task
        if exchange.envelope.revision.stateless:
            params = exchange.request.params or _EMPTY
            if "requestState" in params or "inputResponses" in params:
                call.open_state()
        return Context(call)

    def _call(self, exchange: Exchange, completing: Mapping[str, str] = _EMPTY) -> Call:
        stateless = exchange.envelope.revision.stateless
        session = _EMPTY if stateless else self.session
        return Call(self, exchange.envelope, session, exchange, completing)

    def listen(self, exchange: Exchange) -> None:
        """Keep a listen request open: it ends when its client or its connection does."""
        self._listen_for_changes()
        exchange.open = True
        self._listening[exchange.id] = exchange

    def follow(self, ids: Iterable[str]) -> None:
        """Hear of tasks, and say how they are now: they may have ended before."""
        for id_ in ids:
            if self.task_store.get(id_) is not None:
                self.task_store.follow(id_, self._report)
                self._report(TaskChange(id_))

    def watch(self, uri: str) -> None:
        """Watch a resource for a client with a handshake.

        Raises:
            McpError: The limit is reached.
        """
        self.interests.watch(uri)

    def _hang_up(self, exchange: Exchange) -> None:
        """End a listen request, if it is one and open."""
        ended = self.interests.drop(exchange.id)
        if ended is not None:
            for id_ in ended.tasks:
                if not self.interests.follows(id_):
                    self.task_store.unfollow(id_, self._report)
            self.leave(ended.uris, exchange)
        self._listening.pop(exchange.id, None)

    def leave(self, uris: Collection[str], exchange: Exchange | None) -> None:
        """Let the server hear that resources are no longer watched; waits for nothing.

        Args:
            uris: The resources.
            exchange: The request that watched them; None for the session.
        """
        if uris and self.server.overrides("unsubscribe"):
            context = self.context(exchange) if exchange else self._context_of_session()
            self.linger(partial(say_farewell, self.server, uris, context))

    def _context_of_session(self) -> Context:
        envelope = self.peer.handshake.envelope(origin=self.peer.origin)
        return Context(Call(self, envelope, self.session))

    def reply(self, exchange: Exchange, result: Mapping[str, Any]) -> None:
        """Answer with a complete result, in the envelope of its era."""
        if exchange.envelope.revision.stateless:
            meta = {**result.get("_meta", _EMPTY), META_SERVER_INFO: self.server.info}
            result = {"resultType": "complete", **result, "_meta": meta}
        exchange.reply(result)

    def reply_rendered(self, exchange: Exchange, body: Rendered, tail: bytes = b"") -> None:
        """Answer with a result that is JSON already, without `_meta` of its own.

        Args:
            exchange: The request.
            body: The result: a JSON object with at least one key.
            tail: More members for 2026-07-28, each with a comma before it.
        """
        if exchange.envelope.revision.stateless:
            body = Rendered(
                b'{"resultType":"complete",%b%b%b' % (body[1:-1], tail, self.server.result_tail)
            )
        exchange.reply(body)

    def refuse(self, exchange: Exchange) -> None:
        """Answer a method that this server does not offer."""
        exchange.fail(METHOD_NOT_FOUND, f"Method not found: {exchange.request.method}")

    def crash(self, exchange: Exchange, error: BaseException) -> None:
        """Answer a request whose handler raised; what clients may not know goes to the log."""
        error = lone(error)
        if isinstance(error, InsufficientScope):
            try:
                scopes = needed(self.server, exchange.request, error.scopes)
            except ValueError as wrong:  # the author's: no name of a scope
                error = wrong
            else:
                self.deny(exchange, denial(exchange, scopes, self.transport))
                return
        if isinstance(error, McpError):
            exchange.fail(error.code, error.message, error.data)
            return
        if isinstance(error, RequestTimeout | ConnectionClosed):
            exchange.fail(INTERNAL_ERROR, timed_out(error))
            return
        exchange.mark("crashed")
        method = exchange.request.method
        self.server.crash_log.crash(method, "the handler of %s failed", method, error=error)
        exchange.fail(INTERNAL_ERROR, "Request handler failed")

    def deny(self, exchange: Exchange, error: McpError) -> None:
        """Answer somebody who lacks scopes.

        Args:
            exchange: The request.
            error: The answer, made by `denial`.
        """
        exchange.fail(error.code, error.message, error.data)

    def fail_call(self, exchange: Exchange, text: str) -> None:
        """Answer that a request failed for a reason that the peer may know."""
        if exchange.request.method == "tools/call":
            self.reply(exchange, ToolResult.error(text).to_wire())
        else:
            exchange.fail(INTERNAL_ERROR, text)

    def in_background(
        self,
        exchange: Exchange,
        work: Callable[[], Coroutine[Any, Any, None]],
        spec: Timed | None = None,
    ) -> Job:
        """Make the rest of the work on a request that calls the author's code.

        Whatever it raises becomes the one answer; cancellation passes.

        Args:
            exchange: The request.
            work: The work.
            spec: What is served; its timeout goes before the server's.
        """

        async def job() -> None:
            try:
                await work()
            except BaseException as error:
                if not is_crash(error):
                    raise
                self.crash(exchange, error)

        timeout = UNSET if spec is None else spec.timeout
        if isinstance(timeout, Unset):
            timeout = self.server.options.tool_timeout
        exchange.deadline = math.inf if timeout is None else trio.current_time() + timeout
        return job

    def log_level(self, envelope: Envelope) -> str | None:
        """Say from which level on a client wants log messages; None: none at all."""
        if envelope.revision.stateless:
            return envelope.log_level
        return self.peer.handshake.log_level

    def put_session(self, key: str, value: Any) -> None:
        """Store a value for later requests; the snapshots of running ones stay."""
        self.session = MappingProxyType({**self.session, key: value})

    def _notices(self, change: Hashable) -> list[Notification]:
        if isinstance(change, TaskChange):
            task = self.task_store.get(change.id)
            return [] if task is None else self._notices_of_task(task)
        if isinstance(change, tuple):  # a resource, by its URI
            return self.interests.updated(change[0], partial(self.may_hear, change[0]))
        return self.interests.changed(str(change))

    def _notices_of_task(self, task: RunningTask) -> list[Notification]:
        # What its call needs may have become more since they were agreed on.
        return self.interests.task_changed(
            task.id, task.to_wire(), lambda id_: task.admits(self._reader(id_))
        )

    def may_hear(self, uri: str, id_: Id | None) -> bool:
        """Tell whether a listen request, or for None the session, may hear of a resource now."""
        requires = self.server.registry.required_for(uri)
        return requires is None or requires.admits(self._reader(id_))

    def _reader(self, id_: Id | None) -> Principal | None:
        origin = self.peer.origin if id_ is None else self._listening[id_].envelope.origin
        return origin.principal

    def _send_change(self, change: Hashable, notices: list[Notification]) -> None:
        for notice in notices:
            self.send_notice(notice, change)
        task = self.task_store.get(change.id) if isinstance(change, TaskChange) else None
        if task is not None and notices:
            self.task_store.note_told(task)

    def send_notice(self, notice: Notification, _change: Hashable) -> None:
        """Send the notice of a change."""
        self.desk.send(notice)
