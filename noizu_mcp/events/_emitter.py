"""From messages to events; nothing here runs without a listener."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final, NamedTuple

from .._errors import McpError, RequestTimeout
from ..engine import Job
from ..jsonrpc import Decoded, ErrorResponse, Id, Notification, Request
from ..protocol import PeerEvent, SendAnswer
from ._event import ENDS, Event, EventKind, Outcome
from ._telemetry import Telemetry

#: Characters of a name, a URI or a method in an event. Clients choose these texts, and listeners
#: keep them in logs and metrics: a long one must not cost memory there.
MAX_TEXT: Final = 256
#: Where W3C trace context travels (2026-07-28 `basic/index`, `_meta`), and the characters that its
#: formats give it at most: Trace Context 3.2.2 and 3.3.1.5, Baggage 3.3.2.
TRACE_KEYS: Final[Mapping[str, int]] = {"traceparent": 256, "tracestate": 8192, "baggage": 8192}
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


class EventEmitter:
    """One request or task: emits its start when it is made, and its end once.

    Args:
        telemetry: The listeners.
        start: The start event.

    Attributes:
        coerced: As in `Event`.
    """

    coerced = False

    def __init__(self, telemetry: Telemetry, start: Event) -> None:
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

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """End as the block ends, unless the block has said more."""
        try:
            yield
        except McpError as error:
            self.end("error", error.code)
            raise
        except Exception as error:
            self.end("timed_out" if isinstance(error, RequestTimeout) else "error")
            raise
        except BaseException:  # trio.Cancelled: the caller has given up
            self.end("cancelled")
            raise
        self.end("ok")

    async def run(self, job: Job) -> None:
        """Do the rest of the work inside the context managers of the listeners."""
        with self._telemetry.around(self.event):
            await job()


def observe_message(
    telemetry: Telemetry,
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
    elif isinstance(event, SendAnswer):
        method = message.method if isinstance(message, Request) else ""
        answer = event.message
        start = make_event("start", method, place)
        emitter = EventEmitter(
            telemetry, start._replace(request_id=cut_id(answer.id), bytes_in=size)
        )
        emitter.end("error", answer.code if isinstance(answer, ErrorResponse) else None)


def observe_notice(
    telemetry: Telemetry,
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
        outbound: True if this side sent it.
    """
    event = make_event("notice", notice.method, place)
    if outbound:
        telemetry.emit(event._replace(outbound=True, bytes_out=size))
    else:
        telemetry.emit(event._replace(bytes_in=size))


def make_event(kind: EventKind, method: str, place: Place) -> Event:
    """Make an event with a key of its own."""
    return Event(
        kind,
        next(_keys),
        method[:MAX_TEXT],
        place.transport,
        revision=place.revision,
        session=place.session,
    )


def cut_id(id_: Id | None) -> Id | None:
    """Cut an id that is a text to `MAX_TEXT` characters."""
    return id_[:MAX_TEXT] if isinstance(id_, str) else id_


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
