"""The parts of hypercorn, an extra, that a host needs; they load when the first host serves."""

from hypercorn.trio.worker_context import WorkerContext

from ._config import HostConfig
from ._connection import Connection

__all__ = ["Connection", "HostConfig", "WorkerContext"]
