"""URI templates (RFC 6570): expanded, and matched against URIs."""

from .._util import publish as _publish
from ._normal import normalize as normalize
from ._template import UriTemplate as UriTemplate

_publish(globals())
