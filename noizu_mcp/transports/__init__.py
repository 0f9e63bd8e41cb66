"""Where messages travel: stdio, memory and HTTP."""

from typing import TYPE_CHECKING

from .._util import late, publish
from ._claim import claimed_stdio as claimed_stdio
from ._claim import diverted_stdio as diverted_stdio
from ._claim import open_standard_descriptors as open_standard_descriptors
from ._claim import take_stdio as take_stdio
from ._lines import LineStream as LineStream
from ._stdio import ending_on_signals as ending_on_signals
from ._stdio import serve_descriptors as serve_descriptors
from ._stdio import serve_stdio as serve_stdio

_LATE = {
    "Http": "._remote",
    "HttpStream": ".http._client",
    "MemoryStream": "._memory",
    "Stdio": "._command",
    "Tap": "._tap",
    "TappedStream": "._tap",
    "memory_pair": "._memory",
    "open_process": "._process",
}

if TYPE_CHECKING:
    from ._command import Stdio as Stdio
    from ._memory import MemoryStream as MemoryStream
    from ._memory import memory_pair as memory_pair
    from ._process import open_process as open_process
    from ._remote import Http as Http
    from ._tap import Tap as Tap
    from ._tap import TappedStream as TappedStream
    from .http._client import HttpStream as HttpStream
else:
    __getattr__, __dir__ = late(globals(), _LATE)

__all__ = [
    "Http",
    "HttpStream",
    "LineStream",
    "MemoryStream",
    "Stdio",
    "Tap",
    "TappedStream",
    "claimed_stdio",
    "diverted_stdio",
    "ending_on_signals",
    "memory_pair",
    "open_process",
    "open_standard_descriptors",
    "serve_descriptors",
    "serve_stdio",
    "take_stdio",
]

publish(globals())
