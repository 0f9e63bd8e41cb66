"""The caller of a request, and the scopes that an operation needs from it."""

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from .._errors import InsufficientScope
from .._util import json_text, reachable


def _refuse(*_: object, **__: object) -> Any:
    raise TypeError("claims cannot be changed; copy.deepcopy gives some that can")


class _Claims(dict[str, Any]):
    """A dict that cannot be changed: one principal may serve many requests at a time.

    `MappingProxyType` would not do: `json` cannot write one, and claims are often sent on.
    """

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: dict[int, object]) -> dict[str, object]:
        return {name: copy.deepcopy(value, memo) for name, value in self.items()}


def _frozen(value: object) -> object:
    if isinstance(value, Mapping):
        return _Claims({name: _frozen(each) for name, each in value.items()})
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return value


# A single string would become a set of letters, and a scope of one letter is allowed.
def _as_set(scopes: Iterable[str]) -> frozenset[str]:
    if isinstance(scopes, str):
        raise TypeError(f"scopes are a set of names, not one string: {scopes!r}")
    return frozenset(scopes)


def _a_name(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"Principal.{field.name} must be a string that is not empty, or None")


@attrs.frozen(kw_only=True)
class Principal:
    """The caller of a request, as a verified token describes it.

    Attributes:
        subject: The user, or another subject of the token (`sub`).
        client_id: The OAuth client that the token was issued to.
        issuer: The issuer of the token (`iss`); names of users are unique within one issuer.
        scopes: The scopes of the token.
        expires_at: The end of the token, in seconds of Unix time; None if it has no end.
        claims: All claims of the token, read-only; `principal["sub"]` reads them, too.

    Raises:
        TypeError: `scopes` is a single string.
        ValueError: There is neither a subject nor a client, or one of the names is empty: sessions
            and tasks are bound to these names.
    """

    subject: str | None = attrs.field(default=None, validator=_a_name)
    client_id: str | None = attrs.field(default=None, validator=_a_name)
    issuer: str | None = attrs.field(default=None, validator=_a_name)
    scopes: frozenset[str] = attrs.field(default=frozenset(), converter=_as_set)
    expires_at: float | None = None
    # Left out of the repr: logs should not show addresses, names and groups of users.
    claims: Mapping[str, Any] = attrs.field(factory=dict, converter=_frozen, hash=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.subject is None and self.client_id is None:
            raise ValueError("a Principal needs a subject or a client_id")

    @property
    def key(self) -> str:
        """Text that names this caller and no other; sessions, state and tasks are bound to it.

        All tokens of one user have one key. Users, clients and issuers never share a key.
        """
        # JSON, not a separator: with one, names that hold it could be made to look alike. The kind
        # stands in it, so that a client cannot take the name of a user.
        if self.subject is not None:
            return json_text([self.issuer, "sub", self.subject])
        return json_text([self.issuer, "client_id", self.client_id])

    def __getitem__(self, name: str) -> object:
        return self.claims[name]

    def __contains__(self, name: object) -> bool:
        return name in self.claims

    def get(self, name: str, default: object = None) -> Any:
        """Read one claim.

        Args:
            name: The name of the claim.
            default: The result if the token has no such claim.
        """
        return self.claims.get(name, default)


# RFC 6749 section 3.3.
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def as_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Check names of scopes.

    Args:
        scopes: One name, or several.

    Returns:
        Each name once, in order.

    Raises:
        ValueError: A name is not a `scope-token` of RFC 6749 section 3.3.
    """
    found: tuple[Any, ...] = (scopes,) if isinstance(scopes, str) else tuple(scopes)
    for scope in found:
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
            raise ValueError(f"{scope!r} is not the name of a scope: RFC 6749 allows no spaces")
    return tuple(dict.fromkeys(found))


def _as_hierarchy(given: Mapping[str, Iterable[str]] | None) -> dict[str, frozenset[str]]:
    """Give for each scope all scopes that it includes, directly or not, and itself."""
    direct = {scope: as_scopes(implied) for scope, implied in (given or {}).items()}
    as_scopes(direct)
    return {scope: frozenset({scope, *reachable(scope, direct)}) for scope in direct}


@attrs.frozen(init=False)
class RequireScopes:
    """Scopes that a caller must hold, all of them.

    Args:
        scopes: The names of the scopes.
        hierarchy: Scopes that a scope includes: `{"admin": ["read", "write"]}`. Scopes that those
            include count, too.

    Raises:
        ValueError: No scope is given, or a name is not a `scope-token` of RFC 6749 section 3.3.
    """

    scopes: tuple[str, ...]
    hierarchy: Mapping[str, frozenset[str]] = attrs.field(hash=False)

    def __init__(self, *scopes: str, hierarchy: Mapping[str, Iterable[str]] | None = None) -> None:
        if not scopes:
            raise ValueError("RequireScopes needs the name of a scope: RequireScopes('read')")
        self.__attrs_init__(as_scopes(scopes), _as_hierarchy(hierarchy))

    def check(self, principal: Principal | None) -> None:
        """Raise unless the caller holds every scope.

        Args:
            principal: The caller; None, for a request without authorization, holds no scope.

        Raises:
            InsufficientScope: A scope is missing. The error names all of them, so that one new
                token is enough (2025-11-25 and later, basic/authorization, scope challenge
                handling).
        """
        if not self.admits(principal):
            raise InsufficientScope(self.scopes)

    def admits(self, principal: Principal | None) -> bool:
        """Tell whether a caller holds every scope; None holds no scope.

        Args:
            principal: The caller, or None.
        """
        own = frozenset() if principal is None else principal.scopes
        held = own.union(*(self.hierarchy.get(scope, ()) for scope in own))
        return held.issuperset(self.scopes)
