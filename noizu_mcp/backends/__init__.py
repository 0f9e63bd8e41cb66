"""Backends: where the nodes of one server keep what they share.

`Redis` keeps it in a Redis or Valkey server, `Memory` in this process. Other engines subclass
`Backend`; `noizu_mcp.testing.check_backend` is the suite that every engine passes.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._interface import Backend as Backend
from ._interface import BackendUnavailable as BackendUnavailable
from ._interface import Conflict as Conflict
from ._interface import Full as Full
from ._interface import Gap as Gap
from ._interface import Log as Log
from ._interface import LogEntry as LogEntry
from ._interface import Record as Record
from ._interface import Store as Store

_LATE = {"._memory": "Memory", "._redis": "Redis"}

if _TYPE_CHECKING:
    from ._memory import Memory as Memory
    from ._redis import Redis as Redis
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
