"""Which scopes an operation needs."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from .._errors import InsufficientScope
from ._identity import Principal

# RFC 6749 section 3.3.
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def as_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Check names of scopes; gives each once, in order.

    Raises:
        ValueError: One is no `scope-token` of RFC 6749 section 3.3.
    """
    found: tuple[Any, ...] = (scopes,) if isinstance(scopes, str) else tuple(scopes)
    for scope in found:
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
            raise ValueError(f"{scope!r} is no name of a scope: RFC 6749 has no spaces in one")
    return tuple(dict.fromkeys(found))


def _as_hierarchy(given: Mapping[str, Iterable[str]] | None) -> dict[str, frozenset[str]]:
    """Give for each scope all that it stands for, itself and what those stand for included."""
    direct = {scope: as_scopes(implied) for scope, implied in (given or {}).items()}
    as_scopes(direct)
    return {scope: _reachable(scope, direct) for scope in direct}


def _reachable(scope: str, direct: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    found: set[str] = set()
    waiting = [scope]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(direct.get(each, ()))
    return frozenset(found)


@attrs.frozen(init=False)
class RequireScopes:
    """Scopes that a caller must hold, all of them.

    Args:
        scopes: Their names.
        hierarchy: What a scope stands for besides itself: `{"admin": ["read", "write"]}`. What
            those stand for counts, too.

    Raises:
        ValueError: No scope is named, or a name is not one of RFC 6749 section 3.3.
    """

    scopes: tuple[str, ...]
    hierarchy: Mapping[str, frozenset[str]] = attrs.field(hash=False)

    def __init__(self, *scopes: str, hierarchy: Mapping[str, Iterable[str]] | None = None) -> None:
        if not scopes:
            raise ValueError("RequireScopes needs the name of a scope: RequireScopes('read')")
        self.__attrs_init__(as_scopes(scopes), _as_hierarchy(hierarchy))

    def check(self, principal: Principal | None) -> None:
        """Let a caller pass who holds every scope.

        Args:
            principal: Who is calling; None, where no authorisation is configured or none was
                given, holds no scope.

        Raises:
            InsufficientScope: One is not held; it carries all of them, so that one new token is
                enough (2025-11-25 and later, basic/authorization, scope challenge handling).
        """
        if not self.admits(principal):
            raise InsufficientScope(self.scopes)

    def admits(self, principal: Principal | None) -> bool:
        """Tell whether a caller holds every scope; None holds none.

        Args:
            principal: Who is calling.
        """
        held = frozenset() if principal is None else self._held(principal.scopes)
        return held.issuperset(self.scopes)

    def _held(self, scopes: frozenset[str]) -> frozenset[str]:
        return scopes.union(*(self.hierarchy.get(scope, ()) for scope in scopes))
