"""Serving as the main job of a process."""

from functools import partial

import trio

from .server import Server
from .transports import serve_stdio


def run_stdio(server: Server) -> None:
    """Serve on stdin and stdout until the client ends it, or SIGINT or SIGTERM comes.

    Args:
        server: The server.
    """
    trio.run(partial(serve_stdio, server, handle_signals=True))
