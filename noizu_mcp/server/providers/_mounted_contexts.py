"""The contexts of a mounted server, and calls of its handlers through the outer server."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from ..._errors import McpError
from ...components import Capability, Renaming
from ...jsonrpc import INVALID_PARAMS
from ...types import ToolResult
from .._running import Portal, RunningServer
from .._server import Server
from .._server_context import ServerContext
from ..policies._patterns import read_patterns

if TYPE_CHECKING:
    from ..._errors import Denied


class MountedCapability(Capability):
    """A capability, in the names of a mounted server.

    Args:
        outer: The capability, in the names of the outer server.
        rename: Converts a name or URI of the mounted server to the outer one.
    """

    __slots__ = ("_rename", "depth", "expires_at", "outer", "principal", "server", "tools")

    outer: Capability
    _rename: Callable[[str, str], str]

    def __init__(self, outer: Capability, rename: Callable[[str, str], str]) -> None:
        # Bypasses `__setattr__`, which refuses changes.
        put = partial(object.__setattr__, self)
        put("outer", outer)
        put("_rename", rename)
        for name in ("server", "principal", "tools", "expires_at", "depth"):
            put(name, getattr(outer, name))

    def __repr__(self) -> str:
        return repr(self.outer)

    def __str__(self) -> str:
        return str(self.outer)

    def attenuate(
        self,
        *,
        tools: Iterable[str] | None = None,
        expires_in: float | None = None,
        depth: int | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> "MountedCapability":
        """Make a capability that allows no more than this one; see `Capability`."""
        if tools is not None:
            tools = [self._rename("name", each) for each in read_patterns(tools)]
        narrower = self.outer.attenuate(
            tools=tools, expires_in=expires_in, depth=depth, arguments=arguments
        )
        return MountedCapability(narrower, self._rename)


class MountedCalls:
    """Calls of handlers of a mounted server through the outer server; a `MountedView`.

    The outer server's policies apply, and conditions of capabilities use its names.

    Args:
        outer: The context of the request in the outer server.
        rename: Converts a name or URI of the mounted server to the outer one.
    """

    __slots__ = ("_outer", "_rename")

    def __init__(self, outer: ServerContext, rename: Callable[[str, str], str]) -> None:
        self._outer = outer
        self._rename = rename

    @property
    def capability(self) -> MountedCapability:
        """The capability of the call; see `Context`."""
        return MountedCapability(self._outer.capability, self._rename)

    async def open_capability(self, text: str) -> MountedCapability:
        """Open the text of a capability; see `Context`."""
        return MountedCapability(await self._outer.open_capability(text), self._rename)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        capability: Capability | str | None,
    ) -> ToolResult:
        """Call a tool of the mounted server; see `Context`."""
        if isinstance(capability, MountedCapability):
            capability = capability.outer
        renamed = self._rename("name", name)
        return await self._outer.call_tool(renamed, arguments, capability=capability)

    def refusal_of(self, name: str, arguments: Mapping[str, Any]) -> "Denied | None":
        """Return why the capability forbids a call; None if it allows the call."""
        return self._outer.refusal_of(self._rename("name", name), arguments)

    def notify_session(self, kind: str) -> None:
        """Send the session a list change; see `Notify`."""
        self._outer.notify_session(kind)


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

    def need_context(self, ctx: object) -> ServerContext:
        """Make the context of the mounted server for a request.

        Raises:
            McpError: The server is not served at the moment (-32602).
        """
        context = self.context(ctx)
        if context is None:
            raise not_served(self.server)
        return context

    def enter(self, ctx: object) -> ServerContext:
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
