"""Tools that come with the package, ready to be registered."""

from .._util import publish
from ..components import Catalog as Catalog

__all__ = ["Catalog"]

publish(globals())
