"""URI templates (RFC 6570): expanded, and matched against URIs."""

from .._util import publish
from ._template import UriTemplate as UriTemplate

__all__ = ["UriTemplate"]

publish(globals())
