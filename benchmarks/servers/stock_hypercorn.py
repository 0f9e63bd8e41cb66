"""An ASGI application on hypercorn's trio worker as it comes."""

from typing import Any

import bench_port
import trio
from hypercorn.config import Config
from hypercorn.trio import serve


def run(app: Any, port: int) -> None:
    """Serve until a signal ends the process."""
    config = Config()
    config.bind = [f"{bench_port.HOST}:{port}"]
    config.loglevel = "WARNING"
    # By default it closes a connection after 1,000 requests.
    config.keep_alive_max_requests = 1_000_000_000
    trio.run(serve, app, config)
