"""`lint`: checks the tools of a server as models, and the APIs of models, see them."""

from ..._util import publish as _publish
from .._rules import Rule as Rule
from .._rules import Severity as Severity
from ._lint import LintReport as LintReport
from ._lint import estimate_tokens as estimate_tokens
from ._lint import fetch_tools as fetch_tools
from ._lint import lint as lint
from ._lint import lint_tools as lint_tools
from ._rules import RULES as RULES
from ._rules import Finding as Finding

_publish(globals())
