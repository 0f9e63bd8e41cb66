"""The providers of one server: a set that can change, versions of lists, and health.

Theory of operation. Each list of a provider has a version. A change raises it before clients are
notified, so a request after the notification finds the list out of date and fetches it again. The
server has a generation, which every change raises, including changes of registrations: a caller
with lists of the current generation needs no further check. Lists are kept by `ProviderLists`, one
for each loop and connection that serves the server. Everything here may be called from any thread.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from ..._errors import DefinitionError, Problem
from ...components import (
    BaseProvider,
    Bound,
    Context,
    ResourceProvider,
    ServedProvider,
    SkillProvider,
    check_providers,
)
from ...engine import ThrottledLog, call_user_code, crashes_logged, run_user_code
from ...jsonrpc import Request
from ..calls._loops import on_trio
from ..changes._bus import Bus
from ..registry._registry import Registry
from ..registry._server_options import ServerOptions

#: Seconds before a failed provider is asked again, its `watch` is run again, or a lifespan is
#: entered again. The pause doubles with each failure, up to the second value.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
#: The lists that requests need, and the param with the name of one item, if any.
NEEDED: Final[Mapping[str, tuple[str, str]]] = {
    "tools/list": ("tools", ""),
    "tools/call": ("tools", "name"),
    "prompts/list": ("prompts", ""),
    "prompts/get": ("prompts", "name"),
    "resources/list": ("resources", ""),
    "resources/templates/list": ("resources", ""),
    "resources/read": ("resources", "uri"),
    "resources/subscribe": ("resources", "uri"),
}


class ProvidingServer(Protocol):
    """A server, as its providers use it: `Server`."""

    registry: Registry
    bus: Bus
    crash_log: ThrottledLog

    @property
    def options(self) -> ServerOptions:
        """The options of the server."""

    def notify_resource_updated(self, uri: str) -> None:
        """Notify clients that a resource changed."""


class ProviderEntry:
    """One provider of one server.

    Args:
        provider: The provider.
        owner: The providers of the server.

    Attributes:
        provider: See Args.
        versions: The version of each list that it offers.
        failing: The lists that cannot be fetched, each with a short reason.
        failures: The number of failures since the start.
        listed: The number of items in the last list of each feature that was listed.
        is_watched: True while a served server runs its `watch`.
        was_watched: True once its `watch` has begun.
    """

    def __init__(self, provider: BaseProvider, owner: "Providers") -> None:
        self.provider = provider
        self.versions = dict.fromkeys(sorted(provider.offers), 0)
        self.failing: dict[str, str] = {}
        self.failures = 0
        self.listed: dict[str, int] = {}
        self.is_watched = False
        self.was_watched = False
        self._owner = owner

    @property
    def server(self) -> ProvidingServer:
        """The server; see `Changes`."""
        return self._owner.server

    def __call__(self, kind: str | None = None, /) -> None:
        """Report that a list changed; see `Changes`."""
        kinds = tuple(self.versions) if kind is None else (kind,)
        if not self.versions.keys() >= set(kinds):
            text = f"{self.provider.name} has no list {kind!r}; there are: "
            raise ValueError(text + ", ".join(self.versions))
        self._owner.note_change(self, kinds)

    def resource_updated(self, uri: str, /) -> None:
        """Report that the contents of a resource changed; see `Changes`."""
        self._owner.server.notify_resource_updated(uri)


class Health(NamedTuple):
    """The state of all providers of one name.

    Attributes:
        name: The name. Names of providers of a mounted server begin with the name of the mount.
        failing: The lists that cannot be fetched, each with the reason: `tools timed out`.
        failures: The number of failures since the start.
        listed: The number of items in the last list of each feature that was listed.
    """

    name: str
    failing: tuple[str, ...]
    failures: int
    listed: Mapping[str, int]


class Providers:
    """The providers of a server. Its methods may be called from any task or thread.

    Args:
        server: The server.
        items: The initial providers.

    Attributes:
        server: See Args.
        entries: The providers in order; replaced as a whole.
        generation: Raised by every change of a provider or of a registration.
        have_tasks: True once a provider has listed a tool that supports tasks.
        have_scopes: True once a provider has listed a component that requires scopes.
    """

    def __init__(self, server: ProvidingServer, items: Iterable[BaseProvider]) -> None:
        self.server = server
        self.entries: tuple[ProviderEntry, ...] = ()
        self.generation = 0
        self.have_tasks = False
        self.have_scopes = False
        self._lock = threading.Lock()
        server.registry.providers = self
        self._put([ProviderEntry(provider, self) for provider in items])
        server.registry.refresh()

    def __iter__(self) -> Iterator[BaseProvider]:
        return (entry.provider for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, provider: object) -> bool:
        return any(entry.provider is provider for entry in self.entries)

    def add(self, *providers: BaseProvider) -> None:
        """Append providers, and notify the clients that the lists changed.

        Raises:
            DefinitionError: An item is not a provider, or is in the list already.
        """
        self._check(providers)
        self._put(added := [ProviderEntry(provider, self) for provider in providers])
        self._tell(added)

    def remove(self, provider: BaseProvider) -> None:
        """Remove a provider. Running requests are not affected.

        Raises:
            ValueError: It is not in the list.
        """
        found = [entry for entry in self.entries if entry.provider is provider]
        if not found:
            raise ValueError(f"{provider!r} is not among the providers")
        with self._lock:
            self.entries = tuple(entry for entry in self.entries if entry not in found)
        self.server.registry.refresh()
        self._tell(found)

    def _check(self, providers: Iterable[BaseProvider]) -> None:
        problems = check_providers([*self, *providers]) or [
            Problem(each.name, "mounts the server in itself")
            for each in providers
            if _mounts(each, self.server)
        ]
        if problems:
            raise DefinitionError(problems)

    def _put(self, entries: list[ProviderEntry]) -> None:
        with self._lock:
            self.entries += tuple(entries)
        parts = self.server.registry.parts
        for feature in {kind for entry in entries for kind in entry.versions}:
            for collection in parts[feature]:
                # Clients are told at the handshake, before the first list is fetched.
                collection.offered = True
                # It is not known yet whether any resource will be subscribable.
                collection.watchable = collection.watchable or feature == "resources"
        self.server.registry.refresh()

    def _tell(self, entries: Iterable[ProviderEntry]) -> None:
        """Notify the served servers, then the clients, that providers were added or removed."""
        for running in tuple(self.server.bus.running):
            running.portal.run_soon(running.update_providers)
        for feature in {kind for entry in entries for kind in entry.versions}:
            self.server.bus.publish(feature)

    def raise_generation(self) -> None:
        """Mark the merged lists of every caller as out of date."""
        with self._lock:
            self.generation += 1

    def note_change(self, entry: ProviderEntry, kinds: Iterable[str]) -> None:
        """Mark lists of a provider as out of date, then notify the clients."""
        with self._lock:
            if entry not in self.entries:
                return  # it was removed, and its `watch` is being cancelled
            for kind in kinds:
                entry.versions[kind] += 1
            self.generation += 1
        for kind in kinds:
            self.server.bus.publish(kind)

    def expire(self, kind: str) -> None:
        """Mark a list of all providers as out of date: the author reported a change."""
        with self._lock:
            for entry in self.entries:
                if kind in entry.versions:
                    entry.versions[kind] += 1
            self.generation += 1

    def note_specs(self, specs: Iterable[Bound]) -> None:
        """Record whether a list has tasks or scopes, which the server then checks."""
        for spec in specs:
            if getattr(spec, "task", None) is not None:
                self.have_tasks = True
            if spec.requires is not None and not self.have_scopes:
                self.have_scopes = True
                self.server.registry.scoped = True

    def claim(self, entry: ProviderEntry) -> bool:
        """Reserve the `watch` of a provider; False if it has no `watch` or it is reserved."""
        with self._lock:
            free = not entry.is_watched and type(entry.provider).watch is not BaseProvider.watch
            entry.is_watched = entry.is_watched or free
        return free

    def release(self, entry: ProviderEntry) -> None:
        """Let another served server run the `watch` of a provider."""
        with self._lock:
            entry.is_watched = False
        for running in tuple(self.server.bus.running):
            running.portal.run_soon(running.update_providers)

    def health(self) -> list[Health]:
        """Return the health of the providers. From any thread."""
        found: dict[str, Health] = {}
        for each in self._all_health():
            _, failing, failures, listed = found.get(each.name, ("", (), 0, {}))
            both = tuple(dict.fromkeys(failing + each.failing))
            sums = {
                kind: listed.get(kind, 0) + each.listed.get(kind, 0)
                for kind in (*listed, *each.listed)
            }
            found[each.name] = Health(each.name, both, failures + each.failures, sums)
        return [*found.values()]

    def _all_health(self) -> Iterator[Health]:
        for entry in self.entries:
            provider = entry.provider
            failing = tuple(f"{kind} {reason}" for kind, reason in tuple(entry.failing.items()))
            yield Health(provider.name, failing, entry.failures, dict(entry.listed))
            inner = provider.mounted_server
            nested = None if inner is None else inner.registry.providers
            for name, faults, count, listed in () if nested is None else nested.health():
                yield Health(f"{provider.name}.{name}", faults, count, listed)

    def offer(self, feature: str) -> bool:
        """Tell whether any provider offers a feature."""
        if feature == "skills":  # their lists are not cached
            return any(isinstance(entry.provider, SkillProvider) for entry in self.entries)
        return any(feature in entry.versions for entry in self.entries)

    def depends_on_caller(self, feature: str) -> bool:
        """Tell whether a list may differ by caller."""
        return any(
            feature in entry.versions and not entry.provider.shared for entry in self.entries
        )

    def feature_of(self, request: Request) -> str | None:
        """Return the feature whose lists a request needs; None if registrations can answer it."""
        params: Mapping[str, Any] = request.params or {}
        needed = NEEDED.get(request.method)
        if needed is None and request.method == "completion/complete":
            ref = params.get("ref")
            params = ref if isinstance(ref, Mapping) else {}
            is_prompt = params.get("type") == "ref/prompt"
            needed = ("prompts", "name") if is_prompt else ("resources", "uri")
        elif needed is None and request.method == "subscriptions/listen":
            wanted = params.get("notifications")
            watched = isinstance(wanted, Mapping) and wanted.get("resourceSubscriptions")
            return "resources" if watched else None
        if needed is None:
            return None
        feature, param = needed
        # A malformed name is rejected by the method itself.
        name = params.get(param)
        if isinstance(name, str):
            for collection in self.server.registry.parts[feature]:
                if name in collection:
                    return None
        return feature

    async def prepare(self, context: Context, feature: str) -> None:
        """Fetch the lists of a caller that are out of date; see `Registry.prepare`."""
        await on_trio(_prepare, feature, context)

    def mounted(self, context: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate over the mounted servers that are served, at any depth.

        Args:
            context: The request or session.

        Returns:
            Each server, and its context for this request.
        """
        for served in context.running.provider_lists.served.values():
            inner = None if served is None else served.context(context)
            if inner is not None:
                yield inner.server, inner
                if inner.server.registry.providers is not None:
                    yield from inner.server.registry.providers.mounted(inner)

    def _owner_of(self, uri: str, context: Any) -> ProviderEntry | None:
        """Return the provider of a resource; None for a registration or an unknown URI."""
        found = self.server.registry.find_resource(uri, context)
        owner: ProviderEntry | None = None
        if found is not None:
            owner = context.running.provider_lists.owner_of(context, found[0])
        return owner

    def _served_owner_of(self, uri: str, context: Any) -> ServedProvider | None:
        served: ServedProvider | None = None
        if (owner := self._owner_of(uri, context)) is not None:
            served = context.running.provider_lists.served.get(owner)
        return served

    async def can_watch(self, uri: str, context: Any) -> bool | None:
        """Tell whether a mounted server lets a caller watch its resource; None for others."""
        owner = self._served_owner_of(uri, context)
        return None if owner is None else await owner.can_watch(uri, context)

    async def takes_alone(self, uri: str, context: Any) -> bool:
        """Tell whether the resource is of a mounted server that overrides `subscribe`."""
        owner = self._served_owner_of(uri, context)
        return owner is not None and await owner.takes_alone(uri, context)

    async def subscribe(self, uri: str, context: object) -> None:
        """Forward a subscription to the provider of the resource, if it has a provider."""
        owner = self._owner_of(uri, context)
        if owner is not None:
            provider: Any = owner.provider  # a `ResourceProvider`: the resource is in its list
            await run_user_code(provider.subscribe(uri, context))

    async def unsubscribe(self, uri: str, context: Any) -> None:
        """Forward the end of a subscription to the providers."""
        for provider in self:
            if isinstance(provider, ResourceProvider):
                await run_user_code(provider.unsubscribe(uri, context))

    def others_than(self, provider: BaseProvider, key: str) -> tuple[str, ...]:
        """Return the prefixes of the names or URIs of other providers; see `namespace`.

        Args:
            provider: The provider.
            key: `name` or `uri`.
        """
        own = len(provider.namespace(key))
        return tuple(text for each in self if len(text := each.namespace(key)) > own)

    def may_serve(self, template: Bound, uri: str, context: Any) -> bool:
        """Tell whether a template may serve a URI, which may belong to another provider."""
        owner = context.running.provider_lists.owner_of(context, template)
        return owner is None or not uri.startswith(self.others_than(owner.provider, "uri"))

    def unknown(self, name: str) -> str | None:
        """Return the error text for an unknown name; None if no provider has one."""
        for provider in self:
            with crashes_logged("%s.unknown failed", provider.name, log=self.server.crash_log):
                text = call_user_code(partial(provider.unknown, name))
                if text is not None:
                    return str(text)
        return None


def _mounts(provider: BaseProvider, server: ProvidingServer) -> bool:
    """Tell whether a provider mounts a server, at any depth."""
    inner = provider.mounted_server
    if inner is None or inner is server:
        return inner is server
    return any(_mounts(each, server) for each in inner.registry.providers or ())


async def _prepare(feature: str, context: Any) -> None:
    await context.running.provider_lists.prepare(context, feature)
