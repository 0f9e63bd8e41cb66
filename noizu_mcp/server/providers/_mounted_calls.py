"""The contexts of a mounted server, and a count of the calls that use it."""

from typing import Any

import trio

from ..._errors import McpError
from ...components import Renaming
from ...jsonrpc import INVALID_PARAMS
from .._running import Portal, RunningServer
from .._server import Server
from .._server_context import ServerContext
from ._mounted_context import MountedCalls


class MountedContexts:
    """The contexts of the calls and subscriptions that use a mounted server.

    Args:
        server: The mounted server.
        names: Converts between its names and the names that clients see.
        portal: Runs functions in the loop that serves it.

    Attributes:
        server: See Args.
        names: See Args.
        inner: The mounted server while it is served; None before its lifespan.
    """

    def __init__(self, server: Server, names: Renaming, portal: Portal) -> None:
        self.server = server
        self.names = names
        self._portal = portal
        self.inner: RunningServer | None = None
        self._running: dict[ServerContext, None] = {}
        self._is_ending = False
        self._idle = trio.Event()

    def begin(self, inner: RunningServer) -> None:
        """Start to accept calls.

        Args:
            inner: The mounted server while it is served.
        """
        self.inner = inner

    def end(self) -> None:
        """Refuse calls from now on."""
        self.inner = None

    async def wait_idle(self) -> None:
        """Wait until no call uses the server."""
        self._is_ending = True
        while self._running:
            self._idle = trio.Event()
            await self._idle.wait()

    def context(self, ctx: Any) -> ServerContext | None:
        """Make the context of the mounted server for a request; None while it is not served."""
        inner = self.inner
        if inner is None:
            return None
        outer: ServerContext = ctx
        return outer.of_mounted(inner, MountedCalls(outer, self.names.rename))

    def need_context(self, ctx: Any) -> ServerContext:
        """Make the context of the mounted server for a request.

        Raises:
            McpError: The server is not served at the moment (-32602).
        """
        context = self.context(ctx)
        if context is None:
            raise not_served(self.server)
        return context

    def enter(self, ctx: Any) -> ServerContext:
        """Make the context of a call. The lifespan of the server lasts at least until `leave`.

        Raises:
            McpError: The server is not served at the moment (-32602).
        """
        context = self.need_context(ctx)
        if self.inner is not None and self.server.registry.providers is not None:
            # Lets URIs of its providers' resources be renamed in the answer.
            self.inner.provider_lists.attach(context)
        self._running[context] = None
        return context

    def leave(self, context: ServerContext) -> None:
        """End a call. Callable from any thread."""
        del self._running[context]
        if self._is_ending and not self._running:
            self._portal.run_soon(self._note_idle)

    def _note_idle(self) -> None:
        self._idle.set()  # each wait has its own event


def not_served(server: Server) -> McpError:
    """Make the error for a server whose lifespan has ended, or has not begun (-32602)."""
    return McpError(INVALID_PARAMS, f"{server.options.name} is not served now")
