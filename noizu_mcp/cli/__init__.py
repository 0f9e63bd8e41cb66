"""The command line: `noizu-mcp`."""

from .._util import publish
from ._main import main as main

__all__ = ["main"]

publish(globals())
