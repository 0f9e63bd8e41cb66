"""The series of one server in prometheus_client; loads with the first `Metrics`."""

from collections import Counter as Numbers
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from typing import Any, Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from ..events import TIMES, Event
from ..server import Server
from ..types import TaskStatus

#: Upper bounds in seconds. Local calls take milliseconds, and `tool_timeout` is 30 s.
BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BY_NAME: Final = ("method", "name")


class _Registered:
    """Series in one registry.

    Args:
        registry: The registry for the series; by default a new one.

    Attributes:
        registry: The registry.
    """

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._counter = partial(Counter, registry=self.registry)
        self._gauge = partial(Gauge, registry=self.registry)
        self._histogram = partial(Histogram, registry=self.registry, buckets=BUCKETS)

    def render(self) -> bytes:
        """Write all series in Prometheus' text format; callable from any thread."""
        return generate_latest(self.registry)


class Series(_Registered):
    """The counters, gauges and the histogram of `Metrics`.

    Args:
        server: The server; some gauges ask it whenever they are read.
        registry: The registry for the series; by default a new one.

    Attributes:
        registry: The registry.
        in_flight: Requests without an answer, by method.
        notices: Notifications, by method and direction.
        decisions: Calls that policies judged, by decision and policy.

    Raises:
        ValueError: The registry has such series already.
    """

    def __init__(self, server: Server, registry: CollectorRegistry | None) -> None:
        super().__init__(registry)
        counter, gauge = self._counter, self._gauge
        nested = "Calls of tools by handlers that have ended."
        self._nested = counter("mcp_nested_calls", nested, ("name", "outcome"))
        waiting = "Requests without an answer."
        self.in_flight = gauge("mcp_requests_in_flight", waiting, ("method",))
        self.notices = counter("mcp_notifications", "Notifications.", ("method", "direction"))
        judged = "Calls that policies judged."
        self.decisions = counter("mcp_decisions", judged, ("decision", "policy"))
        # The series of each name, to remove them with the registration.
        self._named: dict[str, set[tuple[Counter | Histogram, tuple[str, ...]]]] = {}
        ended = (*_BY_NAME, "outcome")
        self._requests = counter("mcp_requests", "Requests that have ended.", ended)
        self._tasks = counter("mcp_tasks", "Tasks that have ended.", ("name", "outcome"))
        coerced = "Calls of tools whose arguments had text for other types."
        self._coerced = counter("mcp_coerced_calls", coerced, ("name",))
        self._received = counter("mcp_received_bytes", "Bytes of messages that came.", ("method",))
        answers = "Bytes of answers and notifications."
        self._sent = counter("mcp_sent_bytes", answers, ("method",))
        text, name = "Time from a request to its end.", "mcp_request_duration_seconds"
        self._durations = self._histogram(name, text, _BY_NAME)
        _look_up(gauge, server)
        self.registry.register(_ProviderSeries(server))
        self.registry.register(_BackendSeries(server))

    def count_bytes(self, method: str, event: Event) -> None:
        """Count the bytes of a message, if they are known."""
        # The end of a request has the bytes of its message again.
        if event.bytes_in is not None and event.kind in ("start", "notice"):
            self._received.labels(method).inc(event.bytes_in)
        if event.bytes_out is not None:
            self._sent.labels(method).inc(event.bytes_out)

    def count_request(self, method: str, name: str, event: Event) -> None:
        """Count a request that has ended, and observe its duration."""
        self._labelled(self._requests, name, method, name, event.outcome).inc()
        self._labelled(self._durations, name, method, name).observe(event.duration or 0.0)
        if event.coerced:
            self._labelled(self._coerced, name, name).inc()

    def count_task(self, name: str, event: Event) -> None:
        """Count a task that has ended."""
        self._labelled(self._tasks, name, name, event.outcome).inc()

    def count_nested(self, name: str, event: Event) -> None:
        """Count a call of a tool by a handler that has ended."""
        self._labelled(self._nested, name, name, event.outcome).inc()

    def _labelled(self, metric: Any, name: str, *labels: Any) -> Any:
        self._named.setdefault(name, set()).add((metric, labels))
        return metric.labels(*labels)

    def drop(self, names: Iterable[str]) -> None:
        """Remove the series of some names."""
        for name in names:
            for metric, labels in self._named.pop(name, ()):
                metric.remove(*labels)


