"""Clients: connect to a server in memory, over stdio or over HTTP, and call it."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._calls import CallOptions as CallOptions
from ._client import Client as Client
from ._connect import PROBE_TIMEOUT as PROBE_TIMEOUT
from ._connect import TIMEOUT as TIMEOUT
from ._connect import check_options as check_options
from ._connect import connect as connect
from ._handlers import ClientHandler as ClientHandler
from ._handlers import ForwardingHandler as ForwardingHandler
from ._handlers import each_handler as each_handler
from ._list_reader import ListBudget as ListBudget
from ._session import Progress as Progress
from ._targets import Opened as Opened
from ._targets import Target as Target
from ._targets import read_entry as read_entry
from ._targets import read_servers as read_servers
from ._targets import read_several as read_several
from ._targets import read_target as read_target
from ._views import ListRefresher as ListRefresher
from ._views import LiveList as LiveList

_LATE = {
    "._several": "Clients bound_name connect_all",
    "._kept_connection": "KeptConnection read_kept told",
    "._sync": "SyncClient SyncLiveList",
    "._sync_several": "SyncClients",
    ".terminal": "TerminalHandler",
}

if _TYPE_CHECKING:
    from ._kept_connection import KeptConnection as KeptConnection
    from ._kept_connection import read_kept as read_kept
    from ._kept_connection import told as told
    from ._several import Clients as Clients
    from ._several import bound_name as bound_name
    from ._several import connect_all as connect_all
    from ._sync import SyncClient as SyncClient
    from ._sync import SyncLiveList as SyncLiveList
    from ._sync_several import SyncClients as SyncClients
    from .terminal import TerminalHandler as TerminalHandler
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
