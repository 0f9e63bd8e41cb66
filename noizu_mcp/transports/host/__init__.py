"""Hosts: serving any ASGI application on trio, with our own HTTP/1.1 or on hypercorn."""

from ..._util import publish as _publish
from ._host import Host as Host
from ._host import serve_asgi as serve_asgi
from ._hypercorn import serve_hypercorn as serve_hypercorn
from ._options import HostOptions as HostOptions
from ._options import ListenError as ListenError

_publish(globals())
