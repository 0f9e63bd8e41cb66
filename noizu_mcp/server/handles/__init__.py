"""Handles while a server is served: their records, and the calls that use them."""

from ..._util import publish as _publish
from ._backing import HandleBacking as HandleBacking

_publish(globals())
