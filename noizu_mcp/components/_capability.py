"""`Capability`: what a handler may call in turn, as handlers see it.

The class is abstract, as `Context` is: the server makes the capabilities.
"""

import abc
from collections.abc import Iterable, Mapping


class Capability(abc.ABC):
    """The calls that a handler may make: `ctx.capability`.

    `attenuate` makes a narrower one for `ctx.call_tool`. `str(capability)` is a text for elsewhere,
    which `ctx.open_capability` opens once. The text is secret: whoever has it, and is the same
    principal, may use it.

    Attributes:
        server: The name of the server that it is bound to.
        principal: The `Principal.key` of the caller that it is bound to; None without
            authentication.
        tools: Patterns of names; a tool must fit one pattern of each entry. Empty: all tools.
        expires_at: The end, in seconds of Unix time; None for the end of the call.
        depth: Calls that may be nested in each other under it; None for the limit of the server.
    """

    __slots__ = ()

    server: str
    principal: str | None
    tools: tuple[tuple[str, ...], ...]
    expires_at: float | None
    depth: int | None

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse a change: a handler could widen what it may call."""
        raise AttributeError(f"Capability.{name} cannot be changed; attenuate makes a narrower one")

    def __delattr__(self, name: str) -> None:
        """Refuse a change; see `__setattr__`."""
        raise AttributeError(f"Capability.{name} cannot be deleted")

    @abc.abstractmethod
    def attenuate(
        self,
        *,
        tools: Iterable[str] | None = None,
        expires_in: float | None = None,
        depth: int | None = None,
        arguments: Mapping[str, object] | None = None,
    ) -> "Capability":
        """Make a capability that allows no more than this one.

        Args:
            tools: Names of tools, or patterns in which `*` stands for any text.
            expires_in: Seconds until its end.
            depth: Calls that may be nested in each other under it: 1 for a tool that may call no
                other, 0 for no call at all.
            arguments: Arguments that each call must have, with these values.

        Raises:
            ValueError: A value is wrong.
            TypeError: An argument is no JSON value, or `arguments` are no mapping.
        """
