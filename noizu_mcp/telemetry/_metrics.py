"""Prometheus metrics of one server, in a registry of their own."""

from collections.abc import Callable
from typing import Final

from ..protocol import CLIENT_REQUESTS, SERVER_REQUESTS
from ..server import Event, Server

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
except ImportError as error:
    raise ImportError(
        "metrics need prometheus_client: pip install 'noizu-mcp[prometheus]'"
    ) from error

#: Names of tools, prompts and resources that have series of their own; the rest share `other`.
#: A name costs some twenty series, and names may come and go while a server runs.
MAX_NAMES: Final = 500
#: What a value is called that could be anything.
OTHER: Final = "other"
#: Seconds. Local calls take milliseconds, and `tool_timeout` is 30 s.
BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_METHODS: Final = frozenset(
    {
        *CLIENT_REQUESTS,
        *SERVER_REQUESTS,
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
    }
)


class Metrics:
    """Counts what a server does; needs the extra `prometheus`.

    It listens from now on. Labels take few values, whatever clients send: methods that the protocol
    has, names that are registered, and `other`. Metrics:

    * `mcp_requests_total` and `mcp_request_duration_seconds` (a histogram) by `method` and `name`;
      the former by `outcome`, too: see `Event`
    * `mcp_requests_in_flight` by `method`
    * `mcp_received_bytes_total`, `mcp_sent_bytes_total`: of messages, by `method`
    * `mcp_notifications_total` by `method` and `direction`: `in`, `out`
    * `mcp_sessions`, `mcp_streams`: see `Telemetry`
    * `mcp_registered` by `kind`: `tools`, `resources` (with templates), `prompts`

    Args:
        server: The server.
        registry: Where the metrics go; a new registry unless given, with nothing else in it.

    Attributes:
        server: As given.
        registry: Where they are; for pushing, or for a web server of your own.

    Raises:
        ValueError: The registry has such metrics already.
        ImportError: prometheus_client is not installed.
    """

    #: Every release of Prometheus reads this version; names and labels of ours need no later one.
    content_type: Final[str] = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, server: Server, *, registry: CollectorRegistry | None = None) -> None:
        self.server = server
        self.registry = registry = CollectorRegistry() if registry is None else registry
        self._names: set[str] = set()
        self._running: set[int] = set()
        labels = ("method", "name")
        self._requests = Counter(
            "mcp_requests", "Requests that have ended.", (*labels, "outcome"), registry=registry
        )
        self._durations = Histogram(
            "mcp_request_duration_seconds",
            "Time from a request to its end.",
            labels,
            registry=registry,
            buckets=BUCKETS,
        )
        self._in_flight = Gauge(
            "mcp_requests_in_flight", "Requests without an answer.", ("method",), registry=registry
        )
        self._received = Counter(
            "mcp_received_bytes", "Bytes of messages that came.", ("method",), registry=registry
        )
        self._sent = Counter(
            "mcp_sent_bytes", "Bytes of answers and notifications.", ("method",), registry=registry
        )
        self._notifications = Counter(
            "mcp_notifications", "Notifications.", ("method", "direction"), registry=registry
        )
        self._measure()
        server.telemetry.add(self)

    def _measure(self) -> None:
        """Register what is looked up when somebody asks."""
        server, telemetry = self.server, self.server.telemetry
        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "mcp_sessions": ("Connections after a handshake.", lambda: len(telemetry.sessions)),
            "mcp_streams": ("Open event streams of HTTP.", lambda: len(telemetry.streams)),
        }
        for name, (text, measure) in gauges.items():
            Gauge(name, text, registry=self.registry).set_function(measure)
        offered = Gauge("mcp_registered", "What is offered.", ("kind",), registry=self.registry)
        offered.labels("tools").set_function(lambda: len(server.tools))
        offered.labels("resources").set_function(lambda: len(server.resources))
        offered.labels("prompts").set_function(lambda: len(server.prompts))

    def close(self) -> None:
        """Stop counting; what is counted stays.

        Raises:
            ValueError: It has been closed.
        """
        self.server.telemetry.remove(self)

    def render(self) -> bytes:
        """Write everything in Prometheus' text format, of type `content_type`; from any thread."""
        return generate_latest(self.registry)

    def __call__(self, event: Event) -> None:
        """Count an event; see `Listener`."""
        method = event.method if event.outbound or event.method in _METHODS else OTHER
        if event.bytes_in is not None and event.kind in ("start", "notice"):
            self._received.labels(method).inc(event.bytes_in)
        if event.bytes_out is not None:
            self._sent.labels(method).inc(event.bytes_out)
        if event.kind == "notice":
            self._notifications.labels(method, "out" if event.outbound else "in").inc()
        elif event.kind == "start":
            self._running.add(event.key)
            self._in_flight.labels(method).inc()
        elif event.key in self._running:  # else it began before we listened
            self._running.remove(event.key)
            self._in_flight.labels(method).dec()
            name = self._name_of(event)
            self._requests.labels(method, name, event.outcome).inc()
            self._durations.labels(method, name).observe(event.duration or 0.0)

    def _name_of(self, event: Event) -> str:
        name = event.target
        if name is None:
            return "" if event.name is None else OTHER
        if name not in self._names:
            if len(self._names) >= MAX_NAMES:
                return OTHER
            self._names.add(name)
        return name
