"""Streamable HTTP: the ASGI application of a server, and serving it on hypercorn.

Its names load when they are first used: a server on stdio needs none of them.
"""

from typing import TYPE_CHECKING

from ..._util import late

_LATE = {
    "Host": "..host",
    "HostOptions": "..host",
    "HttpApp": "._app",
    "HttpLimits": "._options",
    "HttpOptions": "._options",
    "serve_asgi": "..host",
    "serve_http": "._serve",
}

if TYPE_CHECKING:
    from ..host import Host as Host
    from ..host import HostOptions as HostOptions
    from ..host import serve_asgi as serve_asgi
    from ._app import HttpApp as HttpApp
    from ._options import HttpLimits as HttpLimits
    from ._options import HttpOptions as HttpOptions
    from ._serve import serve_http as serve_http
else:
    __getattr__, __dir__ = late(globals(), _LATE)

__all__ = [
    "Host",
    "HostOptions",
    "HttpApp",
    "HttpLimits",
    "HttpOptions",
    "serve_asgi",
    "serve_http",
]
