"""Events for listeners: one where a request begins, one where it ends, one for a notice."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

#: What an event says.
EventKind = Literal["start", "stop", "error", "cancelled", "notice"]
#: How a request ended.
Outcome = Literal[
    "ok", "input_required", "tool_error", "error", "crashed", "timed_out", "cancelled"
]

#: The event that says how a request ended.
ENDS: Final[Mapping[Outcome, EventKind]] = {
    "ok": "stop",
    "input_required": "stop",
    "tool_error": "error",
    "error": "error",
    "crashed": "error",
    "timed_out": "error",
    "cancelled": "cancelled",
}
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Event(NamedTuple):
    """Something that happened to a request, a task or a notification.

    It holds no arguments and no results. Texts that a peer chose are cut to 256 characters.

    Attributes:
        kind: `start` of a request, and then exactly one of `stop` (it has its result), `error` (it
            failed, or its tool did) and `cancelled` (nobody waits for it); or `notice`, a
            notification.
        key: Names the request in this process: the same in its two events, and no other's.
        method: The method, cut; empty for a message that could not be read.
        transport: `stdio`, `http` or `memory`.
        name: The name of the tool or prompt, or the URI, as the client sent it, cut.
        target: The same as it is registered: a name, a URI or a URI template. None if nothing
            registered serves it. So it takes few values, whatever clients send.
        outbound: True for what the server sends: a request to the client, a notification.
        task: True for what goes on as a task after its request was answered: it has a start and
            an end of its own, with the same outcomes.
        parent: For a request to the client: the `key` of the request whose handler asks. For a
            task: that of the request that began it.
        request_id: The JSON-RPC id, a text cut.
        revision: The revision of the protocol; None if it is not known.
        session: Names the connection: made up, and no secret. None on 2026-07-28.
        principal: Names the verified caller, as `Principal.key`; None where nobody is verified.
        trace: `traceparent`, `tracestate` and `baggage` of its `_meta`, as far as sent; unchecked.
        bytes_in: Bytes of the message that came, without framing, if known.
        bytes_out: Bytes of the message that went, without framing, if known.
        duration: Seconds from the start to the end.
        outcome: How it ended: `ok`; `input_required` (2026-07-28: the client is to come back);
            `tool_error` (a result with `isError`); `error` (an error, see `code`); `crashed` (the
            handler raised, or its result could not be sent); `timed_out`; `cancelled`.
        code: The code of the error that was answered.
    """

    kind: EventKind
    key: int
    method: str
    transport: str
    name: str | None = None
    target: str | None = None
    outbound: bool = False
    task: bool = False
    parent: int | None = None
    request_id: str | int | None = None
    revision: str | None = None
    session: str | None = None
    principal: str | None = None
    trace: Mapping[str, str] = _NOTHING
    bytes_in: int | None = None
    bytes_out: int | None = None
    duration: float | None = None
    outcome: Outcome | None = None
    code: int | None = None


#: Is called with every event, in the thread of the loop: it must not block. What it raises is
#: logged, and changes nothing else.
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
        """Surround the work on a request, its handler too, with a context manager of your own.

        It is entered twice: where the request is read, and in the task of its handler, if that
        waits. So what it sets is a context variable. It sees no exceptions. The work of a task is
        surrounded once.

        Args:
            event: The `start` of the request, or of the task.

        Returns:
            What is entered; one that does nothing unless overridden.
        """
        return nullcontext(event)
