"""The list of one provider: fetched, bound, and kept until it is out of date.

Theory of operation. A list is valid until the provider's version changes or the list expires. The
list of a `shared` provider is fetched once for all callers: one task asks, and the others wait for
it. A provider that fails is asked again after a growing pause; until then its last list is served
for `stale` seconds, and after that an empty list.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import trio

from ..._errors import PEER_FAILURES, DefinitionError, InsufficientScope
from ..._util import got
from ...components import BaseProvider, Bound, ServedProvider
from ...engine import logger, run_user_code, split_cancellation
from ...protocol import Envelope
from ...types import Principal
from ..calls._loops import bind_all
from ._providers import FIRST_PAUSE, LONGEST_PAUSE, ProviderEntry, Providers, ProvidingServer


class ValuesOwner(Protocol):
    """A session, as the lists use it."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The values that handlers stored."""


class ListingContext(Protocol):
    """A request or a session with the lists of its caller: a `ServerContext`.

    Attributes:
        provided: The lists of the caller.
    """

    provided: Mapping[str, Any] | None

    @property
    def envelope(self) -> Envelope:
        """The metadata of the request."""

    @property
    def auth(self) -> Principal | None:
        """The verified caller."""

    @property
    def session(self) -> Mapping[str, Any]:
        """The values of the session at the time the request began."""

    @property
    def dispatcher(self) -> ValuesOwner | None:
        """The session; None for a request without one."""


class ServingServer(Protocol):
    """A server while it is served: a `RunningServer`."""

    @property
    def server(self) -> ProvidingServer:
        """The server."""

    @property
    def linger(self) -> Callable[[Callable[[], Awaitable[object]]], object]:
        """Runs work that outlives the requests."""


class KeptList(NamedTuple):
    """The last list of a provider.

    Attributes:
        version: The version of the provider when it was asked.
        specs: The bound components.
        bound: The components of each item, by the item's id; the item is kept alive for its id.
        until: The time when the list must be fetched again, even with the same version.
        good: The last time when the provider returned the list.
        failures: The number of failures since then.
    """

    version: int
    specs: tuple[Bound, ...] = ()
    bound: Mapping[int, tuple[object, list[Bound]]] = {}
    until: float = math.inf
    good: float = -math.inf
    failures: int = 0


#: The list of a provider that was never asked.
NOT_ASKED: Final = KeptList(-1)


