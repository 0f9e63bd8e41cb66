"""Requests of a server to the person at the terminal.

It imports `termios`, which exists on Unix only, so it is imported on first use.
"""

from ..._util import publish as _publish
from ._dialogue import Dialogue as Dialogue
from ._dialogue import PersonAnswer as PersonAnswer
from ._dialogue import Terminal as Terminal
from ._dialogue import one_at_a_time as one_at_a_time
from ._form import read_fields as read_fields
from ._form import without_none as without_none
from ._handler import TerminalHandler as TerminalHandler

_publish(globals())
