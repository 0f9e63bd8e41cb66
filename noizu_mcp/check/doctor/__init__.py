"""`noizu-mcp doctor`: checks of any server, with advice for each finding."""

from ..._util import publish as _publish
from ._examination import examine as examine
from ._report import Report as Report
from ._rules import RULES as RULES

_publish(globals())
