"""Prometheus metrics of one server, in a registry of their own."""

from collections.abc import Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from ..protocol import CLIENT_REQUESTS, SERVER_REQUESTS
from ..server import Event, Server

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ._series import Series

#: Names of tools, prompts and resources that have series of their own; the rest share `other`.
#: A name costs some twenty series, and names may come and go while a server runs.
MAX_NAMES: Final = 500
#: What a value is called that could be anything.
OTHER: Final = "other"
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
    * `mcp_tasks_total` by `name` and `outcome`: tasks that have ended
    * `mcp_tasks_held` by `state`: tasks that run, or are kept for their result
    * `mcp_received_bytes_total`, `mcp_sent_bytes_total`: of messages, by `method`
    * `mcp_notifications_total` by `method` and `direction`: `in`, `out`
    * `mcp_sessions`, `mcp_streams`: see `Telemetry`
    * `mcp_registered` by `kind`: `tools`, `resources` (with templates), `prompts`

    Args:
        server: The server.
        registry: Where the metrics go; a new registry unless given, with nothing else in it.

    Attributes:
        server: See Args.
        registry: Where they are; for pushing, or for a web server of your own.

    Raises:
        TypeError: It is no server, but its class for example.
        ValueError: The registry has such metrics already.
        ImportError: prometheus_client is not installed.
    """

    #: Every release of Prometheus reads this version; names and labels of ours need no later one.
    content_type: Final[str] = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, server: Server, *, registry: "CollectorRegistry | None" = None) -> None:
        if not isinstance(server, Server):
            raise TypeError(f"metrics are those of one server: give an instance, not {server!r}")
        self.server = server
        self._series = series = _series_of(server, registry)
        self.registry: CollectorRegistry = series.registry
        self._names: set[str] = set()
        self._running: dict[int, str] = {}  # what waits for its end: its method
        self._closed = False
        self._offered = self._look()
        server.telemetry.add(self)

    def close(self) -> None:
        """Stop counting; what is counted stays, and nothing is in flight any more.

        Raises:
            ValueError: It has been closed.
        """
        self.server.telemetry.remove(self)
        self._closed = True
        while self._running:
            _, method = self._running.popitem()
            self._series.wait(method, -1)

    def render(self) -> bytes:
        """Write everything in Prometheus' text format; from any thread.

        Returns:
            The text, of type `content_type`.
        """
        return self._series.render()

    def __call__(self, event: Event) -> None:
        """Count an event; see `Listener`."""
        if self._closed:  # while this event was told
            return
        method = event.method if event.outbound or event.method in _METHODS else OTHER
        self._series.count_bytes(method, event)
        if event.task:
            if event.kind != "start":
                self._series.count_task(self._name_of(event), event)
        elif event.kind == "notice":
            self._series.count_notice(method, "out" if event.outbound else "in")
        elif event.kind == "start":
            self._running[event.key] = method
            self._series.wait(method, 1)
        elif self._running.pop(event.key, None) is not None:  # else it began before we listened
            self._series.wait(method, -1)
            self._series.count_request(method, self._name_of(event), event)

    def _name_of(self, event: Event) -> str:
        name = event.target
        if name is None:
            return "" if event.name is None else OTHER
        if name not in self._names:
            if len(self._names) >= MAX_NAMES:
                self._give_back()
            if len(self._names) >= MAX_NAMES:
                return OTHER
            self._names.add(name)
        return name

    def _give_back(self) -> None:
        """Forget the names that are no longer registered, if that has changed since last time."""
        offered = self._look()
        if not all(map(is_, offered, self._offered)):
            self._offered = offered
            gone = {name for name in self._names if not any(name in each for each in offered)}
            self._names -= gone
            self._series.drop(gone)

    def _look(self) -> tuple[Mapping[str, Any], ...]:
        """Give what is registered: maps that are replaced by each change."""
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
