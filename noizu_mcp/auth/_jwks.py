"""The keys of an issuer: fetched, kept, and fetched again when they have changed."""

import time
from collections.abc import Callable, Collection, Sequence
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
#: The same after a failure without any keys: nobody gets in before.
JWKS_RETRY: Final = 1.0
#: Seconds that a request waits for newer keys when it has one that will do.
JWKS_PATIENCE: Final = 1.0
#: Seconds after their time from which it waits as long as any other: an issuer that is always slow
#: must be heard when it withdraws a key.
JWKS_OVERDUE: Final = 3600.0
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
        self._refresh_at = float("-inf")
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
        if self._is_due(found) and not (found and self._lock.locked()):
            async with self._lock:
                found = select(self._keys, alg, kid)
                if self._is_due(found):
                    await self._fetch(hurried=bool(found) and not self._is_overdue())
            found = select(self._keys, alg, kid)
        too_old = self._clock() - self._fetched > self._ttl + JWKS_STALE
        if too_old or (self._failed and not found):
            raise VerifierUnavailable(f"no keys from {self._uri}")
        return found

    async def find_newer(self, alg: str, kid: str | None, known: "Collection[Key]") -> "list[Key]":
        """Find the keys that may have signed a token which no known one has.

        An issuer may give a new key the name of an old one, or none at all. Anybody can sign
        badly, so that the cool-down holds for this, too.

        Args:
            alg: The algorithm of its header.
            kid: The name of the key in its header, or None.
            known: The keys that have not signed it.

        Returns:
            Other keys; none if there are no others, or the issuer cannot be asked.
        """
        if self._clock() >= self._not_before:
            async with self._lock:
                if self._clock() >= self._not_before:
                    await self._fetch(hurried=False)
        return [key for key in select(self._keys, alg, kid) if key not in known]

    def _is_due(self, found: "Sequence[Key]") -> bool:
        now = self._clock()
        return now >= self._not_before and (not found or now >= self._refresh_at)

    def _is_overdue(self) -> bool:
        return self._clock() >= self._fetched + self._ttl + JWKS_OVERDUE

    async def _fetch(self, *, hurried: bool) -> None:
        """Fetch the keys; when that fails those that are there stay.

        It is finished even if the request that wanted it is cancelled: otherwise a client that
        hangs up could use up the cool-down of all others. Bounded, so that nothing waits long.

        Args:
            hurried: Whoever wants them has a key that will do, and waits for a moment only.
        """
        patience = JWKS_PATIENCE if hurried else FETCH_TIMEOUT + 1
        with trio.move_on_after(patience, shield=True) as scope:
            await self._load()
        if scope.cancelled_caught:
            reason = f"no answer within {patience:g} s"
            if hurried:
                # It takes no turn from those who need a key that is not known, and wait longer.
                self._refresh_at = self._clock() + self._cooldown
                logger.warning("the known keys of %s are used on: %s", self._uri, reason)
            else:
                self._fail(reason)

    async def _load(self) -> None:
        try:
            response = await self._fetcher.fetch(FetchRequest(url=self._uri, headers=_ACCEPT))
            self._take(self._read(parse_json(response.good_body)))
        except Exception as error:
            self._fail(error)
            if not isinstance(error, _FAILURES):
                raise

    def _take(self, keys: "Sequence[Key]") -> None:
        if not keys:
            logger.error(
                "%s has no key that could verify a signature: its tokens are refused", self._uri
            )
        self._keys, self._failed = keys, False
        self._fetched = self._clock()
        self._refresh_at = self._fetched + self._ttl
        self._not_before = self._fetched + self._cooldown

    def _fail(self, reason: object) -> None:
        self._failed = True
        self._not_before = self._clock() + (self._cooldown if self._keys else JWKS_RETRY)
        logger.warning("keys of %s cannot be fetched: %s", self._uri, reason)


_FAILURES: Final = (FetchError, ValueError, RecursionError, trio.TooSlowError)
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
