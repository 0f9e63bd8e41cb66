"""Hosts: serving any ASGI application on trio, with the built-in HTTP/1.1 or on hypercorn."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..._util import late as _late
from ..._util import publish as _publish
from ._host import Host as Host
from ._host import serve_asgi as serve_asgi
from ._listeners import open_listeners as open_listeners
from ._options import HostOptions as HostOptions
from ._options import ListenError as ListenError

_LATE = {
    "._hypercorn": "serve_hypercorn",
}

if _TYPE_CHECKING:
    from ._hypercorn import serve_hypercorn as serve_hypercorn
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
