"""Tools that come with the package, ready to be registered."""

from .._util import publish as _publish
from ..components import Catalog as Catalog

_publish(globals())
