"""The words between a worker and its supervisor, for both of them; see `Worker`."""

from typing import Final

from .._limits import MIB

#: The environment variable that makes a process a worker: descriptors, and a secret.
VARIABLE: Final = "NOIZU_MCP_WORKER"
#: Accept no more connections, and end once those that are open had time to send what is on its way.
RETIRE: Final = b"retire"
#: Send the metrics as text; empty without prometheus_client.
METRICS: Final = b"metrics"
#: Maximum bytes of a frame: metrics of thousands of series.
MOST: Final = 64 * MIB
