"""Emitters of requests, tasks and nested calls. Without a listener nothing here runs.

Theory of operation. An emitter belongs to one request or task: its constructor emits the start,
`end` emits the only end. `mark` and `observe_result` store an outcome, the answer or the
cancellation ends the emitter, and later outcomes are ignored. A task has its own emitter, which
ends in a `finally`.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..._errors import InsufficientScope, McpError
from ..._value import JSONMapping
from ...engine import Ending, Job, is_crash
from ...events import (
    MAX_TEXT,
    Event,
    EventEmitter,
    EventKind,
    Outcome,
    Place,
    Telemetry,
    cut_id,
    make_event,
    next_key,
    read_trace,
)
from ...jsonrpc import Rendered, Request
from ...types import ToolResult

if TYPE_CHECKING:
    from .._server_context import ServerContext
    from ..policies._policy import PolicyCall

#: The method of each kind of call that policies check.
_METHODS: Final = {
    "tool": "tools/call",
    "prompt": "prompts/get",
    "resource": "resources/read",
    "completion": "completion/complete",
}


class Ends(Protocol):
    """A task, as its emitter uses it."""

    @property
    def outcome(self) -> tuple[Outcome, int | None]:
        """The outcome, and the code of the error."""


class RequestEmitter(EventEmitter):
    """One request of the client; an `engine.RequestObserver`.

    Args:
        request: The request.
        context: Its context.
        size: Bytes of its message, if known.
    """

    def __init__(self, request: Request, context: "ServerContext", size: int | None) -> None:
        telemetry = context.running.server.telemetry
        super().__init__(telemetry, _start_of(request, context, size))
        self._ending: Outcome | None = None

    def mark(self, ending: Ending) -> None:
        """Store the reason for the end; see `RequestObserver`."""
        self._ending = ending

    def observe_result(self, result: JSONMapping | Rendered) -> None:
        """Store the outcome of a result; see `RequestObserver`."""
        # A mark has priority: a timeout is answered with an `isError` result, but is no error of
        # the tool. A `Rendered` result is a list or a text, which are always complete.
        if self._ending is None and isinstance(result, Mapping):
            if result.get("isError") is True:
                self._ending = "tool_error"
            elif result.get("resultType") == "input_required":
                self._ending = "input_required"

    def observe_answer(self, size: int, code: int | None) -> None:
        """Record the end; see `RequestObserver`."""
        self.end(self._ending or ("ok" if code is None else "error"), code, size)

    def observe_cancellation(self) -> None:
        """Record the cancellation; see `RequestObserver`."""
        self.end("cancelled")

    def surround_question(self, request: Request) -> AbstractContextManager[None]:
        """Record a request to the client; see `RequestObserver`."""
        outbound = self.event._replace(
            key=next_key(),
            parent=self.event.key,
            outbound=True,
            method=request.method,
            request_id=request.id,
            name=None,
            target=None,
            bytes_in=None,
        )
        return EventEmitter(self._telemetry, outbound).recorded()


class TaskEmitter(EventEmitter):
    """One task: the work that continues after the answer to its request.

    Args:
        telemetry: The listeners.
        request: The start event of the request.
        task: The task; not running yet.
    """

    def __init__(self, telemetry: Telemetry, request: Event, task: Ends) -> None:
        start = request._replace(key=next_key(), task=True, parent=request.key, bytes_in=None)
        super().__init__(telemetry, start)
        self._task = task

    async def run(self, job: Job) -> None:
        """Run the task, and emit its end; see `EventEmitter`."""
        try:
            await super().run(job)
        finally:
            self.end(*self._task.outcome)


class NestedCallEmitter(EventEmitter):
    """One call of a tool by a handler.

    Args:
        ctx: The context of the handler.
        name: The name of the tool.
        spec: The tool; None if only an override of the server knows it.

    Attributes:
        ending: The reason for the end, if the result does not show it.
    """

    def __init__(self, ctx: "ServerContext", name: str, spec: Any) -> None:
        self.ending: Outcome | None = None
        start = _within(ctx, "start", "tools/call")._replace(
            nested=True, name=name[:MAX_TEXT], target=None if spec is None else spec.name
        )
        super().__init__(ctx.running.server.telemetry, start)

    async def record(self, call: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Make the call inside the context managers of the listeners, and emit its end.

        Raises:
            BaseException: The exceptions of the call.
        """
        try:
            with self._telemetry.around(self.event):
                result = await call()
        except BaseException as error:
            code = error.code if isinstance(error, McpError) else None
            failed: Outcome = (
                "error" if isinstance(error, McpError | InsufficientScope) else "crashed"
            )
            self.end(self.ending or (failed if is_crash(error) else "cancelled"), code)
            raise
        self.end(self.ending or ("tool_error" if result.is_error else "ok"))
        return result


def observe_task(ctx: "ServerContext", task: Ends) -> TaskEmitter | None:
    """Start the emitter of a task, if its request is recorded."""
    if ctx.emitter is None:
        return None
    return TaskEmitter(ctx.running.server.telemetry, ctx.emitter.event, task)


def observe_second_run(request: Request, ctx: "ServerContext", task: Ends) -> TaskEmitter | None:
    """Start the emitter of a task that runs again, without its request, if anyone listens."""
    telemetry = ctx.running.server.telemetry
    return (
        TaskEmitter(telemetry, _start_of(request, ctx, None), task) if telemetry.listeners else None
    )


def observe_decision(
    ctx: "ServerContext",
    call: "PolicyCall",
    policy: str | None,
    reason: str | None,
) -> Event:
    """Emit the decision of the policies on a call.

    Args:
        ctx: The request; or the session, for a call of `init`.
        call: The call.
        policy: The policy that denied; None if the call is allowed.
        reason: Its reason.
    """
    event = _within(ctx, "decision", _METHODS[call.kind])._replace(
        name=call.name[:MAX_TEXT],
        target=call.registered,
        decision="allow" if policy is None else "deny",
        policy=policy,
        reason=None if reason is None else reason[:MAX_TEXT],
    )
    ctx.server.telemetry.emit(event)
    return event


def _within(ctx: "ServerContext", kind: EventKind, method: str) -> Event:
    """Make an event for an action of a handler, or an action on its behalf."""
    revision, session = ctx.envelope.revision, ctx.dispatcher
    place = Place(ctx.transport, revision.name) if session is None else session.place(revision)
    around = ctx.emitter
    principal = ctx.auth
    return make_event(kind, method, place)._replace(
        parent=None if around is None else around.event.key,
        principal=None if principal is None else principal.key,
    )


def _start_of(request: Request, ctx: "ServerContext", size: int | None) -> Event:
    envelope = ctx.envelope
    name, spec = ctx.running.server.registry.subject_of(request, ctx, usable=False)
    principal = envelope.origin.principal
    if ctx.dispatcher is None:
        place = Place(ctx.running.transport, envelope.revision.name)
    else:
        place = ctx.dispatcher.place(envelope.revision)
    return make_event("start", request.method, place)._replace(
        name=None if name is None else name[:MAX_TEXT],
        target=None if spec is None else str(spec.definition[spec.key]),
        request_id=cut_id(request.id),
        principal=None if principal is None else str(principal.key),
        trace=read_trace(envelope.meta),
        bytes_in=size,
    )
