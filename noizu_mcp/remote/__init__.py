"""Other servers as parts of one, over the client."""

from .._util import publish as _publish
from ._remote import Remote as Remote

_publish(globals())
