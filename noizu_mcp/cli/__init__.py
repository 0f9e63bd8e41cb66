"""The command line: `noizu-mcp`."""

from .._util import publish as _publish
from ._main import main as main

_publish(globals())
