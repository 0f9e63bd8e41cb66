"""The policies of a running server, which can be replaced while it serves.

Every server loads this module, so it contains only the set: a server without policies loads and
runs nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._policy import Chain, Policy

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def is_guarded(spec: Any) -> bool:
    """Tell whether a component comes from a mounted server that has policies now.

    Args:
        spec: The component, or None.
    """
    return spec is not None and spec.guard is not None and bool(spec.guard.chains)


class PolicySet:
    """The policies of a server, in the order in which they are checked.

    Args:
        policies: The initial policies.
        bind: Returns the `check` of a policy as a function for trio.

    Attributes:
        chains: The policies for each kind of call; empty without policies.
    """

    def __init__(
        self,
        policies: Iterable["Policy"],
        bind: Callable[["Policy"], Callable[..., Any]],
    ) -> None:
        self._bind = bind
        self._policies: tuple[Policy, ...] = ()
        self.chains: Mapping[str, Chain] = _NONE
        if policies:
            self.replace(policies)

    def __repr__(self) -> str:
        return f"<PolicySet {list(self._policies)!r}>"

    def __iter__(self) -> "Iterator[Policy]":
        return iter(self._policies)

    def __len__(self) -> int:
        return len(self._policies)

    def replace(self, policies: Iterable["Policy"]) -> None:
        """Replace all policies; callable from any task or thread.

        A call that is being checked continues with the old policies. Each later call is checked by
        the new ones.

        Args:
            policies: The policies, in order; may be empty.

        Raises:
            DefinitionError: An item is not a policy. Nothing is replaced then.
        """
        from ._policy import make_chains

        policies = tuple(policies)
        # One assignment, so a call sees either the old chains or the new ones.
        self.chains = make_chains(policies, self._bind)
        self._policies = policies
