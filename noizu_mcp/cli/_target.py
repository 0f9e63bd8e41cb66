"""Servers of this program: found as `module:Server` or `path/to/file.py:Server`, and served."""

import sys
from functools import partial

from .. import server
from .._errors import TargetError
from .._serving import run_stdio
from ..server import Server
from ._errors import FAILED, OK, USAGE, CommandError


def load_server(target: str) -> Server:
    """Import a server and make it ready; see `noizu_mcp.server.load_server`.

    Args:
        target: `module:Server` or `path/to/file.py:Server`.

    Raises:
        CommandError: It cannot be imported, is not there, is no server, or is a URL.
    """
    try:
        return server.load_server(target)
    except TargetError as error:
        status = USAGE if error.is_wrong else FAILED
        raise CommandError(str(error), status) from error.__cause__


def run(target: str) -> int:
    """Serve until the client ends it.

    Args:
        target: The server; see `load_server`. Its prints go to stderr, also during the import.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        text = "serving on this terminal; a client should start this command. Ctrl-C ends it."
        print(f"noizu-mcp: {text}", file=sys.stderr)
    run_stdio(partial(load_server, target))
    return OK
