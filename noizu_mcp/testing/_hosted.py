"""Applications and servers on free ports of this machine, for tests."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import trio

from ..engine import single_failure
from ..server import Server
from ..transports.http import HttpApp, HttpLimits, HttpOptions, serve_asgi

#: Seconds for running requests after the client of a test has left. It has cancelled its requests,
#: so a handler that takes longer ignores the cancellation.
_GRACE: Final = 0.2


@asynccontextmanager
async def serve_on_http(server: Server) -> AsyncIterator[str]:
    """Serve a server on a free port of 127.0.0.1 while the block runs.

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
    """Listen on a free port. The application is set afterwards, since it may need the URL.

    Yields:
        The URL, and the function that sets the application.
    """
    chosen: list[Any] = []

    async def relay(scope: object, receive: object, send: object) -> None:
        await chosen[0](scope, receive, send)

    with single_failure():
        async with trio.open_nursery() as nursery:
            host = await nursery.start(partial(serve_asgi, relay, port=0))
            try:
                yield host.urls[0], chosen.append
            finally:
                # Not gracefully: a hanging request of a test would delay it.
                nursery.cancel_scope.cancel()
