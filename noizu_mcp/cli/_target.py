"""Servers of this program: found as `module:Server` or `path/to/file.py:Server`, and served.

With `--config` the servers of a file stand behind one of them, or behind a gateway of nothing else.
"""

import sys
from functools import partial
from typing import Any

from .. import server
from .._errors import TargetError
from .._serving import Server as PublicServer
from .._serving import run_stdio
from .._version import __version__
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


def open_server(target: str | None, config: str | None = None) -> Server:
    """Make the server of `run`.

    Args:
        target: The server; see `load_server`. None: one that has nothing of its own.
        config: The path of a file of the `mcpServers` form, whose servers become parts of it; None
            for none.

    Raises:
        CommandError: The server cannot be imported, or the file cannot be read.
    """
    if config is None and target is not None:
        return load_server(target)
    from ..remote import Remote  # loads the client

    try:
        remotes = Remote.from_config(config or "")
    except TargetError as error:
        raise CommandError(str(error), USAGE) from error
    make: Any = type(PublicServer)
    if target is not None:
        front = load_server(target)
    else:
        front = make("Gateway", (PublicServer,), {}, name="gateway", version=__version__)()
    front.providers.add(*remotes)
    return front


def run(target: str | None, config: str | None = None) -> int:
    """Serve until the client ends it.

    Args:
        target: The server; see `open_server`. Its prints go to stderr, also during the import.
        config: See `open_server`.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        text = "serving on this terminal; a client should start this command. Ctrl-C ends it."
        print(f"noizu-mcp: {text}", file=sys.stderr)
    run_stdio(partial(open_server, target, config))
    return OK
