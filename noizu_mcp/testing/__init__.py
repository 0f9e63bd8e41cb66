"""Tools for tests: a client in memory, scripted answers, transcripts, strategies, and more.

The authorization server and the strategies load when they are first used: they need the extras
`auth` and `testing`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ..client import connect as connect
from ._scripted import Asked as Asked
from ._scripted import ScriptedHandler as ScriptedHandler
from ._transcript import Entry as Entry
from ._transcript import Transcript as Transcript
from ._transcript import assert_notification as assert_notification
from ._transcript import assert_progress as assert_progress
from ._transcript import refute_notification as refute_notification

_LATE = {
    "._authorization_server": "AuthorizationRequest AuthorizationServer",
    ".strategies._session_machine": "SessionMachine",
    ".strategies._violation": "Unsatisfiable Violation",
    ".strategies._tools": "arguments invalid_arguments results",
    ".strategies._messages": "conversations messages",
    ".strategies._schemas": "from_schema violating",
    "._check_backend": "check_backend",
    "._network": "Network",
    "._faulty_memory": "FaultyMemory",
    "._fleet": "Fleet",
    "._cassette": "Replay record replay",
    "._secrets": "hide_secrets",
    "._protected": "serve_authorization serve_protected",
    "._served": "serve_over",
}

if _TYPE_CHECKING:
    from ._authorization_server import AuthorizationRequest as AuthorizationRequest
    from ._authorization_server import AuthorizationServer as AuthorizationServer
    from ._cassette import Replay as Replay
    from ._cassette import record as record
    from ._cassette import replay as replay
    from ._check_backend import check_backend as check_backend
    from ._faulty_memory import FaultyMemory as FaultyMemory
    from ._fleet import Fleet as Fleet
    from ._network import Network as Network
    from ._protected import serve_authorization as serve_authorization
    from ._protected import serve_protected as serve_protected
    from ._secrets import hide_secrets as hide_secrets
    from ._served import serve_over as serve_over
    from .strategies._messages import conversations as conversations
    from .strategies._messages import messages as messages
    from .strategies._schemas import from_schema as from_schema
    from .strategies._schemas import violating as violating
    from .strategies._session_machine import SessionMachine as SessionMachine
    from .strategies._tools import arguments as arguments
    from .strategies._tools import invalid_arguments as invalid_arguments
    from .strategies._tools import results as results
    from .strategies._violation import Unsatisfiable as Unsatisfiable
    from .strategies._violation import Violation as Violation
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
