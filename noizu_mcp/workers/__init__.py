"""What a supervisor and its workers share: words, a hub, listening sockets.

`noizu-mcp run --workers` is the supervisor (`cli/workers`); `Worker` of the HTTP transport is its
other end. A server in one process loads none of it.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._control import METRICS as METRICS
from ._control import MOST as MOST
from ._control import READY as READY
from ._control import RETIRE as RETIRE
from ._control import VARIABLE as VARIABLE
from ._control import Place as Place

_LATE = {
    "._balance": "Balance SharedSockets open_balance",
    "._frames": "FrameStream",
    "._hub": "Hub serve_hub",
}

if _TYPE_CHECKING:
    from ._balance import Balance as Balance
    from ._balance import SharedSockets as SharedSockets
    from ._balance import open_balance as open_balance
    from ._frames import FrameStream as FrameStream
    from ._hub import Hub as Hub
    from ._hub import serve_hub as serve_hub
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
