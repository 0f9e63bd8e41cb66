"""Tokens that are JWTs signed by their issuer (RFC 7519, RFC 9068)."""

import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import trio

from .._errors import InvalidToken
from ..types import Principal
from ._claims import LEEWAY, ClaimRules, read_audience, read_issuer, shown
from ._fetch import Fetcher, HTTPFetcher
from ._jwks import JWKS_COOLDOWN, JWKS_TTL, KeySet, select
from ._options import read_claims, read_leeway, read_seconds
from ._request import AuthRequest
from ._urls import check_url
from ._verifier import TokenVerifier

if TYPE_CHECKING:
    from ._jose import Header, Key

#: Algorithms with a public key; those with a shared secret are no part of it, nor is `none`.
JWT_ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip

# RFC 9068 section 2.1; most issuers still write JWT. Other types are not access tokens.
_AT_JWT: Final = frozenset({"at+jwt", "application/at+jwt"})
_TYPES: Final = _AT_JWT | {"jwt", "application/jwt"}


def load_jose() -> ModuleType:
    """Load what needs the JWT library.

    Raises:
        ImportError: It is not installed.
    """
    try:
        from . import _jose
    except ImportError as error:
        raise ImportError("verifying JWTs needs PyJWT: pip install 'noizu-mcp[auth]'") from error
    return _jose


class JWTVerifier(TokenVerifier):
    """Verifies access tokens that are JWTs signed with a private key of their issuer.

    Args:
        issuer: What `iss` must be, letter by letter.
        audience: What must be in `aud`: the name of this server, such as its URL (RFC 8707).
            Several: any one of them.
        jwks_uri: Where the issuer's keys are. They are kept, and fetched again when they are old,
            or a token names one that is not known or is signed with none that is.
        keys: Instead of `jwks_uri`: public keys in PEM, as JWK, as a JWK Set or as objects of
            `cryptography`; one, or a list.
        algorithms: Those that are allowed.
        required_claims: Claims that must be there besides `exp`, `iss` and `aud`.
        leeway: Seconds by which clocks may differ, 300 at most.
        only_access_tokens: Refuse tokens that do not call themselves `at+jwt` (RFC 9068).
        jwks_ttl: Seconds until the keys are fetched again.
        jwks_cooldown: Seconds between two fetches, at least.
        fetcher: What fetches the keys; `HTTPFetcher()` unless given.
        clock: Tells the time, in seconds of Unix time.

    Raises:
        ValueError: Something is missing, not safe, or no number of its kind.
        ImportError: PyJWT or httpx2 is not installed; the extra `auth` brings them.
    """

    def __init__(
        self,
        *,
        issuer: str | None = None,
        audience: str | Sequence[str] | None = None,
        jwks_uri: str | None = None,
        keys: Any = None,
        algorithms: Sequence[str] = JWT_ALGORITHMS,
        required_claims: Sequence[str] = ("sub",),
        leeway: float = LEEWAY,
        only_access_tokens: bool = False,
        jwks_ttl: float = JWKS_TTL,
        jwks_cooldown: float = JWKS_COOLDOWN,
        fetcher: Fetcher | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rules = ClaimRules(
            issuer=read_issuer(issuer, "JWTVerifier"),
            audience=read_audience(audience, "JWTVerifier"),
            required=("exp", "iss", "aud", *read_claims(required_claims, "required_claims")),
            leeway=read_leeway(leeway),
            clock=clock,
        )
        self._algorithms = _read_algorithms(algorithms)
        self._types = _AT_JWT if only_access_tokens else _TYPES | {None}
        self._jose = load_jose()
        ttl = read_seconds(jwks_ttl, "jwks_ttl")
        cooldown = read_seconds(jwks_cooldown, "jwks_cooldown")
        self._keys: Sequence[Key] = ()
        self._set: KeySet | None = None
        if (jwks_uri is None) == (keys is None):
            raise ValueError("JWTVerifier needs jwks_uri= or keys=, one of them")
        if jwks_uri is None:
            self._keys = self._usable(self._jose.read_keys(keys))
        else:
            check_url(jwks_uri, "jwks_uri")
            self._set = KeySet(
                jwks_uri,
                fetcher or HTTPFetcher(),
                self._jose.read_key_set,
                ttl=ttl,
                cooldown=cooldown,
            )

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`."""
        await trio.lowlevel.checkpoint()
        header = self._jose.read_header(token)
        # First of all: what is not allowed fetches nothing and verifies nothing.
        if header.alg not in self._algorithms:
            raise InvalidToken(f"the algorithm {shown(header.alg)} is not allowed")
        if (header.typ and header.typ.lower()) not in self._types:
            raise InvalidToken(f"a token of type {shown(header.typ)} is no access token")
        found = await self._find(header.alg, header.kid)
        if not found:
            raise InvalidToken(f"no key {shown(header.kid)} for {header.alg} is trusted")
        return self._rules.principal(await self._open(token, header, found))

    async def _open(self, token: str, header: "Header", found: "list[Key]") -> dict[str, Any]:
        """Read the claims of a token that is signed with one of some keys, or with a newer one."""
        try:
            return self._verify_signature(token, header, found)
        except self._jose.NotSigned:
            if self._set is None:
                raise
            newer = await self._set.find_newer(header.alg, header.kid, found)
            if not newer:
                raise
        return self._verify_signature(token, header, newer)

    def _verify_signature(self, token: str, header: "Header", found: "list[Key]") -> dict[str, Any]:
        keys = [each.key for each in found]
        claims: dict[str, Any] = self._jose.verify_signature(token, header.alg, keys)
        return claims

    async def _find(self, alg: str, kid: str | None) -> "list[Key]":
        if self._set is not None:
            return await self._set.find(alg, kid)
        return select(self._keys, alg, kid)

    def _usable(self, keys: "Sequence[Key]") -> "Sequence[Key]":
        for key in keys:
            if self._algorithms.isdisjoint(key.algorithms):
                allowed = ", ".join(sorted(key.algorithms))
                raise ValueError(f"a key is for {allowed}, which algorithms= does not allow")
        return keys


def _read_algorithms(algorithms: Sequence[str]) -> frozenset[str]:
    names = (algorithms,) if isinstance(algorithms, str) else tuple(algorithms)
    if not names:
        raise ValueError("algorithms= allows nothing")
    for name in names:
        if name not in JWT_ALGORITHMS:
            raise ValueError(
                f"algorithms= may hold {', '.join(JWT_ALGORITHMS)}, not {name!r}: with HS256 and "
                "its like a public key would do as the secret, and `none` is no signature"
            )
    return frozenset(names)
