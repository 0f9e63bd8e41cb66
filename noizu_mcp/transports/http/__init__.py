"""Streamable HTTP: the ASGI application of a server, and serving it on a host.

Its names are loaded on first use: a server on stdio needs none of them.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..._util import late as _late
from ..._util import publish as _publish

_LATE = {
    "..host": "Host HostOptions ListenError serve_asgi",
    ".server._app": "HttpApp",
    ".server._http_options": "HttpLimits HttpOptions",
    ".server._serve_http": "serve_http",
}

if _TYPE_CHECKING:
    from ..host import Host as Host
    from ..host import HostOptions as HostOptions
    from ..host import ListenError as ListenError
    from ..host import serve_asgi as serve_asgi
    from .server._app import HttpApp as HttpApp
    from .server._http_options import HttpLimits as HttpLimits
    from .server._http_options import HttpOptions as HttpOptions
    from .server._serve_http import serve_http as serve_http
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
