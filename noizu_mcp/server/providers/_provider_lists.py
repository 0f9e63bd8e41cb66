"""The lists of providers while one connection, or one application over HTTP, is served.

Theory of operation. A request that needs a list, or a name that no registration has, waits until
the lists of its caller are of the present generation (see `Providers`). For that each provider
whose version has moved is asked, all at the same time, each within its own timeout; the others'
last lists are used. A provider that fails offers nothing, or its last list for `stale` seconds, and
is left alone for a growing pause. The lists of all providers are then put behind the registrations,
in one `Collection` for each kind, and the request goes on in the same step.

A caller is a session, or on 2026-07-28 the verified principal; the last `MOST_CALLERS` of these
are kept. The list of a provider that is `shared` is kept once for all of them, and if all are,
there is one caller. An answer that arrives after a newer one is not kept. So memory grows with
sessions and with that constant, and no list outlives a reported change.
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
#: Principals whose lists are kept; the next request of another one asks the providers again.
MOST_CALLERS: Final = 256
#: Seconds after which a `watch` that failed counts as one that had worked.
SETTLED: Final = 60.0


class CallerLists:
    """The lists of one caller.

    Args:
        principal: The caller; None if it was not verified.
        values: The values of the session, or an empty mapping.

    Attributes:
        lists: The collection of each kind that the caller sees, by its name in a list result.
        kept: The last lists of providers.
        done: The generation of the lists of each feature, and the time when they end.
    """

    def __init__(self, principal: Principal | None, values: Mapping[str, Any]) -> None:
        self.principal = principal
        self.values = values
        self.lists: dict[str, Collection[Any]] = {}
        self.kept: dict[tuple[ProviderEntry, str], KeptList] = {}
        self.done: dict[str, tuple[int, float]] = {}


class ProviderLists:
    """The lists of the providers while a server is served; used in the thread of its loop.

    Args:
        running: The server while it is served.
        providers: Its providers.

    Attributes:
        served: Each provider that has begun to serve, with the object that its hook
            `begin_serving` returned.
    """

    def __init__(self, running: ServingServer, providers: Providers) -> None:
        self._running = running
        self._providers = providers
        self._common = CallerLists(None, {})  # where all lists are shared, there is one caller
        # The generation of the lists that each method needs, where all callers have the same lists.
        self._current: dict[str, int] = {}
        self._judged = -1
        self._shared_by_all = False
        self._callers: dict[Principal | None, CallerLists] = {}
        self._sessions: WeakKeyDictionary[ValuesOwner, CallerLists] = WeakKeyDictionary()
        self._watches: dict[ProviderEntry, trio.CancelScope] = {}
        self.served: dict[ProviderEntry, ServedProvider | None] = {}
        self._fetcher = ListFetcher(providers, self.served)
        # The provider of each item of lists that are the same for all callers, by kind and name.
        self._owners: dict[str, dict[str, ProviderEntry]] = {}

    # What runs beside the requests

    async def begin(self) -> None:
        """Start the providers, and watch each provider that is not watched elsewhere."""
        start = trio.current_time()
        self.update()
        # Each `watch` gets its first turn: a provider may be introduced with the first message.
        for _ in range(2):
            await trio.lowlevel.checkpoint()
        for entry, served in tuple(self.served.items()):
            if served is not None:
                with trio.CancelScope(deadline=start + entry.provider.timeout):
                    await served.settled.wait()
                served.settled.set()  # its lists come later, with a notice

    def update(self) -> None:
        """Start the providers that were added, and end the providers that were removed."""
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
        """End the providers; another served server of the same server continues to watch."""
        for entry, scope in self._watches.items():
            scope.cancel()
            self._providers.release(entry)
        self._watches.clear()
        for served in self.served.values():
            if served is not None:
                # It stays in the table: subscriptions end after this.
                served.end(GRACE)

    async def _watch(self, entry: ProviderEntry, scope: trio.CancelScope) -> None:
        """Run `watch` of a provider until it returns; if it fails, again after a pause."""
        provider, pause, told = entry.provider, FIRST_PAUSE, False
        with scope:
            # It may have been removed before this task began, and even been added again.
            await trio.lowlevel.checkpoint_if_cancelled()
            while True:
                if entry.was_watched:
                    entry()  # changes since the last `watch` were missed
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
        """Return the feature whose lists a request needs and must wait for; None if it need not.

        Args:
            request: The request.
            ctx: Its context; if it needs lists, it sees the lists of its caller from now on.
        """
        method = request.method
        # The way of most calls of provided tools, and of all mounted ones.
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
        """Tell whether every provider gives the same lists to all callers."""
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
            # A handler keeps the values that its request began with: its lists are its own then.
            if ctx.session is session.values:
                self._sessions[session] = caller
        return caller

    def forget(self, session: ValuesOwner) -> None:
        """Drop the lists of a session, so that they are asked for again; from any thread."""
        self._sessions.pop(session, None)

    def expiry(self, ctx: ListingContext, feature: str) -> float:
        """Return the time when the lists of a caller must be asked for again; see `CallerLists`."""
        # Lists of a session that has changed since the request began are not kept at all.
        return self.attach(ctx).done.get(feature, (0, math.inf))[1]

    def is_current(self, caller: CallerLists, feature: str) -> bool:
        """Tell whether the lists of a feature need not be asked for."""
        generation, until = caller.done.get(feature, (-1, 0.0))
        if generation != self._providers.generation:
            return False
        return until == math.inf or trio.current_time() < until

    async def prepare(self, ctx: ListingContext, feature: str) -> None:
        """Ask the providers for the lists of a feature that are out of date.

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
            return  # another request of the caller has asked later
        until = min((each.until for each in kept.values()), default=math.inf)
        others = {key: each for key, each in caller.kept.items() if key[1] != feature}
        caller.kept = others | kept
        lists = {entry: kept[entry, feature].specs for entry in entries}
        caller.lists.update(self._merge(feature, lists))
        caller.done[feature] = (generation, until)

    def _merge(
        self, feature: str, lists: Mapping[ProviderEntry, Sequence[Bound]]
    ) -> dict[str, Collection[Any]]:
        """Put the items of providers behind the registrations: one collection for each kind."""
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
        """Choose one item of providers for each name.

        A name is not for providers outside of its namespace. Of several items with one name, that
        of the provider counts that had the name before, and has it also while it fails; else the
        first. A server behind a provider could otherwise take the place of an item of another one.
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
        """Iterate over the items of a kind, without items whose names belong to others."""
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
        # The names may come from another server: they make no kinds of their own.
        text = "the %s %.200r of %.200s is left out: the name is taken by %.200s"
        about = (kind.name, entry.provider.name)
        self._running.server.crash_log.warning(about, text, kind.name, key, spec.source, holder)

    def owner_of(self, ctx: ListingContext, spec: Bound) -> ProviderEntry | None:
        """Return the provider of a component that the caller of a request sees, or None."""
        kept = self.attach(ctx).kept.items()
        return next((entry for (entry, _), each in kept if spec in each.specs), None)

    def served_by(self, provider: BaseProvider) -> "ServedProvider | None":
        """Return the object that `begin_serving` of a provider returned; None without one."""
        return next((each for key, each in self.served.items() if key.provider is provider), None)
