"""Applications and servers on free ports of this machine, for tests."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import trio

from ..engine import single_failure
from ..server import Server
from ..transports.http import HttpApp, HttpLimits, HttpOptions, serve_asgi

#: Seconds that running requests get when the client of a test has left. It has cancelled what it
#: had asked for, so a handler that takes longer ignores that.
_GRACE: Final = 0.2


@asynccontextmanager
async def serve_on_http(server: Server) -> AsyncIterator[str]:
    """Serve a server at a free port of 127.0.0.1 for as long as the block runs.

    Args:
        server: The server.

    Yields:
        The URL of its endpoint.

    Raises:
        ImportError: The extra `http` is not installed.
    """
    async with hosted() as (origin, answer_with):
        app = HttpApp(server, HttpOptions(limits=HttpLimits(grace=_GRACE)))
        async with app.lifespan():
            answer_with(app)
            yield f"{origin}{app.options.path}"


@asynccontextmanager
async def hosted() -> AsyncIterator[tuple[str, Callable[[Any], None]]]:
    """Listen at a free port; the application is given afterwards, since it may need the URL.

    Yields:
        The URL, and the function that takes the application.
    """
    chosen: list[Any] = []

    async def relay(scope: Any, receive: Any, send: Any) -> None:
        await chosen[0](scope, receive, send)

    with single_failure():
        async with trio.open_nursery() as nursery:
            host = await nursery.start(partial(serve_asgi, relay, port=0))
            try:
                yield host.urls[0], chosen.append
            finally:
                # Not in order: a request that a test lets hang would hold it up.
                nursery.cancel_scope.cancel()
