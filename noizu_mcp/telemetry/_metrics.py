"""Prometheus metrics of one server, in their own registry."""

from collections.abc import Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from ..events import Event
from ..protocol import CLIENT_REQUESTS, SERVER_REQUESTS
from ..server import Server

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ._series import Series

#: Most names of tools, prompts and resources with their own series; the rest share `other`.
#: A name costs about twenty series, and names may come and go while a server runs.
MAX_NAMES: Final = 500
#: The label of all values that are not known.
OTHER: Final = "other"
#: The methods that are labels of metrics: of a server, and more of a client.
METHODS: Final = frozenset(
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
    """Counts the requests, tasks and messages of a server; needs the extra `prometheus`.

    Counting starts with the constructor. Labels take few values, whatever clients send: methods of
    the protocol, registered names, and `other`. Metrics:

    * `mcp_requests_total` and `mcp_request_duration_seconds` (a histogram) by `method` and `name`;
      the former by `outcome`, too: see `Event`
    * `mcp_coerced_calls_total` by `name`: calls of tools whose arguments had text for other types
    * `mcp_requests_in_flight` by `method`
    * `mcp_nested_calls_total` by `name` and `outcome`: calls of tools by handlers
    * `mcp_tasks_total` by `name` and `outcome`: tasks that have ended
    * `mcp_tasks_held` by `state`: tasks that run, or are kept for their result
    * `mcp_parked`: handlers of 2026-07-28 that wait for the answers of their clients
    * `mcp_abandoned_threads`: threads of sync handlers that go on after their calls
    * `mcp_received_bytes_total`, `mcp_sent_bytes_total`: bytes of messages, by `method`
    * `mcp_notifications_total` by `method` and `direction`: `in`, `out`
    * `mcp_decisions_total` by `decision` (`allow`, `deny`) and `policy`: calls that policies judged
    * `mcp_sessions`, `mcp_streams`: see `Telemetry`
    * `mcp_provider_failing` by `provider`: lists that it fails to give now; and
      `mcp_provider_failures_total`
    * `mcp_registered` by `kind`: `tools`, `resources` (with templates), `prompts`; registrations
      of the server itself
    * `mcp_provided` by `provider` and `kind`: items in the last list of a provider, or of a mounted
      server; absent until the first list

    * `mcp_backend_up`, `mcp_backend_operations_total` by `operation` and `outcome`, and the
      histogram `mcp_backend_operation_seconds` by `operation`: see `noizu_mcp.backends`; absent
      without a backend

    Args:
        server: The server.
        registry: The registry for the metrics; by default a new one.

    Attributes:
        server: The server.
        registry: The registry, for a push gateway or another web server.
        content_type: The media type of the text of `render`.

    Raises:
        TypeError: `server` is not an instance, but its class for example.
        ValueError: The registry has metrics of another server.
        ImportError: prometheus_client is not installed.
    """

    #: Every release of Prometheus reads this version; these names and labels need no later one.
    content_type: Final[str] = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, server: Server, *, registry: "CollectorRegistry | None" = None) -> None:
        if not isinstance(server, Server):
            raise TypeError(f"metrics belong to one server: give an instance, not {server!r}")
        self.server = server
        self._series = series = _series_of(server, registry)
        self.registry: CollectorRegistry = series.registry
        self._names: set[str] = set()
        self._running: dict[int, str] = {}  # methods of requests without an end, by event key
        self._closed = False
        self._offered = self._look()
        server.telemetry.add(self)

    def close(self) -> None:
        """Stop counting; counters keep their values, and `mcp_requests_in_flight` becomes 0.

        Raises:
            ValueError: It is closed already.
        """
        self.server.telemetry.remove(self)
        self._closed = True
        while self._running:
            _, method = self._running.popitem()
            self._series.in_flight.labels(method).dec()

    def render(self) -> bytes:
        """Write all metrics in Prometheus' text format; callable from any thread.

        Returns:
            The text, of the media type `content_type`.
        """
        return self._series.render()

    def __call__(self, event: Event) -> None:
        """Count an event; see `Listener`."""
        if self._closed:  # by another listener of this event
            return
        method = event.method if event.outbound or event.method in METHODS else OTHER
        series = self._series
        series.count_bytes(method, event)
        if event.task or event.nested:
            if event.kind != "start":
                count = series.count_nested if event.nested else series.count_task
                count(self._name_of(event), event)
        elif event.kind == "notice":
            series.notices.labels(method, "out" if event.outbound else "in").inc()
        elif event.kind == "decision":
            series.decisions.labels(event.decision, event.policy or "").inc()
        elif event.kind == "start":
            self._running[event.key] = method
            series.in_flight.labels(method).inc()
        # A request that began before the listener did was never counted as running.
        elif self._running.pop(event.key, None) is not None:
            series.in_flight.labels(method).dec()
            series.count_request(method, self._name_of(event), event)

    def _name_of(self, event: Event) -> str:
        name = event.target
        if name is None:
            return "" if event.name is None else OTHER
        if name not in self._names and len(self._names) >= MAX_NAMES:
            # Names that are no longer registered make room. Looking costs time, so it happens only
            # when a registration has changed since.
            offered = self._look()
            if not all(map(is_, offered, self._offered)):
                self._offered = offered
                gone = {each for each in self._names if not any(each in kind for kind in offered)}
                self._names -= gone
                self._series.drop(gone)
            if len(self._names) >= MAX_NAMES:
                return OTHER
        self._names.add(name)
        return name

    def _look(self) -> tuple[Mapping[str, Any], ...]:
        """Return the maps of registrations; each change replaces its map."""
        registry = self.server.registry
        return (
            registry.tools.specs,
            registry.resources.specs,
            registry.templates.specs,
            registry.prompts.specs,
        )


def _series_of(server: Server, registry: "CollectorRegistry | None") -> "Series":
    try:
        from ._series import Series
    except ImportError as error:
        text = "metrics need prometheus_client: pip install 'noizu-mcp[prometheus]'"
        raise ImportError(text) from error
    try:
        return Series(server, registry)
    except ValueError as error:
        text = f"the registry has metrics of a server: use one registry for each ({error})"
        raise ValueError(text) from error
