"""Events for listeners: one where a request begins, one where it ends, one for a notice."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

#: The kinds of events.
EventKind = Literal[
    "start", "stop", "error", "cancelled", "notice", "decision", "opened", "renewed", "closed"
]
#: The outcomes of a request.
Outcome = Literal[
    "ok", "input_required", "tool_error", "error", "crashed", "timed_out", "cancelled", "denied"
]
#: The decisions of policies.
Decision = Literal["allow", "deny"]

#: The kind of the last event of a request, by outcome: a listener that only counts failures needs
#: no table of its own.
ENDS: Final[Mapping[Outcome, EventKind]] = {
    "ok": "stop",
    "input_required": "stop",
    "tool_error": "error",
    "error": "error",
    "crashed": "error",
    "timed_out": "error",
    "denied": "error",
    "cancelled": "cancelled",
}
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Event(NamedTuple):
    """An event in the life of a request, a task or a notification.

    It holds no arguments and no results. Texts that a peer chose are cut to 256 characters.

    Attributes:
        kind: `start` of a request, and then exactly one of `stop` (it has its result), `error` (it
            failed, or its tool did) and `cancelled` (no task waits for it); or `notice`, a
            notification; or `decision` of the policies on a call. Of a connection of a
            client: `opened` once both sides agree on a revision, `renewed` when a new session
            begins in it, `closed` at its end.
        key: The number of the request, or of the connection, in this process: equal in all of its
            events, else unique.
        method: The method, cut; empty for a message that could not be read, and for a connection.
        transport: `stdio`, `http` or `memory`; `other` for a stream that a program gave `connect`.
        name: The name of the tool or prompt, or the URI, as the client sent it, cut.
        target: The registered name, URI or URI template that serves it. None if nothing registered
            does. So it takes few values, whatever clients send, and is fit for a metric. At a
            client: the name of the tool or prompt; None for a URI.
        outbound: True for a request or a notification that this end sends.
        task: True for a task, which has a start and an end of its own, with the outcomes of
            requests.
        nested: True for a call of a tool by a handler, `ctx.call_tool`: no message, but it has a
            start and an end with the outcomes of requests.
        parent: For a request to the client: the `key` of the request whose handler asks. For a
            task: the `key` of the request that began it. For a nested call: the `key` of the
            request, the task or the nested call whose handler calls. For a decision: the `key` of
            the call, if that is known. At a client: the `key` of the connection.
        request_id: The JSON-RPC id, a text cut.
        revision: The revision of the protocol; None if it is not known.
        session: A label of the connection: made up, and no secret. None on 2026-07-28.
        principal: The `Principal.key` of the verified caller; None without authentication.
        trace: `traceparent`, `tracestate` and `baggage` of its `_meta`, as far as sent; unchecked.
        bytes_in: Bytes of the message that came, without framing, if known.
        bytes_out: Bytes of the message that went, without framing, if known.
        server: At a client, the name of the server; None before it is known, and at a server.
        duration: Seconds from the start to the end.
        outcome: The outcome: `ok`; `input_required` (2026-07-28: the client is to come back);
            `tool_error` (a result with `isError`); `error` (an error, see `code`); `crashed` (the
            handler raised, or its result could not be sent); `timed_out`; `cancelled`; `denied` (by
            a policy).
        code: The code of the error that was answered.
        coerced: True at the end of a call of a tool whose arguments had text for other types.
        decision: `allow` or `deny`.
        policy: The policy that denied; None for a call that all of them let through.
        reason: Its reason, cut.
    """

    kind: EventKind
    key: int
    method: str
    transport: str
    name: str | None = None
    target: str | None = None
    outbound: bool = False
    task: bool = False
    nested: bool = False
    parent: int | None = None
    request_id: str | int | None = None
    revision: str | None = None
    session: str | None = None
    principal: str | None = None
    trace: Mapping[str, str] = _NOTHING
    bytes_in: int | None = None
    bytes_out: int | None = None
    server: str | None = None
    duration: float | None = None
    outcome: Outcome | None = None
    code: int | None = None
    coerced: bool = False
    decision: Decision | None = None
    policy: str | None = None
    reason: str | None = None


#: A listener of a server or a client, called with every event in the thread of the loop: it must
#: not block. Its exceptions are logged, and change nothing else.
Listen = Callable[[Event], object]


class Listener:
    """A listener that also surrounds handlers; any callable that takes an `Event` listens.

    Subclass it and define `__call__` and `around`.
    """

    def __call__(self, event: Event) -> None:
        """Hear an event, in the thread of the loop; must not block.

        Args:
            event: The event.
        """

    def around(self, event: Event) -> AbstractContextManager[object]:
        """Surround the work on a request, including its handler, with a context manager.

        It is entered twice: when the request is read, and in the task of its handler, if that
        waits. So it should set context variables only. It sees no exceptions. A task or a nested
        call is surrounded once.

        Args:
            event: The `start` of the request, of the task, or of the nested call.

        Returns:
            The context manager; by default it does nothing.
        """
        return nullcontext(event)

    async def confirm(self, event: Event) -> None:
        """Wait until a decision is kept: its call goes on after that.

        Only called where a subclass defines it, after the event was heard, in the task of the call.
        An exception denies the call.

        Args:
            event: The `decision`.
        """

    def trace_context(self, event: Event) -> Mapping[str, str]:
        """Give the keys of `_meta` that continue a trace at the other end (SEP-414).

        Args:
            event: The `start` of a request that a client sends.

        Returns:
            `traceparent`, `tracestate` and `baggage`, as far as wanted; by default nothing.
        """
        return _NOTHING
