"""Servers: what they offer, how requests reach it, and `serve`, which needs only a stream."""

from .._util import publish
from ._bus import MERGE_WINDOW as MERGE_WINDOW
from ._connection import Connection as Connection
from ._options import Cache as Cache
from ._options import ServerOptions as ServerOptions
from ._pages import PAGE_SIZE as PAGE_SIZE
from ._pages import Page as Page
from ._registry import Registry as Registry
from ._serve import GRACE as GRACE
from ._serve import StreamConnection as StreamConnection
from ._serve import open_connection as open_connection
from ._serve import serve as serve
from ._server import Server as Server
from ._shelf import RunningSet as RunningSet
from ._tasks import TaskStore as TaskStore
from .features import ROUTES as ROUTES

__all__ = [
    "GRACE",
    "MERGE_WINDOW",
    "PAGE_SIZE",
    "ROUTES",
    "Cache",
    "Connection",
    "Page",
    "Registry",
    "RunningSet",
    "Server",
    "ServerOptions",
    "StreamConnection",
    "TaskStore",
    "open_connection",
    "serve",
]

publish(globals())
