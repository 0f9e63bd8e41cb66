"""Questions of a server to the person at the terminal.

Importing it loads `termios`, which only Unix has, so it is imported where a person is asked.
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
