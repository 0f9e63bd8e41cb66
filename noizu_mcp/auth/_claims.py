"""Rules for the claims of a token, and the principal of its claims (RFC 7519, RFC 9068)."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from .._errors import InvalidToken
from .._util import is_number
from .._value import JSON
from ..types import Principal

#: Default `leeway`, in seconds: the clocks of issuer and server may differ by this much.
LEEWAY: Final = 30.0

# Claims that tell the purpose of a token (Keycloak, Cognito, and others after them), and the values
# for tokens that are not for servers: an ID token, for example, is for the client that it names.
_KINDS: Final = ("typ", "token_use", "token_type")
_NOT_FOR_ACCESS: Final = frozenset(
    {"id", "id_token", "refresh", "refresh_token", "offline", "offline_token"}
    | {"logout", "logout_token"}
)

#: The claims that are times (RFC 7519 section 2, NumericDate).
TIMES: Final = ("exp", "nbf", "iat")
# Unix time in seconds that no clock will reach. NaN and infinity are not below it either.
_END_OF_TIME: Final = 1e15


#: Maximum `leeway` in seconds: an expired token is accepted for this long.
MAX_LEEWAY: Final = 300.0


@attrs.frozen(kw_only=True)
class ClaimRules:
    """The rules of a verifier for claims.

    PyJWT checks the registered claims of JWTs with them. An introspection response is not a JWT, so
    `check` does it there.

    Attributes:
        issuer: The only accepted `iss`, compared exactly.
        audience: The names of this server; one of them must be in `aud`.
        required: Claims that must be present.
        leeway: Seconds by which clocks may differ.
    """

    issuer: str
    audience: frozenset[str]
    required: tuple[str, ...]
    leeway: float

    def check(self, claims: Mapping[str, JSON]) -> None:
        """Check the registered claims of an introspection response (RFC 7662 section 2.2).

        A response without `iss` is from the issuer that was asked. For a JWT that PyJWT has
        refused, this method finds the reason for the log.

        Raises:
            InvalidToken: A required claim is missing, or a claim violates a rule.
        """
        missing = [name for name in self.required if claims.get(name) is None]
        if missing:
            raise InvalidToken(f"claims are missing: {', '.join(missing)}")
        now = time.time()
        exp = read_time(claims, "exp")
        if exp is not None and now >= exp + self.leeway:
            raise InvalidToken(f"it expired {now - exp:.0f} s ago")
        for name in ("nbf", "iat"):
            at = read_time(claims, name)
            if at is not None and now < at - self.leeway:
                raise InvalidToken(f"it is not valid yet: `{name}` is {at - now:.0f} s from now")
        if (issuer := claims.get("iss", self.issuer)) != self.issuer:
            raise InvalidToken(f"it is from another issuer: {shown(issuer)}")
        audience = _texts("aud", claims["aud"])
        if self.audience.isdisjoint(audience):
            raise InvalidToken(f"it is for another server: {shown(audience)}")

    def principal(self, claims: Mapping[str, JSON]) -> Principal:
        """Make the principal of a token whose registered claims are valid.

        Raises:
            InvalidToken: It is not an access token, is bound to a key, or has no subject.
        """
        if claims.get("cnf") is not None:
            # RFC 7800: it is valid only with a proof, which cannot be checked here.
            raise InvalidToken("it is bound to a key of its owner (`cnf`), not a bearer token")
        for name in _KINDS:
            kind = claims.get(name)
            if kind is not None and (not isinstance(kind, str) or kind.lower() in _NOT_FOR_ACCESS):
                raise InvalidToken(f"`{name}` says that it is not an access token: {shown(kind)}")
        subject = read_name(claims, "sub")
        client = read_name(claims, "client_id") or read_name(claims, "azp")
        if subject is None and client is None:
            raise InvalidToken("it names neither a user nor a client")
        # RFC 8693 section 4.2 and RFC 9068 section 2.2.3 have `scope`, a string; `scp` is older,
        # and some issuers send lists.
        scopes = "scope" if claims.get("scope") is not None else "scp"
        return Principal(
            subject=subject,
            client_id=client,
            issuer=self.issuer,
            scopes=_texts(scopes, claims.get(scopes, ""), split=True),
            expires_at=read_time(claims, "exp"),
            claims=claims,
        )


def read_rules(
    verifier: str,
    *,
    issuer: str | None,
    audience: str | Sequence[str] | None,
    required: tuple[str, ...],
    leeway: object,
) -> ClaimRules:
    """Read the options for claims that all verifiers share.

    Args:
        verifier: The class of the verifier, for messages.
        issuer: The only accepted `iss`.
        audience: One name of this server in tokens, or several.
        required: Claims that must be present.
        leeway: Seconds by which clocks may differ.

    Raises:
        ValueError: No issuer or no audience is given, or the leeway is not a number of seconds, or
            too large.
    """
    if not isinstance(issuer, str) or not issuer:
        raise ValueError(f"{verifier} needs issuer=, exactly as it stands in `iss` of the tokens")
    given: list[object] = [audience] if isinstance(audience, str) else list(audience or ())
    names = [each for each in given if isinstance(each, str) and each]
    if not names or len(names) < len(given):
        raise ValueError(
            f"{verifier} needs audience=, the name of this server in tokens, such as its URL:"
            " without it a token that was issued for any other server would be good here (RFC 8707)"
        )
    if not is_number(leeway) or not 0 <= leeway <= MAX_LEEWAY:
        raise ValueError(f"leeway must be seconds from 0 to {MAX_LEEWAY:g}, not {leeway!r}")
    return ClaimRules(
        issuer=issuer, audience=frozenset(names), required=required, leeway=float(leeway)
    )


def shown(value: object) -> str:
    """Format a value that a client controls for the log: on one line, and shortened."""
    text = ascii(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def read_time(claims: Mapping[str, JSON], name: str) -> float | None:
    """Read a claim that is a time; stricter than `int`, which accepts strings and booleans.

    Returns:
        Seconds of Unix time; None if the claim is absent or null.

    Raises:
        InvalidToken: It is not a valid time.
    """
    value = claims.get(name)
    if value is None:
        return None
    # A bool is an int in Python, and an int may be too large for a float.
    if type(value) not in {int, float} or not abs(value) < _END_OF_TIME:
        raise InvalidToken(f"`{name}` is not a number of seconds")
    return float(value)


def read_name(claims: Mapping[str, JSON], name: str) -> str | None:
    """Read a claim with the name of a person or program.

    Raises:
        InvalidToken: It is not a string, or empty.
    """
    value = claims.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidToken(f"`{name}` is not a string, or empty")
    return value


def _texts(name: str, value: object, *, split: bool = False) -> list[str]:
    if isinstance(value, str):
        return value.split() if split else [value]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidToken(f"`{name}` is neither a string nor a list of strings")
    return value
