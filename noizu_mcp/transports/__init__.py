"""Transports: stdio, memory and HTTP."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish

_LATE = {
    ".http.client._event_reader": "EventParser EventSizeError",
    "._http_target": "Http",
    ".http.client._stream": "HttpStream",
    "._memory": "MemoryStream memory_pair",
    ".http.server._worker": "Worker",
    "._process_end": "calling_on_hangup ending_on_signals",
    "._tap": "Tap TappedStream",
    ".stdio._child_process": "last_line open_process",
    ".stdio._claimed_stdio": "claimed_stdio diverted_stdio open_standard_descriptors take_stdio",
    ".stdio._command": "Stdio",
    ".stdio._line_stream": "LineStream",
    ".stdio._server": "serve_descriptors serve_stdio",
}

if _TYPE_CHECKING:
    from ._http_target import Http as Http
    from ._memory import MemoryStream as MemoryStream
    from ._memory import memory_pair as memory_pair
    from ._process_end import calling_on_hangup as calling_on_hangup
    from ._process_end import ending_on_signals as ending_on_signals
    from ._tap import Tap as Tap
    from ._tap import TappedStream as TappedStream
    from .http.client._event_reader import EventParser as EventParser
    from .http.client._event_reader import EventSizeError as EventSizeError
    from .http.client._stream import HttpStream as HttpStream
    from .http.server._worker import Worker as Worker
    from .stdio._child_process import last_line as last_line
    from .stdio._child_process import open_process as open_process
    from .stdio._claimed_stdio import claimed_stdio as claimed_stdio
    from .stdio._claimed_stdio import diverted_stdio as diverted_stdio
    from .stdio._claimed_stdio import open_standard_descriptors as open_standard_descriptors
    from .stdio._claimed_stdio import take_stdio as take_stdio
    from .stdio._command import Stdio as Stdio
    from .stdio._line_stream import LineStream as LineStream
    from .stdio._server import serve_descriptors as serve_descriptors
    from .stdio._server import serve_stdio as serve_stdio
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
