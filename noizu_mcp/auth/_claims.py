"""What the claims of a token must say, once it is known who wrote them (RFC 7519, RFC 9068)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from .._errors import InvalidToken
from ..types import Principal

#: Seconds by which clocks may differ.
LEEWAY: Final = 30.0

# Claims in which issuers say what a token is for (Keycloak, Cognito, and others after them), and
# what they call those that are not for servers: an ID token is for the client that it names.
_KINDS: Final = ("typ", "token_use", "token_type")
_NOT_FOR_ACCESS: Final = frozenset(
    {"id", "id_token", "refresh", "refresh_token", "offline", "offline_token"}
    | {"logout", "logout_token"}
)

# Seconds of Unix time that no clock will show; NaN and infinity are not below it either.
_END_OF_TIME: Final = 1e15


def read_audience(audience: str | Sequence[str] | None, who: str) -> frozenset[str]:
    """Read the option that names this server to token issuers.

    Raises:
        ValueError: None is given, or one is empty.
    """
    names: list[Any] = [audience] if isinstance(audience, str) else list(audience or ())
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"{who} needs audience=, the name of this server in tokens, such as its URL: without "
            "it a token that was issued for any other server would be good here (RFC 8707)"
        )
    return frozenset(names)


def read_issuer(issuer: str | None, who: str) -> str:
    """Read the option that names who may issue tokens.

    Raises:
        ValueError: None is given.
    """
    if not isinstance(issuer, str) or not issuer:
        raise ValueError(f"{who} needs issuer=, exactly as it stands in `iss` of the tokens")
    return issuer


@attrs.frozen(kw_only=True)
class ClaimRules:
    """What claims must say.

    Attributes:
        issuer: What `iss` must be, letter by letter.
        audience: One of them must be in `aud`.
        required: Claims that must be there.
        leeway: Seconds by which clocks may differ.
        clock: Tells the time, in seconds of Unix time.
    """

    issuer: str
    audience: frozenset[str]
    required: tuple[str, ...]
    leeway: float
    clock: Callable[[], float]

    def principal(self, claims: Mapping[str, Any]) -> Principal:
        """Check claims, and make out of them who is calling.

        Raises:
            InvalidToken: They are not what they must be.
        """
        missing = [name for name in self.required if claims.get(name) is None]
        if missing:
            raise InvalidToken(f"claims are missing: {', '.join(missing)}")
        if claims.get("cnf") is not None:
            # RFC 7800: good only together with a proof that nobody here can check.
            raise InvalidToken("it is bound to a key of its owner (`cnf`), not a bearer token")
        _check_kind(claims)
        self._check_times(claims)
        self._check_issuer(claims)
        self._check_audience(claims)
        return self._make(claims)

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self.clock()
        times = {name: _time(claims, name) for name in ("exp", "nbf", "iat")}
        if times["exp"] is not None and now >= times["exp"] + self.leeway:
            raise InvalidToken(f"it expired {now - times['exp']:.0f} s ago")
        for name in ("nbf", "iat"):
            at = times[name]
            if at is not None and now < at - self.leeway:
                raise InvalidToken(f"it is not good yet: `{name}` is {at - now:.0f} s from now")

    def _check_issuer(self, claims: Mapping[str, Any]) -> None:
        issuer = claims.get("iss", self.issuer)
        if issuer != self.issuer:
            raise InvalidToken(f"it is of another issuer: {shown(issuer)}")

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        given = claims["aud"]
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidToken("`aud` is neither a text nor a list of texts")
        if self.audience.isdisjoint(names):
            raise InvalidToken(f"it is for another server: {shown(names)}")

    def _make(self, claims: Mapping[str, Any]) -> Principal:
        subject = _name(claims, "sub")
        client = _name(claims, "client_id") or _name(claims, "azp")
        if subject is None and client is None:
            raise InvalidToken("it names neither a user nor a client")
        return Principal(
            subject=subject,
            client_id=client,
            issuer=self.issuer,
            scopes=_scopes(claims),
            expires_at=_time(claims, "exp"),
            claims=claims,
        )


def shown(value: object) -> str:
    """Write what a client chose for the log: on one line, not too long."""
    text = ascii(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _check_kind(claims: Mapping[str, Any]) -> None:
    for name in _KINDS:
        kind = claims.get(name)
        if kind is not None and (not isinstance(kind, str) or kind.lower() in _NOT_FOR_ACCESS):
            raise InvalidToken(f"`{name}` says that it is no access token: {shown(kind)}")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # True is an int to Python, and an int may be too large for a float.
    if type(value) not in {int, float} or not abs(value) < _END_OF_TIME:
        raise InvalidToken(f"`{name}` is no number of seconds")
    return float(value)


def _name(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidToken(f"`{name}` is no text, or empty")
    return value


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """Read `scope` (RFC 8693, 9068: text with spaces), else `scp`; some issuers send lists."""
    given = claims.get("scope")
    name, value = ("scope", given) if given is not None else ("scp", claims.get("scp", ""))
    scopes = value.split() if isinstance(value, str) else value
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise InvalidToken(f"`{name}` is neither a text nor a list of texts")
    return frozenset(scopes)
