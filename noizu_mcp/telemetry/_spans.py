"""The OpenTelemetry spans of `Tracing`; loads with the first one.

Sources: SEP-414 (trace context in `_meta`); OpenTelemetry's semantic conventions for MCP, which are
in development and replace the conventions for JSON-RPC.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .._version import __version__
from ..events import Event
from ..protocol import CLIENT_REQUESTS, SERVER_REQUESTS

_METHODS: Final = frozenset({*CLIENT_REQUESTS, *SERVER_REQUESTS})
#: The attribute for `Event.name`, by method.
_NAMES: Final = {
    "tools/call": "gen_ai.tool.name",
    "prompts/get": "gen_ai.prompt.name",
    "resources/read": "mcp.resource.uri",
    "resources/subscribe": "mcp.resource.uri",
    "resources/unsubscribe": "mcp.resource.uri",
}
#: `network.transport` by `Event.transport`; in memory there is no network.
_TRANSPORTS: Final = {"stdio": "pipe", "http": "tcp"}
#: `error.type` by outcome, where there is no code.
_ERRORS: Final = {"timed_out": "timeout", "denied": "denied"}
_CONTEXT = TraceContextTextMapPropagator()
_BAGGAGE = W3CBaggagePropagator()


class Spans:
    """The open spans, by the keys of their events.

    Args:
        tracer_provider: Makes the spans; by default OpenTelemetry's global one.
        baggage: True to let handlers see the `baggage` of the client, and to send that of the
            caller of a client.
    """

    def __init__(self, tracer_provider: trace.TracerProvider | None, *, baggage: bool) -> None:
        self._tracer = trace.get_tracer("noizu_mcp", __version__, tracer_provider)
        self._baggage = baggage
        self._open: dict[int, tuple[trace.Span, otel.Context]] = {}

    def begin(self, event: Event) -> None:
        """Begin the span of a request or a task."""
        context, links = self._parent_of(event)
        span = self._tracer.start_span(
            _name_of(event), context, _kind_of(event), _attributes_of(event), links
        )
        self._open[event.key] = span, trace.set_span_in_context(span, context)

    def end(self, event: Event) -> None:
        """End a span; notices, and requests older than the listener, have no span."""
        if event.key not in self._open:
            return
        span, _ = self._open.pop(event.key)
        span.set_attribute("noizu_mcp.outcome", str(event.outcome))
        if event.coerced:
            span.set_attribute("noizu_mcp.coerced", True)
        if event.bytes_out is not None:
            span.set_attribute("noizu_mcp.bytes_out", event.bytes_out)
        if event.code is not None:
            span.set_attribute("rpc.response.status_code", str(event.code))
        if event.kind == "error":
            # `error.type` of the conventions: few values, the code where there is one.
            other = _ERRORS.get(str(event.outcome), "tool_error")
            span.set_attribute("error.type", other if event.code is None else str(event.code))
            span.set_status(trace.StatusCode.ERROR)
        span.end()

    @contextmanager
    def current(self, event: Event) -> Iterator[None]:
        """Make the span of an event current, if it has one."""
        if event.key not in self._open:
            yield
            return
        token = otel.attach(self._open[event.key][1])
        try:
            yield
        finally:
            otel.detach(token)

    def trace_context(self, event: Event) -> dict[str, str]:
        """Give the keys of `_meta` that name the span of an event as the parent."""
        carrier: dict[str, str] = {}
        if event.key in self._open:
            context = self._open[event.key][1]
            _CONTEXT.inject(carrier, context)
            if self._baggage:
                _BAGGAGE.inject(carrier, context)
        return carrier

    def _parent_of(self, event: Event) -> tuple[otel.Context, list[trace.Link]]:
        context = otel.get_current()
        if event.outbound or event.nested:
            return context, []
        ambient = trace.get_current_span(context).get_span_context()
        if event.task:
            # The task outlives the request, whose trace may be complete by then. OpenTelemetry,
            # "Links between spans", has a linked trace for long work that a fast request began.
            context = trace.set_span_in_context(trace.INVALID_SPAN, context)
        else:
            context = _CONTEXT.extract(event.trace, context)
            if self._baggage:
                context = _BAGGAGE.extract(event.trace, context)
        parent = trace.get_current_span(context).get_span_context()
        linked = ambient.is_valid and parent != ambient
        return context, [trace.Link(ambient)] if linked else []


def _name_of(event: Event) -> str:
    """Name a span; clients must not be able to make up names of spans."""
    named = event.target if _NAMES.get(event.method, "").startswith("gen_ai") else None
    known = event.method if event.method in _METHODS else "unknown method"
    return " ".join(filter(None, ("task" if event.task else known, named)))


def _kind_of(event: Event) -> trace.SpanKind:
    if event.task or event.nested:
        return trace.SpanKind.INTERNAL
    return trace.SpanKind.CLIENT if event.outbound else trace.SpanKind.SERVER


def _attributes_of(event: Event) -> dict[str, str | int]:
    values: dict[str, str | int | None] = {
        "mcp.method.name": event.method,
        "mcp.protocol.version": event.revision,
        "mcp.session.id": event.session,
    }
    if not event.nested:  # which is no message
        values |= {
            "rpc.system.name": "jsonrpc",
            "jsonrpc.protocol.version": "2.0",
            "jsonrpc.request.id": None if event.request_id is None else str(event.request_id),
            "network.transport": _TRANSPORTS.get(event.transport),
            "noizu_mcp.bytes_in": event.bytes_in,
            "noizu_mcp.server": event.server,
        }
    if event.method in _NAMES:
        values[_NAMES[event.method]] = event.name
    if event.method == "tools/call":
        values["gen_ai.operation.name"] = "execute_tool"
    return {name: value for name, value in values.items() if value is not None}
