"""`serve_over`: serves a server in this process over pipes or HTTP, for tests."""

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final, Literal, get_args

import trio

from .._errors import TargetError
from .._limits import CLIENT_LIMITS
from ..client import Target, read_target
from ..engine import MessageStream, single_failure
from ..server import Server, serve
from ..transports import Http, LineStream, Stdio

#: The transports that a test can use.
Transport = Literal["memory", "stdio", "http"]
TRANSPORTS: Final[tuple[Transport, ...]] = get_args(Transport)


def serve_over(target: Target, transport: Transport) -> AbstractAsyncContextManager[Any]:
    """Serve a server in this process over a transport: `connect(serve_over(Docs, "http"))`.

    The server runs on the loop of the connection, as long as the connection, so that a test can
    access its objects. `memory` carries bytes in memory. `stdio` is a pair of pipes with one
    message per line. `http` listens on a free port of 127.0.0.1, and needs the extra `http`.

    Args:
        target: A server, its class, or a text that names one; see `connect`. A command has the
            transport `stdio`, and a URL has `http`: these are only checked. A stream is used
            directly.
        transport: `memory`, `stdio` or `http`.

    Returns:
        A target of `connect`, `SyncClient` and `aio.connect`, for one connection.

    Raises:
        ValueError: The transport is unknown; raised at once.
        TargetError: The target cannot be reached over this transport; raised when it is entered.
        ImportError: The extra `http` is not installed; raised when it is entered.
    """
    if transport not in TRANSPORTS:
        raise ValueError(f"no transport {transport!r}; there are: {', '.join(TRANSPORTS)}")
    return _serve_over(target, transport)


@asynccontextmanager
async def _serve_over(target: Target, transport: Transport) -> AsyncIterator[Target]:
    if isinstance(target, AbstractAsyncContextManager) and not isinstance(target, Server):
        async with target as inner, _serve_over(inner, transport) as reached:
            yield reached
        return
    opened = read_target(target)
    only = transport_of(opened)
    if only not in (None, transport):
        raise TargetError(f"{target!r} is reached over {only} only, not over {transport}")
    if only is not None or transport == "memory" or isinstance(opened, MessageStream):
        yield opened
        return
    server: object = opened() if isinstance(opened, type) else opened
    if not isinstance(server, Server):
        raise TargetError(f"cannot serve {target!r}: give a Server")
    if transport == "stdio":
        async with _serve_on_pipes(server) as stream:
            yield stream
        return
    from ._hosted import serve_on_http

    async with serve_on_http(server) as url:
        yield url


def transport_of(opened: object) -> Transport | None:
    """Return the only transport of a command or a URL; None for other targets."""
    if isinstance(opened, Stdio):
        return "stdio"
    return "http" if isinstance(opened, Http) else None


@asynccontextmanager
async def _serve_on_pipes(server: Server) -> AsyncIterator[MessageStream]:
    """Serve on a pair of pipes, like a process with its stdin and stdout.

    Yields:
        The client's end.
    """
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    theirs = LineStream(their_in, their_out, server.options.limits)
    ours = LineStream(our_in, our_out, CLIENT_LIMITS)
    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, server, theirs, transport="stdio"))
            try:
                yield ours
            finally:
                # The server reads the end of its stdin, and ends gracefully.
                with trio.CancelScope(shield=True):
                    await ours.aclose()
