"""JWTs signed with a shared secret on behalf of an API key, checked against both."""

import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import trio

from .._errors import InvalidToken
from ..types import Principal
from ._claims import LEEWAY, ClaimRules, read_audience, read_issuer, shown
from ._jwt import load_jose
from ._options import read_leeway
from ._request import AuthRequest
from ._verifier import TokenVerifier

#: The algorithms with a shared secret, and how many bytes it needs (RFC 7518 section 3.2).
SECRET_ALGORITHMS: Final = {"HS256": 32, "HS384": 48, "HS512": 64}

_Secret = str | bytes
_Check = Callable[[str], bool | Awaitable[bool]]


class CompoundJWTVerifier(TokenVerifier):
    """Verifies JWTs that a holder of an API key issues for users, with a secret of both sides.

    A token needs a good signature, the claims `exp`, `iss`, `aud`, `sub` and `api_key_id`, and an
    API key of that id that is still in use. Whatever is wrong, the client hears the same. All
    holders have the secret, so they vouch for each other: users are named by `iss` and `sub` alone.

    Whichever of the functions cannot say at present raises `VerifierUnavailable` (503): a good
    token must not be thrown away. What else it raises is its own failure (500). Nobody gets in.

    Args:
        secret: The secret, 32 bytes or more; or a function that gives it, to change it in service;
            what it gives is checked like a secret.
        check_api_key: Given an `api_key_id`, says True if that key is in use; sync if it only
            looks into memory, async if it has to wait. Anything but True is no.
        issuer: What `iss` must be, letter by letter.
        audience: What must be in `aud`; several: any one of them.
        algorithms: Those that are allowed: `HS256`, `HS384`, `HS512`.
        leeway: Seconds by which clocks may differ, 300 at most.
        clock: Tells the time, in seconds of Unix time.

    Raises:
        ValueError: Something is missing, not safe, or no number of its kind.
        TypeError: The secret is neither a text nor bytes.
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rules = ClaimRules(
            issuer=read_issuer(issuer, "CompoundJWTVerifier"),
            audience=read_audience(audience, "CompoundJWTVerifier"),
            required=("exp", "iss", "aud", "sub", "api_key_id"),
            leeway=read_leeway(leeway),
            clock=clock,
        )
        self._algorithms = _read_algorithms(algorithms)
        self._length = max(SECRET_ALGORITHMS[name] for name in self._algorithms)
        self._jose = load_jose()
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
        claims = self._jose.verify_signature(token, header.alg, [self._read_secret()])
        principal = self._rules.principal(claims)
        key = principal.claims["api_key_id"]
        if not isinstance(key, str) or not key:
            raise InvalidToken("`api_key_id` is no text, or empty")
        if not await self._is_in_use(key):
            raise InvalidToken(f"the API key {shown(key)} is not in use")
        return principal

    def _read_secret(self) -> bytes:
        secret = self._secret
        return self._check_secret(secret() if callable(secret) else secret)

    def _check_secret(self, secret: Any) -> bytes:
        data = secret.encode() if isinstance(secret, str) else secret
        if not isinstance(data, bytes):
            raise TypeError(f"the secret is a text or bytes, not {type(secret).__name__}")
        if len(data) < self._length:
            names = ", ".join(sorted(self._algorithms))
            raise ValueError(f"the secret needs {self._length} bytes for {names}, not {len(data)}")
        self._jose.check_secret(data)
        return data

    async def _is_in_use(self, key: str) -> bool:
        answer = self._check_api_key(key)
        if inspect.isawaitable(answer):
            answer = await answer
        # Not anything that is true: a row of a database is true for a revoked key, too.
        return answer is True


def _read_algorithms(algorithms: Sequence[str]) -> frozenset[str]:
    names = (algorithms,) if isinstance(algorithms, str) else tuple(algorithms)
    if not names or not SECRET_ALGORITHMS.keys() >= set(names):
        raise ValueError(f"algorithms= may hold {', '.join(SECRET_ALGORITHMS)}, not {names!r}")
    return frozenset(names)