class ListFetcher:
    """Fetches the lists of providers, and keeps shared ones.

    Args:
        providers: The providers of the server.
        served: See `ProviderLists`.
    """

    def __init__(
        self, providers: Providers, served: Mapping[ProviderEntry, ServedProvider | None]
    ) -> None:
        self._providers = providers
        self._server = providers.server
        self._served = served
        self._shared: dict[tuple[ProviderEntry, str], KeptList] = {}
        self._asking: dict[tuple[ProviderEntry, str], trio.Lock] = {}

    def retain(self, entries: Iterable[ProviderEntry]) -> None:
        """Drop the lists of all other providers."""
        kept = frozenset(entries)
        self._shared = {key: each for key, each in self._shared.items() if key[0] in kept}
        self._asking = {key: each for key, each in self._asking.items() if key[0] in kept}

    async def fetch(
        self,
        entry: ProviderEntry,
        feature: str,
        ctx: ListingContext,
        own: Mapping[tuple[ProviderEntry, str], KeptList],
    ) -> KeptList:
        """Return the list of a provider for a caller. Ask the provider if it is out of date.

        Args:
            entry: The provider.
            feature: `tools`, `prompts` or `resources`.
            ctx: The request of the caller.
            own: The lists that are kept for this caller only.
        """
        key = entry, feature
        if not entry.provider.shared:
            kept = own.get(key, NOT_ASKED)
            return kept if self._is_good(kept, entry, feature) else await self._list(key, ctx, kept)
        # One at a time: after a change all callers ask at once, and the list is the same for all.
        async with self._asking.setdefault(key, trio.Lock()):
            kept = self._shared.get(key, NOT_ASKED)
            if not self._is_good(kept, entry, feature):
                kept = self._shared[key] = await self._list(key, ctx, kept)
            return kept

    @staticmethod
    def _is_good(kept: KeptList, entry: ProviderEntry, feature: str) -> bool:
        if kept.version != entry.versions[feature]:
            return False
        return kept.until == math.inf or trio.current_time() < kept.until

    async def _list(
        self, key: tuple[ProviderEntry, str], ctx: ListingContext, kept: KeptList
    ) -> KeptList:
        """Ask a provider for a list. Exceptions are logged, not raised."""
        entry, feature = key
        version, provider = entry.versions[feature], entry.provider
        try:
            with trio.fail_after(provider.timeout):
                items = await self._items(provider, feature, ctx)
            specs, bound = self._bind(provider, feature, items, kept)
        except BaseException as error:
            crash, going_on = split_cancellation(error)
            if crash is None or going_on is not None:
                raise
            return self._note_failure(entry, feature, crash, kept._replace(version=version))
        if entry.failing.pop(feature, None) is not None:
            logger.info("%s gives its %s again", provider.name, feature)
            if provider.shared:
                # The clients saw a list without the provider's items.
                self._server.bus.publish(feature)
        self._providers.note_specs(specs)
        entry.listed[feature] = len(specs)
        # A mounted server may have providers that failed and must be asked again.
        served = self._served.get(entry)
        until = math.inf if served is None else served.expires(ctx, feature)
        return KeptList(version, specs, bound, until, good=trio.current_time())

    @staticmethod
    async def _items(provider: BaseProvider, feature: str, ctx: ListingContext) -> list[object]:
        names = ("resources", "templates") if feature == "resources" else (feature,)
        # Its items are left out without an error, like registrations that need scopes.
        with suppress(InsufficientScope):
            found = [await run_user_code(getattr(provider, name)(ctx)) for name in names]
            for items in found:
                # Each letter or key would be taken for an item.
                if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
                    raise TypeError(f"{provider.name} must give a list of {feature}, {got(items)}")
            return [item for items in found for item in items]
        return []

    def _bind(
        self, provider: BaseProvider, feature: str, items: Iterable[object], kept: KeptList
    ) -> tuple[tuple[Bound, ...], dict[int, tuple[object, list[Bound]]]]:
        """Bind the items of a list. Items of the last list are bound already."""
        server = self._server
        bound: dict[int, tuple[object, list[Bound]]] = {}
        for item in items:
            if (before := kept.bound.get(id(item))) is not None:
                bound[id(item)] = before
            elif isinstance(item, Bound):
                bound[id(item)] = item, [item]
            else:
                try:
                    bound[id(item)] = item, bind_all([item], feature, server.options)
                except DefinitionError as error:
                    text = "an item of %s is left out: %s"
                    server.crash_log.warning(
                        (provider.name, str(error)), text, provider.name, error
                    )
        return tuple(spec for _, specs in bound.values() for spec in specs), bound

    def _note_failure(
        self, entry: ProviderEntry, feature: str, error: BaseException, kept: KeptList
    ) -> KeptList:
        """Record a failure of a provider. It is logged once, until the provider works again."""
        provider, now = entry.provider, trio.current_time()
        late = isinstance(error, trio.TooSlowError)
        entry.failures += 1
        specs: tuple[Bound, ...] = kept.specs if now < kept.good + provider.stale else ()
        entry.listed[feature] = len(specs)
        if feature not in entry.failing:
            entry.failing[feature] = "timed out" if late else "failed"
            served = "its last list is served" if specs else "its items are left out"
            if late:
                text = "%s took longer than %s s to list %s; %s"
                logger.warning(text, provider.name, provider.timeout, feature, served)
            elif isinstance(error, PEER_FAILURES):
                # Another program has failed, and its message says all that is known.
                text = "%s failed to list %s: %s; %s"
                logger.warning(text, provider.name, feature, error, served)
            else:
                text = "%s failed to list %s; %s"
                logger.error(text, provider.name, feature, served, exc_info=error)
        pause = now + min(FIRST_PAUSE * 2**kept.failures, LONGEST_PAUSE)
        if specs:
            pause = min(pause, kept.good + provider.stale)
        elif kept.specs and provider.shared:
            self._server.bus.publish(feature)
        return KeptList(
            kept.version, specs, kept.bound, pause, kept.good, min(kept.failures + 1, 10)
        )
