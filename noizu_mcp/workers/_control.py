"""The words between a worker and its supervisor, for both of them; see `Worker`."""

from collections.abc import Sequence
from typing import Final

import attrs

from .._limits import MIB

#: The environment variable that makes a process a worker: its `Place` as JSON.
VARIABLE: Final = "NOIZU_MCP_WORKER"
#: Accept no more connections, and end once those that are open had time to send what is on its way.
RETIRE: Final = b"retire"
#: Send a word and, behind a line end, an answer: the body of `/readyz`; the metrics as text, which
#: is empty without prometheus_client.
READY: Final = b"ready"
METRICS: Final = b"metrics"
#: Maximum bytes of a frame: metrics of thousands of series.
MOST: Final = 64 * MIB


@attrs.frozen(kw_only=True)
class Place:
    """What a worker inherits.

    Attributes:
        number: Its number, from 1.
        control: A descriptor: the words.
        hub: A descriptor: the backend of all workers.
        balance: A descriptor: the shared memory of `Balance`.
        listeners: Descriptors: the listening sockets.
        secret: A secret of all workers.
        quiet: Seconds between the last connection that it accepts and its end, if it retires. A
            request on a connection that is kept is answered in that time, and the answer says that
            the connection ends.
    """

    number: int
    control: int
    hub: int
    balance: int
    listeners: Sequence[int]
    secret: str = attrs.field(repr=False)
    quiet: float = 1.0
