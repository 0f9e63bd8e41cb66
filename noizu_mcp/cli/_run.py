"""`noizu-mcp run`: serve a server."""

import sys
from functools import partial

from .._serving import run_stdio
from ._errors import OK
from ._target import load_server


def run(target: str) -> int:
    """Serve until the client ends it.

    Args:
        target: What to serve; see `load_server`. What it prints, while it is imported or later,
            goes to stderr.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        text = "serving on this terminal; a client should start this command. Ctrl-C ends it."
        print(f"noizu-mcp: {text}", file=sys.stderr)
    run_stdio(partial(load_server, target))
    return OK
