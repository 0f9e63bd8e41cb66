"""`ServerRequest`: a request of a client in flight.

The engine answers, cancels and times it as an `InboundRequest`. The handler gets a context, which
is made on first use: a short tool without `ctx` needs no context.
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from .._errors import (
    ConnectionClosed,
    Denied,
    DeniedHidden,
    InsufficientScope,
    LocalProtocolError,
    McpError,
    NoSessionError,
    RequestTimeout,
)
from .._util import UNSET, Unset
from .._value import JSONMapping, JSONObject
from ..engine import BatchReply, InboundRequest, InFlight, Job, ReplyChannel, is_crash
from ..events import EventEmitter
from ..jsonrpc import DENIED, INTERNAL_ERROR, METHOD_NOT_FOUND, Id, digest_of
from ..protocol import CLIENT_REQUESTS, Dispatch
from ..types import META_SERVER_INFO, InputRequest, InputRequired, ToolResult
from ._contracts import EMPTY, TaskStart
from ._server_context import NOT_SENT, ServerContext
from .calls._client_abilities import prepare_question, prepare_questions
from .calls._emitters import RequestEmitter
from .calls._invoke import NO_SESSION, TIMED_OUT, chosen_error, log_no_session, timed_out
from .calls._scope_checks import check_request_scopes, denial, needed
from .threads._abandoned import TooManyAbandoned
from .threads._fair_limiter import ClientShare

if TYPE_CHECKING:
    from ..components import PromptSpec, ResourceSpec, TemplateSpec, ToolSpec
    from ..types import RequireScopes
    from ._running import RunningServer
    from ._session import Session
    from .asking._live import LiveAsker
    from .asking._rounds import RoundAsker
    from .changes._feed import ChangeFeed

    Component = ToolSpec | PromptSpec | ResourceSpec | TemplateSpec

#: Methods that may be answered with questions (2026-07-28 `basic/patterns/mrtr`), in every era.
ASKING: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


class ServerRequest(InboundRequest):
    """A request of a client; `Session.begin` and `StatelessRequests.serve_one` make it.

    Args:
        running: The server while it is served.
        dispatcher: The session; None for a request of 2026-07-28 over HTTP.
        in_flight: Holds the request until it is answered.
        event: The request and its envelope.
        channel: Takes its messages.
        size: Bytes of its message, if known.
        key: Names it among the requests in flight; None for its id.
        batch: Gathers its answer, if it came in an array.

    Attributes:
        running: See Args.
        dispatcher: See Args.
        size: See Args.
        component: The registration that answers it; None if unknown.
        asker: Asks the client; None until the handler asks something.
        resumed: The request whose parked handler continues with this one; else None.
        task_start: The start of the task of the call; None if the call has no task.
        feed: The feed of an open listen request.
        known_context: The context of the call; None until it is made.
        attempt: The number of this run of a task, from 1.
    """

    # Plain attributes with defaults: most requests do not set them.
    component: "Component | None" = None
    asker: "LiveAsker | RoundAsker | None" = None
    resumed: "ServerRequest | None" = None
    task_start: TaskStart | None = None
    feed: "ChangeFeed | None" = None
    known_context: ServerContext | None = None
    attempt = 1
    _progress: float | None = None
    _claimed = False  # its state, for this node

    def __init__(
        self,
        running: "RunningServer",
        dispatcher: "Session | None",
        in_flight: InFlight,
        event: Dispatch,
        channel: ReplyChannel,
        *,
        size: int | None = None,
        key: Id | None = None,
        batch: BatchReply | None = None,
    ) -> None:
        super().__init__(in_flight, event.request, event.envelope, channel, key=key, batch=batch)
        self.running = running
        self.dispatcher = dispatcher
        self.size = size

    @property
    def context(self) -> ServerContext:
        """The context of the handler, made on first use."""
        if self.known_context is None:
            self.known_context = ServerContext(self, self.running)
            if self.request.method == "tools/call":
                self.known_context.tool = (self.request.params or {}).get("name")
        return self.known_context

    # The way of a request through the server

    def begin(self) -> Job | None:
        """Answer the request at once, or return the rest of the work on it."""
        running, server = self.running, self.running.server
        outdated = None
        if server.registry.providers is not None:
            outdated = running.provider_lists.find_outdated(self.request, self.context)
        if running.listeners and self.observer is None:
            return self._begin_recorded()
        if running.node is not None and not self._claimed and self._carries_state():
            return self._begin_claimed
        method = CLIENT_REQUESTS[self.request.method]
        feature = method.capability
        # A method without its capability is unknown (MethodNotFoundError of the schema).
        if feature not in server.registry.offered and feature:
            self.send_failure(self.unknown_method())
            return None
        return self._route() if outdated is None else partial(self._route_prepared, outdated)

    def _begin_recorded(self) -> Job | None:
        """Begin the request inside the context managers of the listeners."""
        self.observer = emitter = RequestEmitter(self.request, self.context, self.size)
        with self.running.server.telemetry.around(emitter.event):
            job = self.begin()
        return None if job is None else partial(emitter.run, job)

    def _carries_state(self) -> bool:
        """Tell whether this is a retry whose handler does not wait in this process."""
        if not self.envelope.revision.stateless or self.request.method not in ASKING:
            return False
        state = (self.request.params or EMPTY).get("requestState")
        return isinstance(state, str) and not self.running.parked.waits_for(state)

    async def _begin_claimed(self) -> None:
        """Begin a retry that another node may get as well."""
        from .asking._rounds import binding_of

        params = self.request.params or {}
        try:
            await self.running.claims.take(params["requestState"], binding_of(self))
        except McpError as error:
            self.send_failure(error)
            return
        self._claimed = True
        job = self.begin()
        if job is not None:
            self.expire_at(self.deadline)  # its scope exists already
            await job()

    async def _route_prepared(self, feature: str) -> None:
        """Do the rest of the work after the providers were asked."""
        await self.running.provider_lists.prepare(self.context, feature)
        job = self._route()
        if job is not None:
            self.expire_at(self.deadline)  # its scope exists already
            await job()

    def _route(self) -> Job | None:
        """Check the scopes, and pass the request to its feature."""
        running, server = self.running, self.running.server
        try:
            if server.registry.scoped or server.options.requires is not None:
                # Before the route, and so before any code of the author.
                check_request_scopes(self.request, self.context)
            return running.routes[self.request.method](self)
        except BaseException as error:
            if not is_crash(error):
                raise
            self.send_failure(error)
        return None

    def resume_rounds(self) -> bool:
        """Resume with the answers and the state of an earlier round of this request.

        Returns:
            True if the handler of that round was parked and continues: there is nothing else to do.

        Raises:
            McpError: The state of the request is not valid for it (-32602).
        """
        params = self.request.params
        if not params or not ("requestState" in params or "inputResponses" in params):
            return False
        if self.asker is not None:  # done already, before the policy checks
            return False
        # Before 2026-07-28 these params have no meaning. They are ignored as unknown params.
        if not self.envelope.revision.stateless:
            return False
        from .asking._rounds import resume

        return resume(self)

    def limit_time(self, component: "Component | None") -> None:
        """Set the deadline of the request; a handler runs afterwards.

        Args:
            component: Its timeout overrides the server's; None if no registered component answers.
        """
        self.component = component
        timeout = UNSET if component is None else component.timeout
        if isinstance(timeout, Unset):
            timeout = self.running.server.options.tool_timeout
        deadline = math.inf if timeout is None else trio.current_time() + timeout
        if self.envelope.revision.stateless and self.envelope.client_capabilities:
            has_context = component is None or component.takes_context
            if has_context or self.running.server.registry.overridden:
                _ = self.params_digest  # before the handler, which may change its arguments
        if self.trio_task is None:
            self.deadline = deadline
        else:  # a policy has waited
            self.expire_at(deadline)

    @cached_property
    def params_digest(self) -> str:
        """A digest of the params, which is the same for every retry."""
        # `_meta` differs in each retry; the other two are added by a retry.
        own = dict(self.request.params or {})
        for name in ("_meta", "inputResponses", "requestState"):
            own.pop(name, None)
        return digest_of(own)

    # Parking

    @property
    def parked(self) -> bool:
        """True while the handler waits for a retry: the request is answered."""
        return self.asker is not None and self.asker.parked

    def take_asker(self, asker: "RoundAsker") -> None:
        """Ask with the answers and the state of this request."""
        self.asker = asker

    def resume_as(self, retry: "ServerRequest") -> None:
        """Let the parked handler continue, with a retry as the request in flight.

        Args:
            retry: The retry. Its caller continues with its `resumed`.
        """
        retry.resumed = self
        if self.running.transport == "http":
            self.running.working[self] = None
        self.answered = self.withdrawn = False
        self.in_flight, self.key = retry.in_flight, retry.key
        self.request, self.envelope = retry.request, retry.envelope
        self.channel, self.observer, self.size = retry.channel, retry.observer, retry.size
        self._progress = None  # the retry has a progress token of its own

    # Answers

    def complete(self, result: JSONMapping) -> None:
        """Answer with a complete result, in the form of its era."""
        if self.envelope.revision.stateless:
            # The server's own key is last: the author's `_meta` must not replace it.
            meta = {**result.get("_meta", EMPTY), META_SERVER_INFO: self.running.server.info}
            result = {"resultType": "complete", **result, "_meta": meta}
        self.send_result(result)

    def complete_rendered(self, *members: bytes, tail: bytes = b"") -> None:
        """Answer with a result that is already JSON and has no `_meta`.

        Args:
            members: Parts of its members, as JSON text; at least one member.
            tail: More members for 2026-07-28, each with a comma before it.
        """
        if self.envelope.revision.stateless:
            end = self.running.server.result_tail
            self.send_result((b'{"resultType":"complete",', *members, tail, end))
        else:
            self.send_result((b"{", *members, b"}"))

    def unknown_method(self) -> McpError:
        """Make the error for a method that the server does not offer."""
        return McpError(METHOD_NOT_FOUND, f"Method not found: {self.request.method}")

    def send_failure(self, error: BaseException) -> None:
        """Answer a request whose handler raised. Details of a crash are logged only."""
        error = chosen_error(error)
        server = self.running.server
        if isinstance(error, InsufficientScope):
            try:
                scopes = needed(self.request, self.context, error.scopes)
            except ValueError as wrong:  # the author required an invalid scope name
                error = wrong
            else:
                error = denial(self, scopes, self.running.transport)
                # Called before the answer: over HTTP it sets the challenge of that answer.
                if self.running.on_denied is not None:
                    self.running.on_denied(self, error)
        if isinstance(error, McpError):
            self.send_error(error.code, error.message, error.data)
            return
        if isinstance(error, Denied):
            self._deny(error)
            return
        if isinstance(error, RequestTimeout | ConnectionClosed | TooManyAbandoned):
            busy = isinstance(error, TooManyAbandoned)
            self.send_error(INTERNAL_ERROR, str(error) if busy else timed_out(error))
            return
        self.mark_ending("crashed")
        what = f"the handler of {self.request.method}"
        source = what if self.component is None else self.component.source
        if isinstance(error, NoSessionError):
            log_no_session(server, source, error)
            self.send_error(INTERNAL_ERROR, NO_SESSION)
            return
        server.crash_log.crash(source, "%s failed", source, error=error)
        self.send_error(INTERNAL_ERROR, "Request handler failed")

    def _deny(self, error: Denied) -> None:
        self.mark_ending("denied")
        if isinstance(error, DeniedHidden):
            self.send_failure(error.answer)
        else:
            self.send_reason(str(error), DENIED)

    def send_reason(self, text: str, code: int = INTERNAL_ERROR) -> None:
        """Answer that the request failed, with a reason that may be shown to the peer.

        Args:
            text: The reason.
            code: The code of the error, for all methods except `tools/call`.
        """
        if self.request.method == "tools/call":
            # Models read the results of tools. They never see protocol errors.
            self.complete(ToolResult.error(text).to_wire())
        else:
            self.send_error(code, text)

    def expire(self) -> None:
        """Answer that the deadline has passed; see `InboundRequest`."""
        if self.request.method == "tools/call":
            self.mark_ending("timed_out")
            self.complete(TIMED_OUT.to_wire())
        else:
            super().expire()

    @property
    def handshake_session(self) -> "Session":
        """The session of a request whose method exists in handshake revisions only."""
        # The peers refuse such a method on 2026-07-28, so the request has a session.
        return cast("Session", self.dispatcher)

    def withdraw(self) -> None:
        """End without an answer; see `InboundRequest`."""
        super().withdraw()
        if self.feed is not None:
            self.feed.hang_up(self)

    def offer_task(self, task_start: TaskStart) -> None:
        """Let the handler begin a task."""
        self.task_start = task_start

    def serve_with(self, component: "Component | None") -> None:
        """Store the registration that answers the request."""
        self.component = component

    def listen(self, feed: "ChangeFeed") -> None:
        """Keep the request open, as a listen request of a feed."""
        self.feed = feed

    @property
    def stays_open(self) -> bool:
        """True for a listen request; see `InboundRequest`."""
        return self.feed is not None

    # A `HandledRequest`

    @property
    def cancelled(self) -> bool:
        """True once the peer expects no answer: cancelled, timed out or answered."""
        return self.withdrawn or (self.answered and not self.parked)

    @property
    def threads(self) -> ClientShare:
        """The threads of sync handlers, as this client may use them."""
        return self.running.server.threads.of(self.envelope.origin.client)

    @property
    def emitter(self) -> EventEmitter | None:
        """The emitter of the request; None without listeners."""
        return self.observer if isinstance(self.observer, RequestEmitter) else None

    @property
    def input_responses(self) -> JSONMapping:
        """The answers to an `InputRequired` of the handler."""
        return EMPTY if self.asker is None else self.asker.responses

    @property
    def request_state(self) -> str | None:
        """The state of an `InputRequired` of the handler."""
        return None if self.asker is None else self.asker.state

    @property
    def completion_arguments(self) -> Mapping[str, str]:
        """In a completion: the arguments that are filled in already."""
        context = (self.request.params or {}).get("context")
        arguments = context.get("arguments") if isinstance(context, Mapping) else None
        if self.request.method != "completion/complete" or not isinstance(arguments, Mapping):
            return EMPTY
        # `context` exists since 2025-06-18 and is optional. Malformed entries are left out: the
        # completion is only less precise.
        return {name: value for name, value in arguments.items() if isinstance(value, str)}

    def need(self, missing: str) -> None:
        """Do nothing: this is a request; see `HandledRequest`."""

    def check_scopes(self, scopes: "RequireScopes") -> None:
        """Check that the caller holds the scopes.

        Raises:
            InsufficientScope: The caller does not.
        """
        scopes.check(self.envelope.origin.principal)

    def send(self, method: str, params: JSONMapping) -> Awaitable[None]:
        """Send a notification, from any thread."""
        # Through the portal: sync handlers run in other threads.
        return self.running.portal.run(partial(self.send_notice, method, params))

    def send_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> Awaitable[None]:
        """Send progress, if the client asked for it and it has increased."""
        token = self.envelope.progress_token
        last = self._progress
        # Progress must increase with each notification (`basic/utilities/progress`). Other reports
        # are dropped, since a late report of a thread is not an error.
        if token is None or (last is not None and progress <= last):
            return NOT_SENT
        self._progress = progress
        params: JSONObject = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        return self.send("notifications/progress", params)

    def end_stream(self, retry_after: float) -> None:
        """Let the client reconnect for the rest."""
        self.running.portal.run(partial(self.release, retry_after))

    @property
    def _asker(self) -> "LiveAsker | RoundAsker":
        if self.asker is None:
            if self.request.method not in ASKING:
                raise LocalProtocolError("only tools, prompts and resources can ask, or run steps")
            # By the revision of the request, not by the transport: one pipe may carry both eras
            # (2026-07-28 `basic/versioning`), and a stateless request has a session object there,
            # too.
            if self.dispatcher is None or self.envelope.revision.stateless:
                from .asking._rounds import RoundAsker

                self.asker = RoundAsker(self)
            else:
                from .asking._live import LiveAsker, RequestLine

                self.asker = LiveAsker(RequestLine(self, self.dispatcher), self)
        return self.asker

    async def ask(
        self, request: InputRequest, read: Callable[[Any], Any], timeout: float | Unset | None
    ) -> Any:
        """Ask the client, in the way of its era, and wait for the answer."""
        asker = self._asker
        prepared = prepare_question(self.envelope, self.request.method, request)
        return await asker.ask(prepared, read, timeout)

    async def step(self, function: Callable[..., Any], *args: object) -> Any:
        """Run a side effect once; see `Context`."""
        from .asking._record import as_step

        return await self._asker.step(*as_step(function, args))

    async def retry(self, required: InputRequired) -> bool:
        """Ask the questions of an `InputRequired` of the handler; see `HandledRequest`."""
        prepared = prepare_questions(self.envelope, self.request.method, required)
        return await self._asker.retry(prepared)
