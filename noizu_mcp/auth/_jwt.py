"""Verifiers of JWTs: signed by an issuer, or with a secret on behalf of an API key (RFC 7519)."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Final

import trio

from .._errors import InvalidToken
from .._value import JSONObject
from ..types import Principal
from ._claims import LEEWAY, read_name, read_rules, shown
from ._configuration import check_url, needs_pyjwt, read_claims, read_seconds
from ._fetch import Fetcher, HTTPFetcher
from ._jwks import JWKS_COOLDOWN, JWKS_TTL, KeySet, select
from ._verifier import AuthRequest, TokenVerifier

if TYPE_CHECKING:
    from ._jose import JoseHeader, VerificationKey

#: Algorithms with a public key. Those with a shared secret are missing on purpose, as is `none`.
JWT_ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip

#: The algorithms with a shared secret, and its least length in bytes (RFC 7518 section 3.2).
SECRET_ALGORITHMS: Final = {"HS256": 32, "HS384": 48, "HS512": 64}

# RFC 9068 section 2.1; most issuers still write JWT. Other types are not access tokens.
_AT_JWT: Final = frozenset({"at+jwt", "application/at+jwt"})
_TYPES: Final = _AT_JWT | {"jwt", "application/jwt"}

_Secret = str | bytes
_Check = Callable[[str], bool | Awaitable[bool]]


def _load_jose() -> ModuleType:
    with needs_pyjwt("verifying JWTs"):
        from . import _jose
    return _jose


class JWTVerifier(TokenVerifier):
    """Verifies access tokens that are JWTs signed with a private key of their issuer.

    PyJWT verifies the signature and the registered claims (RFC 7519 section 4.1): `exp`, `nbf` and
    `iat` against the clock of this machine, `iss`, `aud`, and the types of `sub` and `jti`.

    Args:
        issuer: The only accepted value of `iss`, compared letter by letter.
        audience: The name of this server, such as its URL, which must be in `aud` (RFC 8707);
            several names: any one of them.
        jwks_uri: The URL of the issuer's keys. They are kept, and fetched again when they are old,
            or when a token names an unknown key or is not signed with a known one.
        keys: The keys, instead of `jwks_uri`: public keys in PEM, as JWK, as a JWK Set or as
            objects of `cryptography`; one, or a list.
        algorithms: The allowed algorithms.
        required_claims: Claims that must be present besides `exp`, `iss` and `aud`.
        leeway: Seconds by which clocks may differ, 300 at most.
        only_access_tokens: True to refuse tokens whose header does not say `at+jwt` (RFC 9068).
        jwks_ttl: Seconds until the keys are fetched again.
        jwks_cooldown: Least seconds between two fetches.
        fetcher: Fetches the keys; `HTTPFetcher()` by default.

    Raises:
        ValueError: An option is missing, not safe, or not a number of its kind.
        ImportError: PyJWT or httpx2 is not installed; the extra `auth` brings them.
    """

    def __init__(
        self,
        *,
        issuer: str | None = None,
        audience: str | Sequence[str] | None = None,
        jwks_uri: str | None = None,
        keys: object = None,
        algorithms: Sequence[str] = JWT_ALGORITHMS,
        required_claims: Sequence[str] = ("sub",),
        leeway: float = LEEWAY,
        only_access_tokens: bool = False,
        jwks_ttl: float = JWKS_TTL,
        jwks_cooldown: float = JWKS_COOLDOWN,
        fetcher: Fetcher | None = None,
    ) -> None:
        self._rules = read_rules(
            "JWTVerifier",
            issuer=issuer,
            audience=audience,
            required=("exp", "iss", "aud", *read_claims(required_claims, "required_claims")),
            leeway=leeway,
        )
        self._algorithms = _read_public_algorithms(algorithms)
        self._types = _AT_JWT if only_access_tokens else _TYPES | {None}
        self._jose = _load_jose()
        ttl = read_seconds(jwks_ttl, "jwks_ttl")
        cooldown = read_seconds(jwks_cooldown, "jwks_cooldown")
        self._keys: Sequence[VerificationKey] = ()
        self._set: KeySet | None = None
        if (jwks_uri is None) == (keys is None):
            raise ValueError("JWTVerifier needs jwks_uri= or keys=, one of them")
        if jwks_uri is None:
            self._keys = self._jose.read_keys(keys)
            for key in self._keys:
                if self._algorithms.isdisjoint(key.algorithms):
                    allowed = ", ".join(sorted(key.algorithms))
                    raise ValueError(f"a key is for {allowed}, which algorithms= does not allow")
        else:
            check_url(jwks_uri, "jwks_uri")
            read = self._jose.read_key_set
            fetcher = fetcher or HTTPFetcher()
            self._set = KeySet(jwks_uri, fetcher, read, ttl=ttl, cooldown=cooldown)

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`."""
        await trio.lowlevel.checkpoint()
        header = self._jose.read_header(token)
        # First of all: a token with a forbidden header must not cause a fetch or a verification.
        if header.alg not in self._algorithms:
            raise InvalidToken(f"the algorithm {shown(header.alg)} is not allowed")
        if (header.typ and header.typ.lower()) not in self._types:
            raise InvalidToken(f"a token of type {shown(header.typ)} is not an access token")
        if self._set is None:
            found = select(self._keys, header.alg, header.kid)
        else:
            found = await self._set.find(header.alg, header.kid)
        if not found:
            raise InvalidToken(f"no key {shown(header.kid)} for {header.alg} is trusted")
        try:
            claims = self._decode(token, header, found)
        except self._jose.NotSigned:
            if self._set is None:
                raise
            # An issuer may replace a key without giving the new one another name.
            newer = await self._set.find_newer(header.alg, header.kid, found)
            if not newer:
                raise
            claims = self._decode(token, header, newer)
        return self._rules.principal(claims)

    def _decode(
        self, token: str, header: "JoseHeader", found: "list[VerificationKey]"
    ) -> JSONObject:
        keys = [each.key for each in found]
        claims: JSONObject = self._jose.decode(token, header.alg, keys, self._rules)
        return claims


