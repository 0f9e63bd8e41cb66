"""The lists of providers while one connection, or one application over HTTP, is served.

Theory of operation. A request that needs a list, or a name without a registration, waits until the
lists of its caller have the current generation (see `Providers`). Each provider whose version
changed is asked, all concurrently, each with its own timeout; for the others the last lists are
used. A provider that fails offers nothing, or its last list for `stale` seconds, and is not asked
during a growing pause. The lists of all providers are then appended to the registrations, in one
`Collection` for each kind, and the request continues in the same step.

A caller is a session, or on 2026-07-28 the verified principal; the last `MOST_CALLERS` principals
are kept. The list of a `shared` provider is kept once for all callers, and if all providers are
shared, there is one caller. An answer that arrives after a newer one is dropped. So memory is
bounded by the sessions and that constant, and no list outlives a reported change.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import trio

from ..._errors import PEER_FAILURES
from ...components import BaseProvider, Bound, ServedProvider
from ...engine import logger, run_user_code, split_cancellation
from ...jsonrpc import Request
from ...types import Principal
from ..registry._collection import Collection, CollectionKind
from ._list_fetcher import (
    KeptList,
    ListFetcher,
    ListingContext,
    ServingServer,
    ValuesOwner,
)
from ._providers import FIRST_PAUSE, LONGEST_PAUSE, NEEDED, ProviderEntry, Providers

#: Seconds that a served provider gets to end after its server.
GRACE: Final = 5.0
#: Principals whose lists are kept. For others the providers are asked again.
MOST_CALLERS: Final = 256
#: Seconds after which a `watch` is considered to have worked before it failed.
SETTLED: Final = 60.0


class CallerLists:
    """The lists of one caller.

    Args:
        principal: The caller; None if it was not verified.
        values: The values of the session, or an empty mapping.

    Attributes:
        lists: The collection of each kind that the caller sees, by its name in a list result.
        kept: The last lists of providers.
        done: The generation of the lists of each feature, and the time when they expire.
    """

    def __init__(self, principal: Principal | None, values: Mapping[str, Any]) -> None:
        self.principal = principal
        self.values = values
        self.lists: dict[str, Collection[Any]] = {}
        self.kept: dict[tuple[ProviderEntry, str], KeptList] = {}
        self.done: dict[str, tuple[int, float]] = {}


class ProviderLists:
    """The lists of the providers while a server is served. Used in the thread of its loop.

    Args:
        running: The server while it is served.
        providers: Its providers.

    Attributes:
        served: Each provider that was started, with the object that its hook `begin_serving`
            returned.
    """

    def __init__(self, running: ServingServer, providers: Providers) -> None:
        self._running = running
        self._providers = providers
        self._common = CallerLists(None, {})  # the only caller, if all lists are shared
        # The generation of the lists that each method needs, if all callers have the same lists.
        self._current: dict[str, int] = {}
        self._judged = -1
        self._shared_by_all = False
        self._callers: dict[Principal | None, CallerLists] = {}
        self._sessions: WeakKeyDictionary[ValuesOwner, CallerLists] = WeakKeyDictionary()
        self._watches: dict[ProviderEntry, trio.CancelScope] = {}
        self.served: dict[ProviderEntry, ServedProvider | None] = {}
        self._fetcher = ListFetcher(providers, self.served)
        # The provider of each item of shared lists, by kind and name.
        self._owners: dict[str, dict[str, ProviderEntry]] = {}

    # What runs beside the requests

    async def begin(self) -> None:
        """Start the providers, and watch each provider that no other served server watches."""
        start = trio.current_time()
        self.update()
        # Lets each `watch` run once: the first message may need a provider's introduction.
        for _ in range(2):
            await trio.lowlevel.checkpoint()
        for entry, served in tuple(self.served.items()):
            if served is not None:
                with trio.CancelScope(deadline=start + entry.provider.timeout):
                    await served.settled.wait()
                served.settled.set()  # its lists come later, with a notification

    def update(self) -> None:
        """Start added providers, and end removed ones."""
        entries = self._providers.entries
        for entry in [each for each in self._watches if each not in entries]:
            self._watches.pop(entry).cancel()
        self._fetcher.retain(entries)
        for entry in [each for each in self.served if each not in entries]:
            if (served := self.served.pop(entry)) is not None:
                served.end()
        for entry in entries:
            if entry not in self.served:
                self.served[entry] = entry.provider.begin_serving(self._running, entry)
            if self._providers.claim(entry):
                self._watches[entry] = scope = trio.CancelScope()
                self._running.linger(partial(self._watch, entry, scope))

    def end(self) -> None:
        """End the providers. Another served server of the same server continues to watch them."""
        for entry, scope in self._watches.items():
            scope.cancel()
            self._providers.release(entry)
        self._watches.clear()
        for served in self.served.values():
            if served is not None:
                # It stays in the table: subscriptions end later.
                served.end(GRACE)

    async def _watch(self, entry: ProviderEntry, scope: trio.CancelScope) -> None:
        """Run `watch` of a provider until it returns. If it fails, run it again after a pause."""
        provider, pause, told = entry.provider, FIRST_PAUSE, False
        with scope:
            # It may have been removed before this task began, and even added again.
            await trio.lowlevel.checkpoint_if_cancelled()
            while True:
                if entry.was_watched:
                    entry()  # changes since the last `watch` may be lost
                entry.was_watched = True
                began = trio.current_time()
                try:
                    await run_user_code(provider.watch(entry))
                except BaseException as error:
                    crash, going_on = split_cancellation(error)
                    if crash is None or going_on is not None:
                        raise
                else:
                    return
                if trio.current_time() - began > SETTLED:
                    pause, told = FIRST_PAUSE, False
                if not told:
                    text = "it is started again, with growing pauses"
                    if isinstance(crash, PEER_FAILURES):
                        logger.error("watch of %s failed: %s; %s", provider.name, crash, text)
                    else:
                        logger.error("watch of %s failed; %s", provider.name, text, exc_info=crash)
                    told = True
                await trio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    # The lists of a caller

    def find_outdated(self, request: Request, ctx: ListingContext) -> str | None:
        """Return the feature whose lists a request must wait for; None if it need not wait.

        Args:
            request: The request.
            ctx: Its context. If it needs lists, it gets the lists of its caller.
        """
        method = request.method
        # The way of most calls of provided tools, and of all mounted tools.
        if self._current.get(method) == self._providers.generation:
            ctx.provided = self._common.lists
            return None
        feature = self._providers.feature_of(request)
        if feature is None:
            return None
        caller = self.attach(ctx)
        if not self.is_current(caller, feature):
            return feature
        generation, until = caller.done[feature]
        if caller is self._common and until == math.inf and method in NEEDED:
            self._current[method] = generation
        return None

    def attach(self, ctx: ListingContext) -> CallerLists:
        """Give a request the known lists of its caller."""
        caller = self._caller_of(ctx)
        ctx.provided = caller.lists
        return caller

    def known_to(self, session: ValuesOwner) -> Mapping[str, Any]:
        """Return the lists that a session saw last, for code that belongs to no request."""
        caller = self._common if self._are_shared() else self._sessions.get(session)
        return {} if caller is None else caller.lists

    def _are_shared(self) -> bool:
        """Tell whether every provider returns the same lists for all callers."""
        generation = self._providers.generation
        if self._judged != generation:
            self._judged = generation
            entries = self._providers.entries
            self._shared_by_all = all(entry.provider.shared for entry in entries)
        return self._shared_by_all

    def _caller_of(self, ctx: ListingContext) -> CallerLists:
        if self._are_shared():
            return self._common
        session = ctx.dispatcher
        principal = ctx.auth
        if session is None or ctx.envelope.revision.stateless:
            caller = self._callers.get(principal)
            if caller is None:
                caller = self._callers[principal] = CallerLists(principal, ctx.session)
                if len(self._callers) > MOST_CALLERS:
                    del self._callers[next(iter(self._callers))]
            return caller
        caller = self._sessions.get(session)
        if caller is None or caller.values is not ctx.session or caller.principal != principal:
            caller = CallerLists(principal, ctx.session)
            # A handler keeps the session values of its request: its lists are then not shared.
            if ctx.session is session.values:
                self._sessions[session] = caller
        return caller

    def forget(self, session: ValuesOwner) -> None:
        """Drop the lists of a session, so that they are fetched again. From any thread."""
        self._sessions.pop(session, None)

    def expiry(self, ctx: ListingContext, feature: str) -> float:
        """Return the time when the lists of a caller expire; see `CallerLists`."""
        # If the session changed since the request began, its lists are not kept at all.
        return self.attach(ctx).done.get(feature, (0, math.inf))[1]

    def is_current(self, caller: CallerLists, feature: str) -> bool:
        """Tell whether the lists of a feature are up to date."""
        generation, until = caller.done.get(feature, (-1, 0.0))
        if generation != self._providers.generation:
            return False
        return until == math.inf or trio.current_time() < until

    async def prepare(self, ctx: ListingContext, feature: str) -> None:
        """Fetch the lists of a feature that are out of date.

        There is no checkpoint between the last answer and the return.

        Args:
            ctx: The request.
            feature: `tools`, `prompts` or `resources`.
        """
        caller = self.attach(ctx)
        if self.is_current(caller, feature):
            return
        generation = self._providers.generation
        entries = [each for each in self._providers.entries if feature in each.versions]
        kept: dict[tuple[ProviderEntry, str], KeptList] = {}

        async def ask(entry: ProviderEntry) -> None:
            kept[entry, feature] = await self._fetcher.fetch(entry, feature, ctx, caller.kept)

        async with trio.open_nursery() as nursery:
            for entry in entries:
                nursery.start_soon(ask, entry)
        if generation < caller.done.get(feature, (-1, 0.0))[0]:
            return  # a later request of the caller has asked already
        until = min((each.until for each in kept.values()), default=math.inf)
        others = {key: each for key, each in caller.kept.items() if key[1] != feature}
        caller.kept = others | kept
        lists = {entry: kept[entry, feature].specs for entry in entries}
        caller.lists.update(self._merge(feature, lists))
        caller.done[feature] = (generation, until)

    def _merge(
        self, feature: str, lists: Mapping[ProviderEntry, Sequence[Bound]]
    ) -> dict[str, Collection[Any]]:
        """Append the items of providers to the registrations: one collection for each kind."""
        server = self._running.server
        merged: dict[str, Collection[Any]] = {}
        for collection in server.registry.parts[feature]:
            specs = {**collection.specs, **self._choose(collection, feature, lists)}
            merged[collection.kind.listed] = Collection(
                collection.kind, specs.values(), server.options.page_size, declared=True
            )
        return merged

    def _choose(
        self,
        collection: Collection[Any],
        feature: str,
        lists: Mapping[ProviderEntry, Sequence[Bound]],
    ) -> dict[str, Bound]:
        """Choose one item for each name.

        A name in the namespace of a provider is for that provider only. If several items have one
        name, the provider that had the name before keeps it, even while it fails; otherwise the
        first one is used. Otherwise a server behind a provider could replace an item of another
        provider.
        """
        kind = collection.kind
        before = self._owners.get(kind.listed, {})
        held = {key: e for key, e in before.items() if e in lists and feature in e.failing}
        offers: dict[str, list[tuple[ProviderEntry, Bound]]] = {}
        for key, entry, spec in self._admitted(collection, lists):
            owner = held.get(key, entry)
            if owner is entry:
                offers.setdefault(key, []).append((entry, spec))
            else:
                self._log_clash(kind, key, entry, spec, owner.provider.name)
        found: dict[str, Bound] = {}
        for key, offered in offers.items():
            chosen = next((each for each in offered if before.get(key) is each[0]), offered[0])
            found[key] = chosen[1]
            if chosen[0].provider.shared:
                held[key] = chosen[0]
            for entry, spec in offered:
                if spec is not chosen[1]:
                    self._log_clash(kind, key, entry, spec, chosen[1].source)
        self._owners[kind.listed] = held
        return found

    def _admitted(
        self, collection: Collection[Any], lists: Mapping[ProviderEntry, Sequence[Bound]]
    ) -> Iterator[tuple[str, ProviderEntry, Bound]]:
        """Iterate over the items of a kind, without names in namespaces of other providers."""
        kind = collection.kind
        option = "name" if kind.key == "name" else "uri"
        for entry, specs in lists.items():
            others = self._providers.others_than(entry.provider, option)
            for spec in specs:
                if spec.key != kind.key:
                    continue
                key = collection.key_of(spec)
                taken = collection.specs.get(key)
                if taken is not None:
                    self._log_clash(kind, key, entry, spec, taken.source)
                elif key.startswith(others):
                    self._log_clash(kind, key, entry, spec, "the prefix of another provider")
                else:
                    yield key, entry, spec

    def _log_clash(
        self, kind: CollectionKind, key: str, entry: ProviderEntry, spec: Bound, holder: str
    ) -> None:
        # Not part of the throttling key: the names may come from another server.
        text = "the %s %.200r of %.200s is left out: the name is taken by %.200s"
        about = (kind.name, entry.provider.name)
        self._running.server.crash_log.warning(about, text, kind.name, key, spec.source, holder)

    def owner_of(self, ctx: ListingContext, spec: Bound) -> ProviderEntry | None:
        """Return the provider of a component that the caller sees, or None."""
        kept = self.attach(ctx).kept.items()
        return next((entry for (entry, _), each in kept if spec in each.specs), None)

    def served_by(self, provider: BaseProvider) -> "ServedProvider | None":
        """Return the object that `begin_serving` of a provider returned, or None."""
        return next((each for key, each in self.served.items() if key.provider is provider), None)
