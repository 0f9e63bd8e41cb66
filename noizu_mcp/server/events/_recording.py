"""From messages to events; nothing here runs without a listener.

Theory of operation. A recording is one request or task: its constructor emits the start, `end`
emits the only end. `mark` and `observe_result` note an outcome, the answer or the cancellation ends
the recording, and whichever comes later is ignored. A task has a recording of its own, which ends
in a `finally`.
"""

import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ..._errors import InsufficientScope, McpError, RequestTimeout
from ...engine import Ending, Job, is_crash
from ...jsonrpc import Batch, Decoded, ErrorResponse, Id, Notification, Rendered, Request
from ...protocol import Dispatch, Fanout, Revision, Send
from ...protocol import Event as PeerEvent
from ...types import ToolResult
from ._event import ENDS, Event, EventKind, Outcome

if TYPE_CHECKING:
    from .._request_context import RequestContext
    from .._server_context import ServerContext
    from .._session import Session
    from ..policies._policy import PolicyCall
    from ._telemetry import Telemetry

#: Characters of a name, a URI or a method in an event. Clients choose these texts, and listeners
#: keep them in logs and metrics: a long one must not cost memory there.
MAX_TEXT: Final = 256
#: Where W3C trace context travels (2026-07-28 `basic/index`, `_meta`), and the characters that its
#: formats give it at most: Trace Context 3.2.2 and 3.3.1.5, Baggage 3.3.2.
TRACE_KEYS: Final[Mapping[str, int]] = {"traceparent": 256, "tracestate": 8192, "baggage": 8192}
#: The method of each kind of calls that policies judge.
_METHODS: Final = {
    "tool": "tools/call",
    "prompt": "prompts/get",
    "resource": "resources/read",
    "completion": "completion/complete",
}
_keys: Final = itertools.count(1)


def next_key() -> int:
    """Make the key of a request or a connection; see `Event`."""
    return next(_keys)


class Place(NamedTuple):
    """The place that a message comes from or goes to.

    Attributes:
        transport: As in `Event`.
        revision: As in `Event`.
        session: As in `Event`.
    """

    transport: str
    revision: str | None = None
    session: str | None = None


class Ends(Protocol):
    """A task, as its recording sees it."""

    @property
    def outcome(self) -> tuple[Outcome, int | None]:
        """The outcome, and the code of the error."""


class Recording:
    """One request or task: emits its start when it is made, and its end once.

    Args:
        telemetry: The listeners.
        start: The start event.

    Attributes:
        coerced: As in `Event`.
    """

    coerced = False

    def __init__(self, telemetry: "Telemetry", start: Event) -> None:
        self.event = start
        self._telemetry = telemetry
        self._over = False
        telemetry.emit(start)
        # After the start was emitted: the listeners do not count as time of the request. Not
        # trio's clock, which tests may move.
        self._began = perf_counter()

    def end(self, outcome: Outcome, code: int | None = None, size: int | None = None) -> None:
        """Emit the end, unless it was emitted before."""
        # An answer may race with a cancellation; the first one is what the peer saw.
        if not self._over:
            self._over = True
            seconds = perf_counter() - self._began
            self._telemetry.emit(
                self.event._replace(
                    kind=ENDS[outcome],
                    outcome=outcome,
                    code=code,
                    bytes_out=size,
                    duration=seconds,
                    coerced=self.coerced,
                )
            )

    async def run(self, job: Job) -> None:
        """Do the rest of the work inside the context managers of the listeners."""
        with self._telemetry.around(self.event):
            await job()


class RequestRecording(Recording):
    """One request of the client; an `engine.RequestObserver`."""

    def __init__(self, ctx: "RequestContext") -> None:
        super().__init__(ctx.running.server.telemetry, _start_of(ctx))
        self._ending: Outcome | None = None

    def mark(self, ending: Ending) -> None:
        """Note the reason of the coming end; see `RequestObserver`."""
        self._ending = ending

    def observe_result(self, result: Mapping[str, Any] | Rendered) -> None:
        """Note the result; see `RequestObserver`."""
        # A mark goes first: a timeout is answered with an `isError` result, and is no error of the
        # tool. A `Rendered` result is a list or a text, which are always complete.
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

    @contextmanager
    def surround_question(self, request: Request) -> Iterator[None]:
        """Record a request to the client; see `RequestObserver`."""
        outbound = self.event._replace(
            key=next(_keys),
            parent=self.event.key,
            outbound=True,
            method=request.method,
            request_id=request.id,
            name=None,
            target=None,
            bytes_in=None,
        )
        recording = Recording(self._telemetry, outbound)
        try:
            yield
        except McpError as error:
            recording.end("error", error.code)
            raise
        except BaseException as error:
            recording.end("timed_out" if isinstance(error, RequestTimeout) else "cancelled")
            raise
        recording.end("ok")


class TaskRecording(Recording):
    """One task: the work that continues after the answer to its request.

    Args:
        telemetry: The listeners.
        request: The start of the request.
        task: The task; it does not run yet.
    """

    def __init__(self, telemetry: "Telemetry", request: Event, task: Ends) -> None:
        start = request._replace(key=next(_keys), task=True, parent=request.key, bytes_in=None)
        super().__init__(telemetry, start)
        self._task = task

    async def run(self, job: Job) -> None:
        """Run the task, and emit its end; see `Recording`."""
        try:
            await super().run(job)
        finally:
            self.end(*self._task.outcome)


