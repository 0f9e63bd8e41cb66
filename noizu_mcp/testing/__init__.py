"""Tools for tests of a server: a client in memory, scripted answers, transcripts of messages."""

from .._util import publish as _publish
from ..client import connect as connect
from ._scripted import Asked as Asked
from ._scripted import ScriptedHandler as ScriptedHandler
from ._transcript import Entry as Entry
from ._transcript import Transcript as Transcript
from ._transcript import assert_notification as assert_notification
from ._transcript import assert_progress as assert_progress
from ._transcript import refute_notification as refute_notification

_publish(globals())
