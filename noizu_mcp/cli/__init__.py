"""The command line: `noizu-mcp`."""

from ._main import main as main
