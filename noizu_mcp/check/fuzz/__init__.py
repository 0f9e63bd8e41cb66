"""`fuzz`: finds faults of a server, in any language; `replay` reproduces a finding.

It needs the extra `testing`, and is loaded on first use.
"""

from ..._util import publish as _publish
from ._case import Case as Case
from ._case import Finding as Finding
from ._case import Step as Step
from ._checks import CHECKS as CHECKS
from ._checks import FuzzCheck as FuzzCheck
from ._fuzz import BUDGET as BUDGET
from ._fuzz import EXAMPLES as EXAMPLES
from ._fuzz import TIMEOUT as TIMEOUT
from ._fuzz import fuzz as fuzz
from ._fuzz import replay as replay
from ._report import Report as Report
from ._report import keep as keep
from ._report import load as load

_publish(globals())
