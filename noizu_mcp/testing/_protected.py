"""An authorization server, and a server that requires its tokens, on free local ports."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ..auth import BearerAuth
from ..server import Server
from ..transports.http import HttpApp, HttpOptions
from ._authorization_server import AuthorizationServer
from ._hosted import hosted


@asynccontextmanager
async def serve_authorization(**options: Any) -> AsyncIterator[AuthorizationServer]:
    """Serve an `AuthorizationServer` on a free port of 127.0.0.1 while the block runs.

    Args:
        options: Options of `AuthorizationServer`, except `issuer`.

    Yields:
        The authorization server.

    Raises:
        ImportError: The extra `auth` or `http` is not installed.
    """
    async with hosted() as (url, answer_with):
        server = AuthorizationServer(url, **options)
        answer_with(server)
        yield server


@asynccontextmanager
async def serve_protected(
    server: Server | type[Server], auth_for: Callable[[str], BearerAuth]
) -> AsyncIterator[str]:
    """Serve an MCP server that requires tokens, on a free port of 127.0.0.1, while the block runs.

    Args:
        server: The server.
        auth_for: Makes the authorization of the server from its URL: `login.auth_for`, or
            `partial(login.auth_for, required_scopes=["docs:read"])`, or another function.

    Yields:
        The URL of its endpoint.

    Raises:
        ImportError: The extra `auth` or `http` is not installed.
    """
    async with hosted() as (origin, answer_with):
        url = f"{origin}/mcp"
        served = server() if isinstance(server, type) else server
        app = HttpApp(served, HttpOptions(auth=auth_for(url)))
        async with app.lifespan():
            answer_with(app)
            yield url
