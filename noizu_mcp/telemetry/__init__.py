"""Telemetry: events, OpenTelemetry spans, Prometheus metrics, a watchdog.

May import: types, jsonrpc, protocol, engine, server. What needs a library loads when it is used.
"""

from typing import TYPE_CHECKING

from .._util import late, publish
from ..server import Event as Event
from ..server import Listener as Listener
from ..server import Telemetry as Telemetry

_LATE = {"Metrics": "._metrics", "Tracing": "._tracing", "Watchdog": "._watchdog"}

if TYPE_CHECKING:
    from ._metrics import Metrics as Metrics
    from ._tracing import Tracing as Tracing
    from ._watchdog import Watchdog as Watchdog
else:
    __getattr__, __dir__ = late(globals(), _LATE)

__all__ = ["Event", "Listener", "Metrics", "Telemetry", "Tracing", "Watchdog"]

publish(globals())
