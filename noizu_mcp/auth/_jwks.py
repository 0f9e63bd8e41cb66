"""The keys of an issuer: fetched, cached, and fetched again when they may have changed.

Keys are fetched when the first token needs them, again after `ttl`, and earlier for a token that no
known key matches. Anyone can make up such tokens, so there are at least `cooldown` seconds between
two fetches. One fetch runs at a time, under a lock. It has a timeout and is not cancelled with the
request that began it, so the lock is always released. During a fetch, requests with a known key
continue without the lock; others wait for its result.

If a fetch fails, the known keys are kept, for at most `JWKS_STALE` seconds. An answer without keys
replaces them: the issuer has withdrawn them.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

import trio

from .._errors import VerifierUnavailable
from ..jsonrpc import parse_json
from ._fetch import FETCH_TIMEOUT, Fetcher, FetchError, FetchRequest
from ._verifier import logger

if TYPE_CHECKING:
    from ._jose import VerificationKey

#: Default seconds until keys are fetched again.
JWKS_TTL: Final = 600.0
#: Default minimum seconds between two fetches.
JWKS_COOLDOWN: Final = 30.0
#: Minimum seconds until the next fetch if there are no keys: no token is accepted before.
JWKS_RETRY: Final = 1.0
#: Maximum seconds that a request with a known key waits for newer keys.
JWKS_PATIENCE: Final = 1.0
#: Seconds after `ttl` from which such a request waits as long as others: an issuer that is always
#: slow must be able to withdraw a key.
JWKS_OVERDUE: Final = 3600.0
#: Seconds after `ttl` that keys are trusted while their issuer cannot be reached.
JWKS_STALE: Final = 24 * 3600.0


class KeySet:
    """The public keys behind a `jwks_uri`.

    Args:
        uri: The URL of the keys.
        fetcher: Fetches the document.
        read: Makes keys from the document; raises ValueError.
        ttl: Seconds until they are fetched again.
        cooldown: Minimum seconds between two fetches.
    """

    def __init__(
        self,
        uri: str,
        fetcher: Fetcher,
        read: "Callable[[object], list[VerificationKey]]",
        *,
        ttl: float = JWKS_TTL,
        cooldown: float = JWKS_COOLDOWN,
    ) -> None:
        self._uri = uri
        self._fetcher = fetcher
        self._read = read
        self._ttl = ttl
        self._cooldown = cooldown
        self._keys: Sequence[VerificationKey] = ()
        self._fetched = float("-inf")
        self._refresh_at = float("-inf")
        self._failed = False
        self._not_before = float("-inf")
        self._lock = trio.Lock()

    async def find(self, alg: str, kid: str | None) -> "list[VerificationKey]":
        """Find the keys that may have signed a token.

        Args:
            alg: The algorithm in its header.
            kid: The id of the key in its header; None for every key of the algorithm.

        Returns:
            The keys; empty if the issuer has no such key, or had none less than `cooldown` ago.

        Raises:
            VerifierUnavailable: There are no keys, or only very old ones, and they cannot be
                fetched; or the issuer may have such a key by now, and cannot be reached.
        """
        found = select(self._keys, alg, kid)
        # A request with a known key does not wait while another request fetches newer keys.
        if self._is_due(found) and not (found and self._lock.locked()):
            async with self._lock:
                found = select(self._keys, alg, kid)
                if self._is_due(found):
                    overdue = time.monotonic() >= self._fetched + self._ttl + JWKS_OVERDUE
                    await self._fetch(hurried=bool(found) and not overdue)
            found = select(self._keys, alg, kid)
        too_old = time.monotonic() - self._fetched > self._ttl + JWKS_STALE
        if too_old or (self._failed and not found):
            raise VerifierUnavailable(f"no keys from {self._uri}")
        return found

    async def find_newer(
        self, alg: str, kid: str | None, known: "Collection[VerificationKey]"
    ) -> "list[VerificationKey]":
        """Find newer keys for a token that was not signed with any known key.

        An issuer may give a new key the id of an old one, or no id. Anyone can send a bad
        signature, so the cool-down applies here, too.

        Args:
            alg: The algorithm in its header.
            kid: The name of the key in its header, or None.
            known: The keys with which it was not signed.

        Returns:
            Other keys; empty if there are no others, or the issuer cannot be reached.
        """
        if time.monotonic() >= self._not_before:
            async with self._lock:
                if time.monotonic() >= self._not_before:
                    await self._fetch(hurried=False)
        return [key for key in select(self._keys, alg, kid) if key not in known]

    def _is_due(self, found: "Sequence[VerificationKey]") -> bool:
        now = time.monotonic()
        return now >= self._not_before and (not found or now >= self._refresh_at)

    async def _fetch(self, *, hurried: bool) -> None:
        """Fetch the keys. If that fails, the known keys are kept.

        Cancelling the request does not cancel the fetch: otherwise a client that disconnects could
        use up the cool-down for all others.

        Args:
            hurried: True if the request has a known key, and waits only briefly.
        """
        patience = JWKS_PATIENCE if hurried else FETCH_TIMEOUT + 1
        with trio.move_on_after(patience, shield=True) as scope:
            await self._load()
        if scope.cancelled_caught:
            reason = f"no answer within {patience:g} s"
            if hurried:
                # `_not_before` stays: a request that needs an unknown key may fetch at once, and
                # waits longer.
                self._refresh_at = time.monotonic() + self._cooldown
                logger.warning("the known keys of %s stay in use: %s", self._uri, reason)
            else:
                self._fail(reason)

    async def _load(self) -> None:
        try:
            response = await self._fetcher.fetch(FetchRequest(url=self._uri, headers=_ACCEPT))
            self._take(self._read(parse_json(response.good_body)))
        except Exception as error:
            self._fail(error)
            if not isinstance(error, _FAILURES):
                raise  # a broken fetcher; the cool-down applies, too

    def _take(self, keys: "Sequence[VerificationKey]") -> None:
        if not keys:
            logger.error(
                "%s has no key that could verify a signature: its tokens are refused", self._uri
            )
        self._keys, self._failed = keys, False
        self._fetched = time.monotonic()
        self._refresh_at = self._fetched + self._ttl
        self._not_before = self._fetched + self._cooldown

    def _fail(self, reason: object) -> None:
        self._failed = True
        self._not_before = time.monotonic() + (self._cooldown if self._keys else JWKS_RETRY)
        logger.warning("keys of %s cannot be fetched: %s", self._uri, reason)


_FAILURES: Final = (FetchError, ValueError, RecursionError, trio.TooSlowError)
_ACCEPT: Final = (("accept", "application/jwk-set+json, application/json"),)


def select(keys: "Sequence[VerificationKey]", alg: str, kid: str | None) -> "list[VerificationKey]":
    """Return the keys for an algorithm, and for a key id if given.

    A key without an id matches every id.
    """
    return [
        key
        for key in keys
        if alg in key.algorithms and (kid is None or key.kid is None or key.kid == kid)
    ]
