"""Our requests, kept out of the log of the HTTP library.

At INFO it logs every URL with its query, and at DEBUG the headers of every answer. Keys, arguments
and session ids are in them. Requests of the user's own code are logged as before.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_LOGGERS: Final = (
    "httpx2",
    *(f"httpcore2.{each}" for each in ("connection", "http11", "http2", "proxy", "socks")),
)
_OURS: Final = ContextVar("noizu_mcp.unlogged", default=False)


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(lambda _: not _OURS.get())


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep the HTTP library from logging what this task does in the block."""
    token = _OURS.set(True)
    try:
        yield
    finally:
        _OURS.reset(token)
