"""Servers: what they offer, how requests reach it, and `serve`, which needs only a stream."""

from .._util import publish
from ._authored import entered as entered
from ._bus import MERGE_WINDOW as MERGE_WINDOW
from ._bus import Windows as Windows
from ._connection import Connection as Connection
from ._events import Event as Event
from ._events import EventKind as EventKind
from ._events import Listen as Listen
from ._events import Listener as Listener
from ._events import Outcome as Outcome
from ._options import Cache as Cache
from ._options import ServerOptions as ServerOptions
from ._pages import PAGE_SIZE as PAGE_SIZE
from ._pages import Page as Page
from ._record import MAX_TEXT as MAX_TEXT
from ._record import Place as Place
from ._record import hear_at as hear_at
from ._record import running as running
from ._registry import Registry as Registry
from ._seal import Sealer as Sealer
from ._serve import GRACE as GRACE
from ._serve import StreamConnection as StreamConnection
from ._serve import open_connection as open_connection
from ._serve import serve as serve
from ._server import Server as Server
from ._shelf import RunningSet as RunningSet
from ._tasks import TaskStore as TaskStore
from ._telemetry import Telemetry as Telemetry
from .features import ROUTES as ROUTES

__all__ = [
    "GRACE",
    "MAX_TEXT",
    "MERGE_WINDOW",
    "PAGE_SIZE",
    "ROUTES",
    "Cache",
    "Connection",
    "Event",
    "EventKind",
    "Listen",
    "Listener",
    "Outcome",
    "Page",
    "Place",
    "Registry",
    "RunningSet",
    "Sealer",
    "Server",
    "ServerOptions",
    "StreamConnection",
    "TaskStore",
    "Telemetry",
    "Windows",
    "entered",
    "hear_at",
    "open_connection",
    "running",
    "serve",
]

publish(globals())
