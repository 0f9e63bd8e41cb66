"""Prometheus metrics of clients, in their own registry."""

from typing import TYPE_CHECKING, Final

from ..events import Event
from ._metrics import MAX_NAMES, METHODS, OTHER

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_LISTS: Final = ("prompts", "resources", "tools")
_METHODS: Final = METHODS | {
    "notifications/message",
    "notifications/resources/updated",
    *(f"notifications/{each}/list_changed" for each in _LISTS),
}
#: Most servers with their own series; the rest share `other`.
MAX_SERVERS: Final = 100


class ClientMetrics:
    """Counts the requests of clients; needs the extra `prometheus`.

    A listener for `connect(…, telemetry=[metrics])`; one may serve all connections of a program.
    The label `server` is the name of the server, empty until it is known. At most 100 servers and
    500 names of tools and prompts have their own series. Metrics:

    * `mcp_client_requests_total` by `server`, `method`, `name` and `outcome`: see `Event`
    * `mcp_client_request_duration_seconds` (a histogram) by `server`, `method` and `name`
    * `mcp_client_requests_in_flight` by `server` and `method`
    * `mcp_client_questions_total` by `server`, `method` and `outcome`: questions of the server
    * `mcp_client_notifications_total` by `server`, `method` and `direction`: `in`, `out`
    * `mcp_client_connections` by `server`: that are open
    * `mcp_client_renewals_total` by `server`: sessions that began in the place of lost ones

    Args:
        registry: The registry for the metrics; by default a new one.

    Attributes:
        registry: The registry, for a push gateway or a web server.
        content_type: The media type of the text of `render`.

    Raises:
        ValueError: The registry has such metrics already.
        ImportError: prometheus_client is not installed.
    """

    content_type: Final[str] = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, *, registry: "CollectorRegistry | None" = None) -> None:
        try:
            from ._series import ClientSeries
        except ImportError as error:
            text = "metrics need prometheus_client: pip install 'noizu-mcp[prometheus]'"
            raise ImportError(text) from error
        self._series = series = ClientSeries(registry)
        self.registry: CollectorRegistry = series.registry
        self._servers: set[str] = set()
        self._names: set[str] = set()
        # Labels of requests without an end, by event key: the server may be named meanwhile.
        self._running: dict[int, tuple[str, str]] = {}

    def render(self) -> bytes:
        """Write all metrics in Prometheus' text format; callable from any thread.

        Returns:
            The text, of the media type `content_type`.
        """
        return self._series.render()

    def __call__(self, event: Event) -> None:
        """Count an event; see `Listener`."""
        series, server = self._series, _known(event.server or "", self._servers, MAX_SERVERS)
        method = event.method if event.method in _METHODS else OTHER
        if event.kind == "opened":
            series.connections.labels(server).inc()
        elif event.kind == "closed":
            series.connections.labels(server).dec()
        elif event.kind == "renewed":
            series.renewals.labels(server).inc()
        elif event.kind == "notice":
            direction = "out" if event.outbound else "in"
            series.notices.labels(server, method, direction).inc()
        elif event.kind == "start":
            if event.outbound:
                self._running[event.key] = server, method
                series.in_flight.labels(server, method).inc()
        elif not event.outbound:
            series.questions.labels(server, method, event.outcome).inc()
        elif (labels := self._running.pop(event.key, None)) is not None:
            series.in_flight.labels(*labels).dec()
            name = OTHER if event.name is not None and event.target is None else ""
            if event.target is not None:
                name = _known(event.target, self._names, MAX_NAMES)
            series.requests.labels(server, method, name, event.outcome).inc()
            series.durations.labels(server, method, name).observe(event.duration or 0.0)


def _known(name: str, names: set[str], most: int) -> str:
    """Return the label of a name: itself, or `other` once there are too many names."""
    if name not in names and len(names) >= most:
        return OTHER
    names.add(name)
    return name
