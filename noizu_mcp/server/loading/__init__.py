"""Servers that are named by a text: imported from a module or a file, and made."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..._util import late as _late
from ..._util import publish as _publish

_LATE = {
    "missing_requirements": "._remedies",
    "script_requirements": "._remedies",
}

if _TYPE_CHECKING:
    from ._remedies import missing_requirements as missing_requirements
    from ._remedies import script_requirements as script_requirements
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
