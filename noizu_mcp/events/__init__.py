"""Events of servers and clients for listeners. May import: types, jsonrpc, protocol, engine."""

from .._util import publish as _publish
from ._backend_use import TIMES as TIMES
from ._backend_use import BackendUse as BackendUse
from ._emitter import MAX_TEXT as MAX_TEXT
from ._emitter import EventEmitter as EventEmitter
from ._emitter import Place as Place
from ._emitter import cut_id as cut_id
from ._emitter import make_event as make_event
from ._emitter import next_key as next_key
from ._emitter import observe_message as observe_message
from ._emitter import observe_notice as observe_notice
from ._emitter import read_trace as read_trace
from ._event import Event as Event
from ._event import EventKind as EventKind
from ._event import Listen as Listen
from ._event import Listener as Listener
from ._event import Outcome as Outcome
from ._telemetry import Telemetry as Telemetry
from ._telemetry import check_listeners as check_listeners

_publish(globals())
