"""Tokens whose issuer has to be asked (RFC 7662)."""

import base64
import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

import attrs
import trio

from .._errors import InvalidToken, VerifierUnavailable
from ..jsonrpc import parse_json
from ..types import Principal
from ._claims import LEEWAY, ClaimRules, read_audience, read_issuer, shown
from ._fetch import Fetcher, FetchError, FetchRequest, HTTPFetcher
from ._options import read_claims, read_count, read_leeway, read_seconds, read_text
from ._request import AuthRequest
from ._urls import check_url
from ._verifier import TokenVerifier

#: Seconds that an answer is believed; so long a token outlives its revocation.
INTROSPECTION_TTL: Final = 30.0
#: Answers that are remembered.
INTROSPECTION_CACHE: Final = 1000
#: Questions to the issuer at one time: anybody can make up tokens.
INTROSPECTION_CONCURRENCY: Final = 20
#: Seconds that a request waits for its turn and its answer.
INTROSPECTION_PATIENCE: Final = 10.0

# RFC 7662 section 2.2 has `token_type` as in RFC 6749 section 5.1; some give the kind of the hint.
_TYPES: Final = frozenset({"bearer", "access_token"})


@attrs.frozen
class _Answer:
    principal: Principal
    until: float


class IntrospectionVerifier(TokenVerifier):
    """Asks the issuer about each token; good answers are remembered for a short time.

    Args:
        url: The introspection endpoint.
        client_id: The name of this server at the issuer.
        client_secret: Its secret; sent as HTTP Basic (RFC 6749 section 2.3.1).
        issuer: What `iss` must be where the answer has one.
        audience: What must be in `aud` of the answer (RFC 8707); several: any one of them.
        required_claims: Members that the answer must have besides `active` and `aud`.
        leeway: Seconds by which clocks may differ, 300 at most.
        cache_ttl: Seconds that a good answer is believed; 0: every request asks.
        cache_size: How many answers are remembered; 0: none.
        fetcher: What asks; `HTTPFetcher()` unless given.
        clock: Tells the time, in seconds of Unix time.

    Raises:
        ValueError: Something is missing, not safe, or no number of its kind.
        ImportError: httpx2 is not installed; the extra `auth` brings it.
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_url(url, "the introspection endpoint")
        self._url = url
        self._headers = (
            ("authorization", _basic(client_id, client_secret)),
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        )
        self._rules = ClaimRules(
            issuer=read_issuer(issuer, "IntrospectionVerifier"),
            audience=read_audience(audience, "IntrospectionVerifier"),
            required=("aud", *read_claims(required_claims, "required_claims")),
            leeway=read_leeway(leeway),
            clock=clock,
        )
        self._cache = _Cache(
            read_seconds(cache_ttl, "cache_ttl", zero=True),
            read_count(cache_size, "cache_size", zero=True),
            clock,
        )
        self._fetcher = fetcher or HTTPFetcher()
        self._turns = trio.CapacityLimiter(INTROSPECTION_CONCURRENCY)

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`."""
        await trio.lowlevel.checkpoint()
        if not token.isascii():
            raise InvalidToken("no token has other characters than ASCII")
        # The token itself is kept nowhere.
        digest = hashlib.sha256(token.encode()).digest()
        if known := self._cache.get(digest):
            return known
        try:
            with trio.fail_after(INTROSPECTION_PATIENCE):
                async with self._turns:
                    # Whoever had the turn before may have asked about the same token.
                    return self._cache.get(digest) or await self._ask(token, digest)
        except trio.TooSlowError:
            raise VerifierUnavailable("the introspection endpoint is too slow") from None

    async def _ask(self, token: str, digest: bytes) -> Principal:
        claims = await self._introspect(token)
        # Not anything that is true: "false" is.
        if claims.get("active") is not True:
            raise InvalidToken("its issuer says that it is not active")
        _check_type(claims.get("token_type"))
        principal = self._rules.principal(claims)
        self._cache.put(digest, principal)
        return principal

    async def _introspect(self, token: str) -> dict[str, Any]:
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        request = FetchRequest(url=self._url, method="POST", headers=self._headers, body=body)
        try:
            answer = parse_json((await self._fetcher.fetch(request)).good_body)
        except (FetchError, ValueError, RecursionError) as error:
            raise VerifierUnavailable(f"introspection at {self._url} failed: {error}") from error
        if not isinstance(answer, dict):
            raise VerifierUnavailable(f"introspection at {self._url} gave no object")
        return answer


class _Cache:
    """Good answers by the digest of their token; the one that was put first goes first."""

    def __init__(self, ttl: float, size: int, clock: Callable[[], float]) -> None:
        self._ttl = ttl
        self._size = size
        self._clock = clock
        self._answers: dict[bytes, _Answer] = {}

    def get(self, digest: bytes) -> Principal | None:
        answer = self._answers.get(digest)
        if answer is None:
            return None
        if self._clock() >= answer.until:
            del self._answers[digest]
            return None
        return answer.principal

    def put(self, digest: bytes, principal: Principal) -> None:
        until = self._clock() + self._ttl
        if principal.expires_at is not None:
            until = min(until, principal.expires_at)
        self._answers.pop(digest, None)
        while self._answers and len(self._answers) >= self._size:
            del self._answers[next(iter(self._answers))]
        if self._size > 0:
            self._answers[digest] = _Answer(principal, until)


def _check_type(given: Any) -> None:
    """Let bearer tokens pass: issuers answer for refresh tokens, too (RFC 7662 section 2.1)."""
    if given is not None and (not isinstance(given, str) or given.lower() not in _TYPES):
        raise InvalidToken(f"a token of type {shown(given)} is no bearer token for access")


def _basic(client_id: str, secret: str) -> str:
    read_text(client_id, "client_id")
    read_text(secret, "client_secret")
    # RFC 6749 section 2.3.1: both are form-encoded first, so that a colon is no separator.
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
