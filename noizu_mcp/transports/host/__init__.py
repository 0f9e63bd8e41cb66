"""Hosts: serving any ASGI application on hypercorn's protocols, in trio, bounded."""

from ..._util import publish
from ._host import Host as Host
from ._host import serve_asgi as serve_asgi
from ._options import HostOptions as HostOptions

__all__ = ["Host", "HostOptions", "serve_asgi"]

publish(globals())
