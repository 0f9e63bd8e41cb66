"""Servers: their registrations, the way of a request through them, and `serve`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._running import Joined as Joined
from ._running import RunningServer as RunningServer
from ._serve import PipeSession as PipeSession
from ._serve import Reply as Reply
from ._serve import StatelessRequests as StatelessRequests
from ._serve import open_session as open_session
from ._serve import serve as serve
from ._serve import serve_in_task as serve_in_task
from ._server import Server as Server
from ._server_context import ServerContext as ServerContext
from ._server_request import ServerRequest as ServerRequest
from ._session import Session as Session
from .asking._seal import Sealer as Sealer
from .changes._bus import MERGE_WINDOW as MERGE_WINDOW
from .changes._feed import ChangeFeed as ChangeFeed
from .changes._feed import leave as leave
from .features import ROUTES as ROUTES
from .policies._policy_set import PolicySet as PolicySet
from .registry._collection import RunningSet as RunningSet
from .registry._pages import PAGE_SIZE as PAGE_SIZE
from .registry._registry import Registry as Registry
from .registry._server_options import BACKEND_VARIABLE as BACKEND_VARIABLE
from .registry._server_options import KEYS_VARIABLE as KEYS_VARIABLE
from .registry._server_options import Cache as Cache
from .registry._server_options import ServerOptions as ServerOptions
from .registry._server_options import read_backend as read_backend
from .threads._abandoned import AbandonedThreads as AbandonedThreads
from .threads._abandoned import TooManyAbandoned as TooManyAbandoned
from .threads._fair_limiter import FairLimiter as FairLimiter
from .threads._fair_limiter import QueueFull as QueueFull

_LATE = {
    ".policies._shipped": "AllowTools DenyTools RateLimit TimeWindow",
    ".policies._policy": "Policy PolicyCall",
    ".providers._mount": "Mount",
    ".tasks._task_store": "TaskStore",
    ".handles._backing": "HandleBacking",
    ".loading._load": "load_server",
    ".changes._shared": "decode_change",
    ".features._join": "join",
    ".nodes._node": "ALL Node",
    ".nodes._queue": "CHANGED",
    ".nodes._open": "open_node",
    ".nodes._records": "Stored digest_of",
    ".loading._remedies": "missing_requirements script_requirements",
}

if _TYPE_CHECKING:
    from .changes._shared import decode_change as decode_change
    from .features._join import join as join
    from .handles._backing import HandleBacking as HandleBacking
    from .loading._load import load_server as load_server
    from .loading._remedies import missing_requirements as missing_requirements
    from .loading._remedies import script_requirements as script_requirements
    from .nodes._node import ALL as ALL
    from .nodes._node import Node as Node
    from .nodes._open import open_node as open_node
    from .nodes._queue import CHANGED as CHANGED
    from .nodes._records import Stored as Stored
    from .nodes._records import digest_of as digest_of
    from .policies._policy import Policy as Policy
    from .policies._policy import PolicyCall as PolicyCall
    from .policies._shipped import AllowTools as AllowTools
    from .policies._shipped import DenyTools as DenyTools
    from .policies._shipped import RateLimit as RateLimit
    from .policies._shipped import TimeWindow as TimeWindow
    from .providers._mount import Mount as Mount
    from .tasks._task_store import TaskStore as TaskStore
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
