"""Serving as the main job of a process."""

import threading
from collections.abc import Callable
from functools import partial

import trio

from .server import Server
from .transports import serve_descriptors, take_stdio


def run_stdio(server: Server | Callable[[], Server]) -> None:
    """Serve on stdin and stdout until the client ends it, or SIGINT or SIGTERM comes.

    Descriptor 0 reads nothing and descriptor 1 writes to stderr from then on, also afterwards: a
    thread that still runs must not print to the client.

    Args:
        server: The server, or what makes it once nothing can print to the client any more.
    """
    read_fd, write_fd = take_stdio()
    made = server if isinstance(server, Server) else server()
    in_main_thread = threading.current_thread() is threading.main_thread()
    trio.run(partial(serve_descriptors, made, read_fd, write_fd, handle_signals=in_main_thread))
