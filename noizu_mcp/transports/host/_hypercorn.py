"""What a host needs of hypercorn, an extra: all of it loads with the first host that serves."""

from hypercorn.trio.worker_context import WorkerContext

from ._config import HostConfig
from ._connection import Connection

__all__ = ["Connection", "HostConfig", "WorkerContext"]