class NestedRecording(Recording):
    """One call of a tool by a handler.

    Args:
        ctx: The context of the handler.
        name: The name of the tool.
        spec: The tool; None if only an override of the server knows it.

    Attributes:
        ending: The reason of the coming end, where the result does not tell.
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


def observe_task(ctx: "RequestContext", task: Ends) -> TaskRecording | None:
    """Start the recording of a task, if its request is recorded."""
    if not isinstance(ctx.observer, RequestRecording):
        return None
    return TaskRecording(ctx.running.server.telemetry, ctx.observer.event, task)


def observe_request(ctx: "RequestContext") -> Job | None:
    """Begin a request, and record it."""
    ctx.observer = recording = RequestRecording(ctx)
    with ctx.running.server.telemetry.around(recording.event):
        job = ctx.begin()
    return None if job is None else partial(recording.run, job)


def observe_received(
    session: "Session", message: Decoded, event: PeerEvent | None, size: int | None
) -> None:
    """Emit the event of a message of a session; a dispatched request has its own recording.

    Args:
        session: The session.
        message: The message.
        event: Its meaning.
        size: Its bytes, if known.
    """
    if isinstance(message, Batch) and isinstance(event, Fanout):
        for each, meaning in zip(message.messages, event.events, strict=True):
            observe_received(session, each, meaning, None)
    elif not isinstance(event, Dispatch):
        place = _place(session, session.peer.revision_of(message))
        observe_message(session.running.server.telemetry, place, message, event, size)


def observe_message(
    telemetry: "Telemetry",
    place: Place,
    message: Decoded,
    event: PeerEvent | None,
    size: int | None,
) -> None:
    """Emit the events of a message that is answered without a handler, or ignored.

    Args:
        telemetry: The listeners.
        place: The place it came from.
        message: The message.
        event: Its meaning.
        size: Its bytes, if known.
    """
    if isinstance(message, Notification):
        observe_notice(telemetry, place, message, size)
    elif isinstance(event, Send):
        method = message.method if isinstance(message, Request) else ""
        answer = event.message
        start = _event("start", method, place)
        recording = Recording(telemetry, start._replace(request_id=_cut(answer.id), bytes_in=size))
        recording.end("error", answer.code if isinstance(answer, ErrorResponse) else None)


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
        policy: The policy that denied; None if the call may go on.
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
    """Make an event of something that a handler does, or that is done for it."""
    revision, session = ctx.envelope.revision, ctx.dispatcher
    place = Place(ctx.transport, revision.name) if session is None else _place(session, revision)
    around = ctx.recording
    principal = ctx.auth
    return _event(kind, method, place)._replace(
        parent=None if around is None else around.event.key,
        principal=None if principal is None else principal.key,
    )


def observe_notice(
    telemetry: "Telemetry",
    place: Place,
    notice: Notification,
    size: int | None,
    *,
    outbound: bool = False,
) -> None:
    """Emit the event of a notification.

    Args:
        telemetry: The listeners.
        place: The place it comes from, or goes to.
        notice: The notification.
        size: Its bytes, if known.
        outbound: True for one of ours.
    """
    event = _event("notice", notice.method, place)
    if outbound:
        telemetry.emit(event._replace(outbound=True, bytes_out=size))
    else:
        telemetry.emit(event._replace(bytes_in=size))


def observe_notice_sent(session: "Session", method: str, size: int) -> None:
    """Emit the event of a notification of ours in a session."""
    place = _place(session, session.peer.revision)
    telemetry = session.running.server.telemetry
    observe_notice(telemetry, place, Notification(method), size, outbound=True)


def _place(session: "Session", revision: Revision | None) -> Place:
    transport = session.running.transport
    if revision is None:
        return Place(transport)
    # 2026-07-28 has no sessions, on a pipe neither: a label would suggest that its requests belong
    # together.
    return Place(transport, revision.name, None if revision.stateless else session.label)


def _event(kind: EventKind, method: str, place: Place) -> Event:
    return Event(
        kind,
        next(_keys),
        method[:MAX_TEXT],
        place.transport,
        revision=place.revision,
        session=place.session,
    )


def _cut(id_: Id | None) -> Id | None:
    return id_[:MAX_TEXT] if isinstance(id_, str) else id_


def _start_of(ctx: "RequestContext") -> Event:
    request, envelope = ctx.request, ctx.envelope
    name, spec = ctx.running.server.registry.subject_of(request, ctx, usable=False)
    principal = envelope.origin.principal
    if ctx.dispatcher is None:
        place = Place(ctx.running.transport, envelope.revision.name)
    else:
        place = _place(ctx.dispatcher, envelope.revision)
    return _event("start", request.method, place)._replace(
        name=None if name is None else name[:MAX_TEXT],
        target=None if spec is None else str(spec.definition[spec.key]),
        request_id=_cut(request.id),
        principal=None if principal is None else str(principal.key),
        trace=read_trace(envelope.meta),
        bytes_in=ctx.size,
    )


def read_trace(meta: Mapping[str, Any]) -> dict[str, str]:
    """Pick out the keys that propagators read, unchecked: they ignore invalid values (SEP-414).

    Args:
        meta: The `_meta` of a request.
    """
    found = {key: meta.get(key) for key in TRACE_KEYS}
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, str) and len(value) <= TRACE_KEYS[key]
    }