def _read_public_algorithms(algorithms: Sequence[str]) -> frozenset[str]:
    names = (algorithms,) if isinstance(algorithms, str) else tuple(algorithms)
    if not names:
        raise ValueError("algorithms= allows nothing")
    for name in names:
        if name not in JWT_ALGORITHMS:
            raise ValueError(
                f"algorithms= may hold {', '.join(JWT_ALGORITHMS)}, not {name!r}: with HS256 and "
                "its like a public key would do as the secret, and `none` is not a signature"
            )
    return frozenset(names)


class CompoundJWTVerifier(TokenVerifier):
    """Verifies JWTs that the holder of an API key issues for users, with a secret of both sides.

    A token needs a valid signature, the claims `exp`, `iss`, `aud`, `sub` and `api_key_id`, and an
    API key of that id that is in use. Clients get one answer for every fault. All holders have the
    secret, so each of them can issue tokens for any user: `iss` and `sub` alone name a user.

    Both functions may raise `VerifierUnavailable` (503) if they cannot answer at present, so that
    clients keep a valid token. Any other exception is a failure of the function (500). In neither
    case is the request let in.

    Args:
        secret: The secret, 32 bytes or more; or a function that returns it, so that it can be
            changed in service. Its result is checked like a secret.
        check_api_key: Called with an `api_key_id`; returns True if that key is in use, any other
            value if not. Sync if it only looks into memory, async if it has to wait.
        issuer: The only accepted value of `iss`, compared letter by letter.
        audience: The name of this server, which must be in `aud`; several: any one of them.
        algorithms: The allowed algorithms: `HS256`, `HS384`, `HS512`.
        leeway: Seconds by which clocks may differ, 300 at most.

    Raises:
        ValueError: An option is missing, not safe, or not a number of its kind.
        TypeError: The secret is neither a string nor bytes.
        ImportError: PyJWT is not installed; the extra `auth` brings it.
    """

    def __init__(
        self,
        secret: _Secret | Callable[[], _Secret],
        *,
        check_api_key: _Check,
        issuer: str | None = None,
        audience: str | Sequence[str] | None = None,
        algorithms: Sequence[str] = ("HS256",),
        leeway: float = LEEWAY,
    ) -> None:
        self._rules = read_rules(
            "CompoundJWTVerifier",
            issuer=issuer,
            audience=audience,
            required=("exp", "iss", "aud", "sub", "api_key_id"),
            leeway=leeway,
        )
        names = (algorithms,) if isinstance(algorithms, str) else tuple(algorithms)
        if not names or not SECRET_ALGORITHMS.keys() >= set(names):
            raise ValueError(f"algorithms= may hold {', '.join(SECRET_ALGORITHMS)}, not {names!r}")
        self._algorithms = frozenset(names)
        self._length = max(SECRET_ALGORITHMS[name] for name in names)
        self._jose = _load_jose()
        self._check_api_key = check_api_key
        self._secret = secret
        if not callable(secret):
            self._check_secret(secret)

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`."""
        await trio.lowlevel.checkpoint()
        header = self._jose.read_header(token)
        if header.alg not in self._algorithms:
            raise InvalidToken(f"the algorithm {shown(header.alg)} is not allowed")
        secret = self._secret() if callable(self._secret) else self._secret
        keys = [self._check_secret(secret)]
        claims = self._jose.decode(token, header.alg, keys, self._rules)
        principal = self._rules.principal(claims)
        read_name(claims, "api_key_id")
        key = claims["api_key_id"]
        answer = self._check_api_key(key)
        if inspect.isawaitable(answer):
            answer = await answer
        # Truth is not enough: a row of a database is true for a revoked key, too.
        if answer is not True:
            raise InvalidToken(f"the API key {shown(key)} is not in use")
        return principal

    def _check_secret(self, secret: object) -> bytes:
        data = secret.encode() if isinstance(secret, str) else secret
        if not isinstance(data, bytes):
            raise TypeError(f"the secret is a string or bytes, not {type(secret).__name__}")
        if len(data) < self._length:
            names = ", ".join(sorted(self._algorithms))
            raise ValueError(f"the secret needs {self._length} bytes for {names}, not {len(data)}")
        self._jose.check_secret(data)
        return data
