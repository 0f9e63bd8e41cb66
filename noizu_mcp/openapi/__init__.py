"""HTTP APIs as tools, by their OpenAPI documents."""

from .._util import publish as _publish
from ._provider import OpenAPI as OpenAPI

_publish(globals())
