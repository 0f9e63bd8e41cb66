"""Telemetry of servers and clients: events, spans, metrics, audits, a watchdog.

May import: types, jsonrpc, protocol, engine, server. Modules that need a library load on first use.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ..events import Event as Event
from ..events import Listener as Listener
from ..events import Telemetry as Telemetry

_LATE = {
    "._audit": "AuditLog AuditRecord AuditTable",
    "._client_metrics": "ClientMetrics",
    "._metrics": "Metrics",
    "._tracing": "Tracing",
    "._watchdog": "watching",
}

if _TYPE_CHECKING:
    from ._audit import AuditLog as AuditLog
    from ._audit import AuditRecord as AuditRecord
    from ._audit import AuditTable as AuditTable
    from ._client_metrics import ClientMetrics as ClientMetrics
    from ._metrics import Metrics as Metrics
    from ._tracing import Tracing as Tracing
    from ._watchdog import watching as watching
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
