"""Who is calling, once a token has been verified."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import attrs

from .._util import json_text


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("claims cannot be changed; copy.deepcopy gives some that can")


_refusal: Any = _refuse


class _Claims(dict[str, Any]):
    """A dict that cannot be changed: one principal may serve many requests at a time.

    A proxy would do the same, but JSON has no form for one; claims are often sent on.
    """

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refusal
    clear = pop = popitem = setdefault = update = _refusal

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {name: copy.deepcopy(value, memo) for name, value in self.items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _Claims({name: _frozen(each) for name, each in value.items()})
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return value


def _as_scopes(scopes: Iterable[str]) -> frozenset[str]:
    if isinstance(scopes, str):
        raise TypeError(f"scopes are a set of names, not one text: {scopes!r}")
    return frozenset(scopes)


def _a_name(_: object, field: "attrs.Attribute[Any]", value: Any) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"Principal.{field.name} must be a text that is not empty, or None")


@attrs.frozen(kw_only=True)
class Principal:
    """Who is calling: what a verified token says about its bearer.

    Attributes:
        subject: The user, or whatever else the token is about (`sub`).
        client_id: The OAuth client that the token was issued to.
        issuer: Who vouches for it (`iss`); names of users are unique within one issuer.
        scopes: What the token allows.
        expires_at: When the token ends, in seconds of Unix time; None if it does not say.
        claims: All that the token says, read-only; `principal["sub"]` reads them, too.

    Raises:
        ValueError: There is neither a subject nor a client, or one of the names is empty: what is
            bound to such a principal would be bound to nobody.
    """

    subject: str | None = attrs.field(default=None, validator=_a_name)
    client_id: str | None = attrs.field(default=None, validator=_a_name)
    issuer: str | None = attrs.field(default=None, validator=_a_name)
    scopes: frozenset[str] = attrs.field(default=frozenset(), converter=_as_scopes)
    expires_at: float | None = None
    # They hold what logs should not: addresses, names, groups.
    claims: Mapping[str, Any] = attrs.field(factory=dict, converter=_frozen, hash=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.subject is None and self.client_id is None:
            raise ValueError("a Principal needs a subject or a client_id")

    @property
    def key(self) -> str:
        """Text that names this caller and no other: sessions, state, tasks and streams hang on it.

        Two tokens of one user have the same key; users, clients and issuers never share one.
        """
        if self.subject is not None:
            return json_text([self.issuer, "sub", self.subject])
        return json_text([self.issuer, "client_id", self.client_id])

    def __getitem__(self, name: str) -> Any:
        return self.claims[name]

    def __contains__(self, name: object) -> bool:
        return name in self.claims

    def get(self, name: str, default: Any = None) -> Any:
        """Read one claim.

        Args:
            name: Its name.
            default: What to give where there is none.
        """
        return self.claims.get(name, default)
