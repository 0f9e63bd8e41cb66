"""Tokens from a list: API keys, and fixed tokens for tests."""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

import trio

from .._errors import InvalidToken
from ..types import Principal
from ._request import AUTHORIZATION, AuthRequest, check_well_formed
from ._verifier import TokenVerifier

#: Characters of an API key below which it could be guessed.
MIN_API_KEY: Final = 16

_DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")
_HEADER: Final = re.compile(r"[a-z0-9-]+")


class _Listed(TokenVerifier):
    """Finds a token in a list, in a time that does not depend on the token."""

    def __init__(
        self, listed: Mapping[bytes, Principal], clock: Callable[[], float] = time.time
    ) -> None:
        self._listed = tuple(listed.items())
        self._clock = clock

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`."""
        await trio.lowlevel.checkpoint()
        principal = self._find(_digest(token))
        if principal is None:
            raise InvalidToken("it is not in the list")
        if principal.expires_at is not None and self._clock() >= principal.expires_at:
            raise InvalidToken("it has expired")
        return principal

    def _find(self, digest: bytes) -> Principal | None:
        found = None
        for each, principal in self._listed:
            # No early end: how long it takes says nothing about which one is like it.
            if hmac.compare_digest(each, digest):
                found = principal
        return found


class StaticVerifier(_Listed):
    """Knows fixed tokens: for tests, and for a try on one's own machine.

    Args:
        tokens: Who the bearer of each token is.
        clock: Tells the time, in seconds of Unix time.

    Raises:
        ValueError: A token has characters that no bearer token has.
    """

    def __init__(
        self, tokens: Mapping[str, Principal], *, clock: Callable[[], float] = time.time
    ) -> None:
        for token in tokens:
            check_well_formed(AUTHORIZATION, token, "a token")
        super().__init__({_digest(token): who for token, who in tokens.items()}, clock)


class APIKeyVerifier(_Listed):
    """Knows API keys; every comparison takes the same time, and all keys are compared.

    Args:
        keys: Who the holder of each key is. A key stands there as it is, or as its digest,
            `sha256:` and 64 hexadecimal digits: `api_key_digest` makes one. Behind `Bearer` a key
            has letters, digits and `-._~+/`, in a header of its own visible ASCII without spaces;
            that of a digest is not checked, and one with others can never be sent.
        header: Where clients send it: `Authorization`, after `Bearer`, or a header of its own,
            such as `X-API-Key`.
        clock: Tells the time, in seconds of Unix time.

    Raises:
        ValueError: A key is too short or has characters that its header cannot carry, a digest is
            none, or the header's name is none.
    """

    def __init__(
        self,
        keys: Mapping[str, Principal],
        *,
        header: str = AUTHORIZATION,
        clock: Callable[[], float] = time.time,
    ) -> None:
        name = header.lower()
        if not _HEADER.fullmatch(name):
            raise ValueError(f"{header!r} is no name of a header")
        super().__init__({_stored(key, name): who for key, who in keys.items()}, clock)
        self.headers = (name,)


def api_key_digest(key: str) -> str:
    """Make what can be stored in place of an API key.

    A plain digest is enough for keys made at random, which nobody can guess; it is not for
    passwords.

    Args:
        key: The key, `MIN_API_KEY` characters or more; `secrets.token_urlsafe()` makes a good one.

    Returns:
        `sha256:` and 64 hexadecimal digits.

    Raises:
        ValueError: It is too short, or has characters that no header can carry. Whether it can
            stand behind `Bearer` is not checked here.
    """
    if len(key) < MIN_API_KEY:
        raise ValueError(f"an API key needs at least {MIN_API_KEY} characters")
    check_well_formed("a header of its own", key, "an API key")
    return f"sha256:{_digest(key).hex()}"


def _stored(key: str, header: str) -> bytes:
    if not key.startswith("sha256:"):
        check_well_formed(header, key, "an API key")
        key = api_key_digest(key)
    digest = _DIGEST.fullmatch(key)
    if digest is None:
        raise ValueError("a digest of an API key is `sha256:` and 64 hexadecimal digits")
    return bytes.fromhex(digest[1])


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
