"""OpenTelemetry spans of requests, at both ends in one trace."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..events import Event, Listener

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


class Tracing(Listener):
    """Makes an OpenTelemetry span of each request; needs the extra `otel`.

    The parent is the span that `traceparent` in `_meta` names. The span that is current where the
    request is read, of the HTTP request for example, is then linked; without `traceparent` it is
    the parent. The span is current in handlers, also in sync ones, which run in threads. Spans of
    requests to the client are its children, and so are the spans of nested calls. A task has a span
    in its own trace, linked to the span of the request that began it. Spans hold no arguments, no
    results and no principal.

    For a client, `connect(…, telemetry=[Tracing()])`, the span of a request is a child of the span
    of its caller, and is sent as `traceparent`, so that the server continues the trace.

    Args:
        tracer_provider: Makes the spans; by default OpenTelemetry's global one.
        baggage: True to let handlers see the `baggage` of the client. Instrumented HTTP clients
            then send it on to other services, so the clients must be trusted. At a client: True to
            send the baggage of the caller to the server.

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
        """Make the span of a request current; see `Listener`."""
        return self._spans.current(event)

    def trace_context(self, event: Event) -> Mapping[str, str]:
        """Give the span of a request as its `traceparent`; see `Listener`."""
        return self._spans.trace_context(event)
