"""asyncio: the client for asyncio programs and notebooks, and asyncio code in trio handlers."""

from .._util import publish as _publish
from ._connect import connect as connect
from ._run import run as run

_publish(globals())
