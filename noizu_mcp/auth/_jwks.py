"""The keys of an issuer: fetched, kept, and fetched again when they have changed."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import trio

from .._errors import VerifierUnavailable
from ..jsonrpc import parse_json
from ._fetch import FETCH_TIMEOUT, Fetcher, FetchError, FetchRequest
from ._verifier import logger

if TYPE_CHECKING:
    from ._jose import Key

#: Seconds that keys are used before they are looked at again.
JWKS_TTL: Final = 600.0
#: Seconds between two fetches, whatever tokens ask for: anybody can make up a key's name.
JWKS_COOLDOWN: Final = 30.0
#: The same while there are no keys at all: nobody gets in before.
JWKS_RETRY: Final = 1.0
#: Seconds that keys are trusted while their issuer cannot be reached.
JWKS_STALE: Final = 24 * 3600.0


class KeySet:
    """The public keys behind a `jwks_uri`.

    Args:
        uri: Where they are.
        fetcher: How to get them.
        read: Makes keys out of the document; raises ValueError.
        ttl: Seconds until they are fetched again.
        cooldown: Seconds between two fetches, at least.
        clock: Tells the time, in seconds from anywhere, never backwards.
    """

    def __init__(
        self,
        uri: str,
        fetcher: Fetcher,
        read: "Callable[[object], list[Key]]",
        *,
        ttl: float = JWKS_TTL,
        cooldown: float = JWKS_COOLDOWN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._uri = uri
        self._fetcher = fetcher
        self._read = read
        self._ttl = ttl
        self._cooldown = cooldown
        self._clock = clock
        self._keys: Sequence[Key] = ()
        self._fetched = float("-inf")
        self._failed = False
        self._not_before = float("-inf")
        self._lock = trio.Lock()

    async def find(self, alg: str, kid: str | None) -> "list[Key]":
        """Find the keys that may have signed a token.

        At most one fetch runs at a time; who needs its outcome waits for it.

        Args:
            alg: The algorithm of its header.
            kid: The name of the key in its header; None finds every key for the algorithm.

        Returns:
            The keys; none if the issuer has none of that name, or had none a moment ago.

        Raises:
            VerifierUnavailable: There are no keys, or only very old ones, and no way to get any;
                or the issuer may have that key by now, and cannot be asked.
        """
        found = select(self._keys, alg, kid)
        # Known keys go on being used while somebody else looks for newer ones.
        if self._should_fetch(found) and not (found and self._lock.locked()):
            async with self._lock:
                if self._should_fetch(select(self._keys, alg, kid)):
                    await self._fetch()
            found = select(self._keys, alg, kid)
        too_old = self._clock() - self._fetched > self._ttl + JWKS_STALE
        if too_old or (self._failed and not found):
            raise VerifierUnavailable(f"no keys from {self._uri}")
        return found

    def _should_fetch(self, found: "Sequence[Key]") -> bool:
        now = self._clock()
        return now >= self._not_before and (not found or now - self._fetched >= self._ttl)

    async def _fetch(self) -> None:
        """Fetch the keys; when that fails those that are there stay.

        It is finished even if the request that wanted it is cancelled: otherwise a client that
        hangs up could use up the cool-down of all others. Bounded, so that nothing waits long.
        """
        try:
            with trio.fail_after(FETCH_TIMEOUT + 1, shield=True):
                response = await self._fetcher.fetch(FetchRequest(url=self._uri, headers=_ACCEPT))
            self._keys = self._read(parse_json(response.good_body))
            self._fetched, self._failed = self._clock(), False
        except (FetchError, ValueError, RecursionError, trio.TooSlowError) as error:
            self._failed = True
            logger.warning("keys of %s cannot be fetched: %s", self._uri, error)
        finally:
            pause = self._cooldown if self._keys else JWKS_RETRY
            self._not_before = self._clock() + pause


_ACCEPT: Final = (("accept", "application/jwk-set+json, application/json"),)


def select(keys: "Sequence[Key]", alg: str, kid: str | None) -> "list[Key]":
    """Choose the keys for an algorithm, and of a name if one is given.

    A key without a name may be the one of any name.
    """
    return [
        key
        for key in keys
        if alg in key.algorithms and (kid is None or key.kid is None or key.kid == kid)
    ]
