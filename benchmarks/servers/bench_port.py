"""Command line of every server over HTTP: `http_PEER PORT TOOLS [FLAG …]`.

With the flag `notices` it offers two tools more: `bump` tells every client that the list of tools
has changed; `join` enters a session for that, where the framework does not keep a list of them.
"""

import sys

HOST = "127.0.0.1"


def port() -> int:
    """Return the port to listen at."""
    return int(sys.argv[1])


def tools() -> int:
    """Return how many tools are asked for."""
    return int(sys.argv[2])


def has(flag: str) -> bool:
    """Tell whether there is such a flag."""
    return flag in sys.argv[3:]
