"""asyncio: the client for asyncio programs and notebooks, and asyncio code in trio handlers."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._connect import connect as connect
from ._run import run as run

_LATE = {
    "._connect_all": "connect_all",
}

if _TYPE_CHECKING:
    from ._connect_all import connect_all as connect_all
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
