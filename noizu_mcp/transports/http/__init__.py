"""Streamable HTTP: the ASGI application of a server, and serving it on hypercorn.

Its names load when they are first used: a server on stdio needs none of them.
"""

from typing import TYPE_CHECKING

from ..._util import late

_LATE = {
    "Host": "._hypercorn",
    "HostOptions": "._host_options",
    "HttpApp": "._app",
    "HttpLimits": "._options",
    "HttpOptions": "._options",
    "serve_asgi": "._hypercorn",
    "serve_http": "._serve",
}

if TYPE_CHECKING:
    from ._app import HttpApp as HttpApp
    from ._host_options import HostOptions as HostOptions
    from ._hypercorn import Host as Host
    from ._hypercorn import serve_asgi as serve_asgi
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
