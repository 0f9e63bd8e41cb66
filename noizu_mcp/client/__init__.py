"""Clients: connect to a server in memory, over stdio or over HTTP, and call it."""

from .._util import publish as _publish
from ._client import Client as Client
from ._client import Progress as Progress
from ._connect import PROBE_TIMEOUT as PROBE_TIMEOUT
from ._connect import TIMEOUT as TIMEOUT
from ._connect import connect as connect
from ._handlers import HANDLER_METHODS as HANDLER_METHODS
from ._handlers import ClientHandler as ClientHandler
from ._sync import SyncClient as SyncClient
from ._sync import SyncLiveList as SyncLiveList
from ._views import LiveList as LiveList

_publish(globals())
