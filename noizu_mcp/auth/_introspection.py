"""A verifier that asks the issuer about each token: OAuth 2.0 token introspection (RFC 7662)."""

import hashlib
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import trio

from .._errors import InvalidToken, VerifierUnavailable
from .._value import JSONObject
from ..jsonrpc import parse_json
from ..types import Principal
from ._claims import LEEWAY, read_rules, shown
from ._configuration import check_url, read_claims, read_count, read_seconds, read_text
from ._fetch import Fetcher, FetchError, FetchRequest, HTTPFetcher, basic_authorization
from ._verifier import AuthRequest, TokenVerifier

#: Default seconds that a valid answer is cached; a revoked token may be accepted for that long.
INTROSPECTION_TTL: Final = 30.0
#: Default number of cached answers.
INTROSPECTION_CACHE: Final = 1000
#: Maximum concurrent requests to the issuer; anyone can make up tokens.
INTROSPECTION_CONCURRENCY: Final = 20
#: Maximum seconds for waiting and the answer together.
INTROSPECTION_PATIENCE: Final = 10.0

# Issuers answer for refresh tokens, too (RFC 7662 section 2.1). `token_type` is that of RFC 6749
# section 5.1; some issuers repeat the value of `token_type_hint` instead.
_TYPES: Final = frozenset({"bearer", "access_token"})


class IntrospectionVerifier(TokenVerifier):
    """Asks the issuer about each token. Valid answers are cached for a short time.

    Args:
        url: The introspection endpoint.
        client_id: The client id of this server at the issuer.
        client_secret: The secret of this server; sent as HTTP Basic (RFC 6749 section 2.3.1).
        issuer: The only accepted value of `iss`, which may be missing in the answer.
        audience: The name of this server, which must be in `aud` of the answer (RFC 8707); for
            several names, one of them.
        required_claims: Members that the answer must have in addition to `active` and `aud`.
        leeway: Seconds by which clocks may differ, 300 at most.
        cache_ttl: Seconds that a valid answer is cached; 0 to ask the issuer for every request.
        cache_size: Maximum number of cached answers; 0 for no cache.
        fetcher: Sends the requests; `HTTPFetcher()` by default.

    Raises:
        ValueError: An option is missing, not safe, or not valid.
        ImportError: httpx2 is not installed; it is part of the extra `auth`.
    """

    def __init__(
        self,
        url: str,
        *,
        client_id: str,
        client_secret: str,
        issuer: str | None = None,
        audience: str | Sequence[str] | None = None,
        required_claims: Sequence[str] = ("sub",),
        leeway: float = LEEWAY,
        cache_ttl: float = INTROSPECTION_TTL,
        cache_size: int = INTROSPECTION_CACHE,
        fetcher: Fetcher | None = None,
    ) -> None:
        check_url(url, "the introspection endpoint")
        self._url = url
        self._headers = (
            basic_authorization(
                read_text(client_id, "client_id"), read_text(client_secret, "client_secret")
            ),
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        )
        self._rules = read_rules(
            "IntrospectionVerifier",
            issuer=issuer,
            audience=audience,
            required=("aud", *read_claims(required_claims, "required_claims")),
            leeway=leeway,
        )
        self._cache = _Cache(
            read_seconds(cache_ttl, "cache_ttl", zero=True),
            read_count(cache_size, "cache_size", zero=True),
        )
        self._fetcher = fetcher or HTTPFetcher()
        self._turns = trio.CapacityLimiter(INTROSPECTION_CONCURRENCY)

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`."""
        await trio.lowlevel.checkpoint()
        if not token.isascii():
            raise InvalidToken("it has characters beyond ASCII")
        # The cache must not contain tokens: a memory dump would reveal them.
        digest = hashlib.sha256(token.encode()).digest()
        if known := self._cache.get(digest):
            return known
        try:
            with trio.fail_after(INTROSPECTION_PATIENCE):
                async with self._turns:
                    # A concurrent request may have asked about this token.
                    return self._cache.get(digest) or await self._ask(token, digest)
        except trio.TooSlowError:
            raise VerifierUnavailable("the introspection endpoint is too slow") from None

    async def _ask(self, token: str, digest: bytes) -> Principal:
        claims = await self._introspect(token)
        # Only `true` (RFC 7662 section 2.2): "false", a string, is true in Python.
        if claims.get("active") is not True:
            raise InvalidToken("its issuer says that it is not active")
        kind = claims.get("token_type")
        if kind is not None and (not isinstance(kind, str) or kind.lower() not in _TYPES):
            raise InvalidToken(f"a token of type {shown(kind)} is not a bearer token for access")
        self._rules.check(claims)
        principal = self._rules.principal(claims)
        self._cache.put(digest, principal)
        return principal

    async def _introspect(self, token: str) -> JSONObject:
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        request = FetchRequest(url=self._url, method="POST", headers=self._headers, body=body)
        try:
            answer = parse_json((await self._fetcher.fetch(request)).good_body)
        except (FetchError, ValueError, RecursionError) as error:
            raise VerifierUnavailable(f"introspection at {self._url} failed: {error}") from error
        if not isinstance(answer, dict):
            raise VerifierUnavailable(
                f"introspection at {self._url} gave something else than an object"
            )
        return answer


class _Cache:
    """Valid answers by the digest of their token. A full cache drops the oldest answer."""

    def __init__(self, ttl: float, size: int) -> None:
        self._ttl = ttl
        self._size = size
        # With the monotonic time at which each ends: the system's clock may be set back.
        self._answers: dict[bytes, tuple[Principal, float]] = {}

    def get(self, digest: bytes) -> Principal | None:
        if digest not in self._answers:
            return None
        principal, until = self._answers[digest]
        if time.monotonic() < until and not _has_expired(principal):
            return principal
        del self._answers[digest]
        return None

    def put(self, digest: bytes, principal: Principal) -> None:
        until = time.monotonic() + self._ttl
        self._answers.pop(digest, None)
        while self._answers and len(self._answers) >= self._size:
            del self._answers[next(iter(self._answers))]
        if self._size > 0:
            self._answers[digest] = principal, until


def _has_expired(principal: Principal) -> bool:
    # The expiry of a token is a date.
    return principal.expires_at is not None and time.time() >= principal.expires_at
