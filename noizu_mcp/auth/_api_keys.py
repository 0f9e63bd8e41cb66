"""Verifiers with a list of tokens: API keys, and fixed tokens for tests."""

import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from typing import Final

import trio

from .._errors import InvalidToken
from ..types import Principal
from ._verifier import AUTHORIZATION, AuthRequest, TokenVerifier, check_well_formed

#: Minimum characters of an API key; a shorter one could be guessed.
MIN_API_KEY: Final = 16

_DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")
_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F]{64}")
_HEADER: Final = re.compile(r"[a-z0-9-]+")


class _ListedKeys(TokenVerifier):
    """Finds a token in a list, in a time that does not depend on the token."""

    def __init__(self, listed: Mapping[bytes, Principal]) -> None:
        self._listed = tuple(listed.items())

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`."""
        await trio.lowlevel.checkpoint()
        digest = _digest(token)
        principal: Principal | None = None
        for each, listed in self._listed:
            # No early exit: the time must not reveal which stored key is similar to this token.
            if hmac.compare_digest(each, digest):
                principal = listed
        if principal is None:
            raise InvalidToken("it is not in the list")
        if principal.expires_at is not None and time.time() >= principal.expires_at:
            raise InvalidToken("it has expired")
        return principal


class StaticVerifier(_ListedKeys):
    """Accepts fixed tokens: for tests, and for experiments on a local machine.

    Args:
        tokens: The caller for each token. A caller with `expires_at` is refused after that time.

    Raises:
        ValueError: A token has characters that bearer tokens must not have.
    """

    def __init__(self, tokens: Mapping[str, Principal]) -> None:
        for token in tokens:
            check_well_formed(AUTHORIZATION, token, "a token")
        super().__init__({_digest(token): who for token, who in tokens.items()})


class APIKeyVerifier(_ListedKeys):
    """Accepts API keys; all keys are compared, each in constant time.

    Args:
        keys: The holder of each key; a holder with `expires_at` is refused after that time. A key
            is given in full, or as its digest: `sha256:` and 64 hexadecimal digits, made by
            `api_key_digest`, which is required for a key that itself consists of 64 such digits.
            After `Bearer` a key has letters, digits and `-._~+/`; in another header it has visible
            ASCII characters without spaces. For a digest this cannot be checked.
        header: The header with the key: `Authorization`, after `Bearer`, or another one, such as
            `X-API-Key`.

    Raises:
        ValueError: A key is too short, has characters that are not allowed in its header, or looks
            like a digest; or a digest or the name of the header is malformed.
    """

    def __init__(self, keys: Mapping[str, Principal], *, header: str = AUTHORIZATION) -> None:
        name = header.lower()
        if not _HEADER.fullmatch(name):
            raise ValueError(f"{header!r} is not the name of a header")
        super().__init__({_stored(key, name): who for key, who in keys.items()})
        self.headers = (name,)


def api_key_digest(key: str) -> str:
    """Return the digest of an API key, to be stored instead of the key.

    A plain digest is safe for random keys, which cannot be guessed. It is not safe for passwords.

    Args:
        key: The key, 16 characters or more; `secrets.token_urlsafe()` makes a good one.

    Returns:
        `sha256:` and 64 hexadecimal digits.

    Raises:
        ValueError: The key is too short, or has characters that headers cannot contain.
    """
    if len(key) < MIN_API_KEY:
        raise ValueError(f"an API key needs at least {MIN_API_KEY} characters")
    check_well_formed("a header of its own", key, "an API key")
    return f"sha256:{_digest(key).hex()}"


def _stored(key: str, header: str) -> bytes:
    if _HEXADECIMAL.fullmatch(key):
        # If a digest were accepted as a key, anyone who reads it in a database could use it.
        raise ValueError(
            "64 hexadecimal digits may be a key or its digest; write `sha256:` before a digest, "
            "and api_key_digest(key) for a key"
        )
    if not key.startswith("sha256:"):
        check_well_formed(header, key, "an API key")
        key = api_key_digest(key)
    digest = _DIGEST.fullmatch(key)
    if digest is None:
        raise ValueError("a digest of an API key is `sha256:` and 64 hexadecimal digits")
    return bytes.fromhex(digest[1])


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