def _look_up(gauge: Callable[..., Gauge], server: Server) -> None:
    """Register the gauges that ask the server when they are read: nothing counts in between."""
    telemetry = server.telemetry
    sessions = gauge("mcp_sessions", "Connections after a handshake.")
    sessions.set_function(lambda: len(telemetry.sessions))
    streams = gauge("mcp_streams", "Open event streams of HTTP.")
    streams.set_function(lambda: len(telemetry.streams))
    text = "Handlers that wait for the retry of their request."
    gauge("mcp_parked", text).set_function(telemetry.parked_handlers)
    text = "Threads of sync handlers that go on after their calls."
    gauge("mcp_abandoned_threads", text).set_function(lambda: server.abandoned.count)
    held = gauge("mcp_tasks_held", "Tasks that run, or are kept for their result.", ("state",))
    for state in get_args(TaskStatus):
        held.labels(state).set_function(partial(_count, telemetry.tasks_held, state))
    text = "Registered tools, resources and prompts, without those of providers."
    offered = gauge("mcp_registered", text, ("kind",))
    for kind in ("tools", "resources", "prompts"):
        offered.labels(kind).set_function(partial(len, getattr(server, kind)))


class _ProviderSeries:
    """The series of the providers of a server, which may come and go."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def describe(self) -> list[Metric]:
        """List the names; there may be no values yet."""
        return self._families()

    def collect(self) -> list[Metric]:
        """Read the health of all providers; part of the protocol of prometheus_client."""
        failing, failures, provided = families = self._families()
        providers = self._server.registry.providers
        for name, faults, count, listed in () if providers is None else providers.health():
            failing.add_metric([name], len(faults))
            failures.add_metric([name], count)
            for kind, items in listed.items():
                provided.add_metric([name, kind], items)
        return families if providers is not None else []

    @staticmethod
    def _families() -> list[Any]:
        text = "Lists that a provider fails to give."
        return [
            GaugeMetricFamily("mcp_provider_failing", text, labels=["provider"]),
            CounterMetricFamily(
                "mcp_provider_failures", "Failures of a provider.", labels=["provider"]
            ),
            GaugeMetricFamily(
                "mcp_provided", "Items of the last list.", labels=["provider", "kind"]
            ),
        ]


class _BackendSeries:
    """The series of the nodes of this process; without a backend there are none."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def describe(self) -> list[Metric]:
        """List the names; there may be no values yet."""
        return self._families()

    def collect(self) -> list[Metric]:
        """Read what was counted; part of the protocol of prometheus_client."""
        up, operations, seconds = families = self._families()
        uses = tuple(self._server.telemetry.backends)
        if not uses:
            return []
        up.add_metric([], float(all(use.is_up for use in uses)))
        counts = sum((use.operations for use in uses), Numbers[tuple[str, str]]())
        for labels, number in sorted(counts.items()):
            operations.add_metric(labels, number)
        for name in sorted({operation for operation, _ in counts}):
            parts = [use.durations[name] for use in uses if name in use.durations]
            sums = accumulate(map(sum, zip(*(each.counts for each in parts), strict=True)))
            buckets = zip([*map(str, TIMES), "+Inf"], map(float, sums), strict=True)
            seconds.add_metric([name], [*buckets], sum(each.total for each in parts))
        return families

    @staticmethod
    def _families() -> list[Any]:
        return [
            GaugeMetricFamily("mcp_backend_up", "1 while the backend can be reached."),
            CounterMetricFamily(
                "mcp_backend_operations",
                "Operations of the backend.",
                labels=["operation", "outcome"],
            ),
            HistogramMetricFamily(
                "mcp_backend_operation_seconds", "Their durations.", labels=["operation"]
            ),
        ]


def _count(held: Callable[[], Iterable[str]], state: str) -> int:
    return [*held()].count(state)


class ClientSeries(_Registered):
    """The counters, gauges and the histogram of `ClientMetrics`; see there.

    Args:
        registry: The registry for the series; by default a new one.

    Raises:
        ValueError: The registry has such series already.
    """

    def __init__(self, registry: CollectorRegistry | None) -> None:
        super().__init__(registry)
        counter, gauge = self._counter, self._gauge
        named = ("server", *_BY_NAME)
        ended = "Requests of clients that have ended."
        self.requests = counter("mcp_client_requests", ended, (*named, "outcome"))
        text, name = "Time from a request to its end.", "mcp_client_request_duration_seconds"
        self.durations = self._histogram(name, text, named)
        waiting = "Requests of clients without an answer."
        self.in_flight = gauge("mcp_client_requests_in_flight", waiting, ("server", "method"))
        asked = ("server", "method", "outcome")
        self.questions = counter("mcp_client_questions", "Questions of servers.", asked)
        sent = ("server", "method", "direction")
        self.notices = counter("mcp_client_notifications", "Notifications.", sent)
        self.connections = gauge("mcp_client_connections", "Open connections.", ("server",))
        self.renewals = counter("mcp_client_renewals", "Renewed sessions.", ("server",))
