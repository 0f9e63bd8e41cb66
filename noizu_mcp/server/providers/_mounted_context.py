"""Calls and capabilities of a mounted server, in the names of the outer server."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ...components import Capability
from ...types import ToolResult
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
