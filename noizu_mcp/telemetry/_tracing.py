"""OpenTelemetry spans of requests, in the trace that the client began."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..server import Event, Listener

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


class Tracing(Listener):
    """Makes an OpenTelemetry span of each request; needs the extra `otel`.

    The parent is the span that `traceparent` in `_meta` names; the span that is current where the
    request is read, such as that of the HTTP request, is linked then, and the parent otherwise.
    The span is current in handlers, sync ones in threads too. Requests to the client have spans
    below it. What goes on as a task has a span in a trace of its own, linked to that of the request
    that began it. Spans hold no arguments, no results and no principal.

    Args:
        tracer_provider: Makes the spans; OpenTelemetry's global one unless given.
        baggage: Let handlers see the `baggage` of the client. What they call with an instrumented
            client then gets it, too: only for clients whose baggage may go there.

    Raises:
        ImportError: opentelemetry-api is not installed.
    """

    def __init__(
        self, *, tracer_provider: "TracerProvider | None" = None, baggage: bool = False
    ) -> None:
        try:
            from ._spans import Spans
        except ImportError as error:
            text = "tracing needs opentelemetry-api: pip install 'noizu-mcp[otel]'"
            raise ImportError(text) from error
        self._spans = Spans(tracer_provider, baggage=baggage)

    def __call__(self, event: Event) -> None:
        """Begin or end a span; see `Listener`."""
        if event.kind == "start":
            self._spans.begin(event)
        else:
            self._spans.end(event)

    def around(self, event: Event) -> AbstractContextManager[None]:
        """Make the span of a request the current one; see `Listener`."""
        return self._spans.current(event)
