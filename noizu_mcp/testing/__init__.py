"""Tools for tests: a client in memory, scripted answers, transcripts, an authorization server.

The authorization server loads when it is first used: it needs the extra `auth`.
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
    "AuthorizationRequest": "._authorization_server",
    "AuthorizationServer": "._authorization_server",
    "Network": "._network",
    "Replay": "._cassette",
    "hide_secrets": "._cassette",
    "record": "._cassette",
    "replay": "._cassette",
    "serve_authorization": "._protected",
    "serve_over": "._served",
    "serve_protected": "._protected",
}

if _TYPE_CHECKING:
    from ._authorization_server import AuthorizationRequest as AuthorizationRequest
    from ._authorization_server import AuthorizationServer as AuthorizationServer
    from ._cassette import Replay as Replay
    from ._cassette import hide_secrets as hide_secrets
    from ._cassette import record as record
    from ._cassette import replay as replay
    from ._network import Network as Network
    from ._protected import serve_authorization as serve_authorization
    from ._protected import serve_protected as serve_protected
    from ._served import serve_over as serve_over
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
