"""Capabilities limit the calls that a call may make. They can only be narrowed.

Theory of operation. A capability is a list of conditions, and a call must meet all of them.
`attenuate` adds conditions and removes none, so a derived capability never allows more than its
original. Its text is sealed with the keys of the server: authenticated, encrypted, bound to the
server and the principal, and with an expiry. A text is opened once: its id is stored until it
expires, and a second opening is refused. So a text that leaks after its use is worthless.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from ..._errors import Denied, McpError
from ..._limits import PART
from ..._util import final, is_number
from ..._value import JSONMapping, JSONObject
from ...components import Capability
from ...jsonrpc import render_sorted
from ...types import Principal
from ._patterns import first_match, read_patterns

#: The reason for every invalid text, so that a caller cannot probe which check failed.
INVALID: Final = "the capability is not valid"
#: Maximum characters of a text. A capability that was narrowed many times is still smaller.
MAX_TEXT: Final = 16 * 1024
#: Maximum number of opened texts that have not expired.
MAX_OPENED: Final = 10_000
#: Random bytes of the id of a text.
_ID: Final = 16


class Seals(Protocol):
    """Seals values into text, and opens them; see `Sealer`."""

    def seal(self, content: object, binding: JSONMapping) -> str: ...
    def open(self, state: object, binding: JSONMapping) -> Any: ...


@final
class IssuedCapability(Capability):
    """A capability of a server.

    Args:
        issuer: The issuer of the server.
        principal: As in `Capability`.
        tools: As in `Capability`.
        expires_at: As in `Capability`.
        depth: As in `Capability`.
        wanted: Arguments that each call must have: names, and values as canonical JSON.
    """

    __slots__ = ("_issuer", "depth", "expires_at", "principal", "server", "tools", "wanted")

    _issuer: "CapabilityIssuer"
    wanted: tuple[tuple[str, str], ...]

    def __init__(
        self,
        issuer: "CapabilityIssuer",
        principal: str | None,
        *,
        tools: Iterable[Iterable[str]] = (),
        expires_at: float | None = None,
        depth: int | None = None,
        wanted: Iterable[tuple[str, str]] = (),
    ) -> None:
        # Bypasses `__setattr__`, which refuses changes.
        put = partial(object.__setattr__, self)
        put("_issuer", issuer)
        put("server", issuer.name)
        put("principal", principal)
        # Without duplicates: a capability may be narrowed many times.
        put("tools", tuple(dict.fromkeys(map(tuple, tools))))
        put("expires_at", expires_at)
        put("depth", depth)
        # As canonical JSON: 1 and true are equal in Python, but are different arguments.
        put("wanted", tuple(dict.fromkeys((name, text) for name, text in wanted)))

    def __repr__(self) -> str:
        return f"<Capability of {self.principal}, depth {self.depth}>"  # the text is secret

    def __str__(self) -> str:
        return self._issuer.write(self)

    def attenuate(
        self,
        *,
        tools: Iterable[str] | None = None,
        expires_in: float | None = None,
        depth: int | None = None,
        arguments: JSONMapping | None = None,
    ) -> "IssuedCapability":
        """Make a capability that allows no more than this one; see `Capability`."""
        if depth is not None and (type(depth) is not int or depth < 0):
            raise ValueError(f"depth must be a whole number of 0 or more, got {depth!r}")
        end = None
        if expires_in is not None:
            if not is_number(expires_in) or expires_in < 0:
                raise ValueError(f"expires_in must be seconds, 0 or more, got {expires_in!r}")
            end = self._issuer.now() + expires_in
        if not isinstance(arguments, Mapping | None):
            raise TypeError(f"arguments must be a mapping, got {arguments!r}")
        wanted = [(name, _canonical(value)) for name, value in (arguments or {}).items()]
        listed = () if tools is None else (read_patterns(tools),)
        narrower = IssuedCapability(
            self._issuer,
            self.principal,
            tools=listed,
            expires_at=end,
            depth=depth,
            wanted=wanted,
        )
        return self.joined(narrower)

    def joined(self, other: "IssuedCapability") -> "IssuedCapability":
        """Make a capability that allows the calls that both allow.

        Args:
            other: The other capability.

        Raises:
            Denied: It belongs to another server or another principal.
        """
        if other.server != self.server or other.principal != self.principal:
            raise Denied(INVALID)
        return IssuedCapability(
            self._issuer,
            self.principal,
            tools=(*self.tools, *other.tools),
            expires_at=_least(self.expires_at, other.expires_at),
            depth=_least(self.depth, other.depth),
            wanted=(*self.wanted, *other.wanted),
        )

    def inner(self) -> "IssuedCapability":
        """Make the capability of a call that this one allowed."""
        return IssuedCapability(
            self._issuer,
            self.principal,
            tools=self.tools,
            expires_at=self.expires_at,
            depth=None if self.depth is None else max(0, self.depth - 1),
            wanted=self.wanted,
        )

    def refusal(self, name: str, arguments: JSONMapping) -> Denied | None:
        """Return why a call is not allowed; None if it is allowed.

        Args:
            name: The name of the tool.
            arguments: The arguments that will be sent.
        """
        if self.expires_at is not None and self._issuer.now() >= self.expires_at:
            return Denied("the capability has expired")
        if self.depth == 0:
            return Denied("the capability allows no deeper calls")
        if not all(first_match(patterns, name) for patterns in self.tools):
            return Denied(f"the capability does not allow tool {name!r}")
        for wanted, text in self.wanted:
            if wanted not in arguments or _canonical(arguments[wanted]) != text:
                return Denied(f"the capability demands another value of the argument {wanted!r}")
        return None

    def to_json(self) -> JSONObject:
        """Return the conditions as JSON."""
        return {
            "tools": [list(patterns) for patterns in self.tools],
            "expires": self.expires_at,
            "depth": self.depth,
            "arguments": [list(each) for each in self.wanted],
        }


class CapabilityIssuer:
    """Makes the capabilities of one server, and opens their texts.

    Args:
        name: The name of the server. Its capabilities are bound to it.
        sealer: Seals the texts.
        ttl: Maximum lifetime of a text in seconds.
        clock: Returns Unix time in seconds.
    """

    def __init__(
        self, name: str, sealer: Seals, ttl: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.name: Final = name
        self.now: Final = clock
        self._sealer = sealer
        self._ttl = ttl
        # The expiry of each opened text, by id.
        self._opened: dict[str, tuple[float, str | None]] = {}
        self._shares: Counter[str | None] = Counter()

    def issue(self, caller: Principal | None) -> IssuedCapability:
        """Make the capability of a request: it allows all calls.

        Args:
            caller: The caller of the request.
        """
        return IssuedCapability(self, _key_of(caller))

    def write(self, capability: IssuedCapability) -> str:
        """Write a capability as text. Each text has its own id.

        Raises:
            ValueError: It has too many conditions.
        """
        content = capability.to_json()
        # The expiry is part of the content: writing an opened text again does not extend it.
        content["expires"] = _least(capability.expires_at, self.now() + self._ttl)
        content["id"] = os.urandom(_ID).hex()
        text = self._sealer.seal(content, self._binding(capability.principal))
        if len(text) > MAX_TEXT:
            raise ValueError(f"a capability as text may have {MAX_TEXT} characters")
        return text

    def read(self, text: str, caller: Principal | None) -> tuple[str, IssuedCapability]:
        """Read the text of a capability; it may have been opened before.

        Args:
            text: The text.
            caller: The caller who presents it.

        Returns:
            Its id, and the capability.

        Raises:
            Denied: It is forged, has expired, or belongs to another server or principal.
        """
        principal = _key_of(caller)
        if len(text) > MAX_TEXT:
            raise Denied(INVALID)
        try:
            content = self._sealer.open(text, self._binding(principal))
        except McpError:  # the log has the reason
            raise Denied(INVALID) from None
        found = IssuedCapability(
            self,
            principal,
            tools=content["tools"],
            expires_at=content["expires"],
            depth=content["depth"],
            wanted=[(name, value) for name, value in content["arguments"]],
        )
        if self.now() >= content["expires"]:
            raise Denied(INVALID)
        return content["id"], found

    def redeem(self, id_: str, capability: IssuedCapability) -> None:
        """Record that a text was opened.

        Args:
            id_: The id of the text.
            capability: The capability that it contains.

        Raises:
            Denied: It was opened before, or too many others were.
        """
        principal, end = capability.principal, capability.expires_at or 0.0
        if len(self._opened) >= MAX_OPENED:
            self._forget()
        # One principal may use a part of the room, so that it cannot block the others.
        full = principal is not None and self._shares[principal] >= MAX_OPENED // PART
        if id_ in self._opened or full or len(self._opened) >= MAX_OPENED:
            raise Denied(INVALID)
        self._opened[id_] = end, principal
        self._shares[principal] += 1

    def _forget(self) -> None:
        """Remove the texts that have expired: they cannot be opened."""
        now = self.now()
        self._opened = {id_: each for id_, each in self._opened.items() if each[0] > now}
        self._shares = Counter(principal for _, principal in self._opened.values())

    def _binding(self, principal: str | None) -> JSONObject:
        return {"server": self.name, "principal": principal}


def _key_of(caller: Principal | None) -> str | None:
    return None if caller is None else caller.key


def _canonical(value: object) -> str:
    return render_sorted(value).decode("utf-8", "surrogatepass")


def _least(one: Any, other: Any) -> Any:
    """Return the smaller of two limits. None means no limit."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
