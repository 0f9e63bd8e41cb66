"""`Mount`: a provider with the components of another server in the same process.

Theory of operation. A mounted server is served wherever the outer server is served: a
`MountedServer` enters its lifespan before the first request and leaves it after the last one, and
the mounted server's providers run meanwhile. Its components are listed once, under their new names,
until the server reports a change. A call finds such a component like any other, and runs its
handler with a context that has the server and the state of the mounted server. `watch` forwards
changes.
"""

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import trio

from ..._errors import DefinitionError
from ..._source import calling_frame, problem_at
from ..._util import called
from ..._value import JSONObject
from ...components import (
    Changes,
    Context,
    Introduction,
    Provider,
    Renaming,
    SkillProvider,
    read_prefix,
)
from .._server import Server
from .._server_context import ServerContext
from ._introductions import find_skill, introduce, list_skills, read_directory
from ._mounted_contexts import not_served
from ._mounted_server import MountedServer

_FEATURES: Final = ("tools", "prompts", "resources")


class Mount(Provider, SkillProvider):
    """Provides the components, skills and instructions of a server in the same process.

    The handlers run as in the mounted server, with its `ctx.server`, `ctx.state` and
    `ctx.read_resource`, its timeouts, scopes and `available`; methods that it overrides are called.
    Its lifespan runs while the outer server is served. With a prefix its components have new names:
    `billing_charge` for the tool or prompt `charge`, `billing+db://{id}` for `db://{id}`. Its
    options `timeout` and `stale` matter only if it computes lists; see `ToolProvider`. Its `init`
    sets up each session that begins while it is served, after `init` of the outer server. Its
    `can_watch`, `subscribe` and `unsubscribe` are called for its own resources.

    Args:
        server: The server: an instance, or a class that needs no arguments.
        prefix: A word before the names; None to keep the names.

    Attributes:
        server: The mounted server.
        prefix: See Args.

    Raises:
        DefinitionError: The first argument is not a server, or the prefix is not valid.
    """

    def __init__(self, server: Server | type[Server], *, prefix: str | None = None) -> None:
        found = list(_problems(server, prefix))
        if found:
            frame = calling_frame()
            raise DefinitionError([problem_at(f"Mount{w}", text, frame) for w, text in found])
        self.server: Server = server() if isinstance(server, type) else server
        self.mounted_server = self.server
        self.prefix = prefix
        self._names = Renaming(prefix or "")

    def __repr__(self) -> str:
        return f"Mount({self.server!r}, prefix={self.prefix!r})"

    @property
    def name(self) -> str:
        """The name of the mounted server."""
        return f"Mount({self.server.options.name})"

    @property
    def offers(self) -> frozenset[str]:
        """The lists that the mounted server has."""
        return frozenset(_FEATURES) & self.server.registry.offered

    @property
    def shared(self) -> bool:  # type: ignore[override]  # read-only: it follows the other server
        """True unless the mounted server computes lists for each caller.

        `available` functions do not matter: they are called when the list is used.
        """
        registry = self.server.registry
        methods = ("list_tools", "list_prompts", "list_resources", "list_resource_templates")
        return registry.providers is None and not registry.overrides(*methods)

    def fixed_names(self) -> Iterable[tuple[str, str]]:
        """Return the new names of the registrations."""
        parts = self.server.registry.parts
        for feature in sorted(self.offers):
            for collection in parts[feature]:
                for key in collection.specs:
                    yield feature, self._names.rename(collection.kind.key, key)

    def namespace(self, key: str) -> str:
        """Return the prefix of the names or URIs; see `BaseProvider`."""
        return self._names.start(key)

    def unknown(self, name: str) -> str | None:
        """Return the error text of the providers of the mounted server; see `BaseProvider`."""
        own, providers = self._names.restore("name", name), self.server.registry.providers
        return None if own is None or providers is None else providers.unknown(own)

    # While the server is served

    def begin_serving(self, running: Any, changed: Any) -> MountedServer:
        """Begin the lifespan of the mounted server; see `BaseProvider`."""
        mounted = MountedServer(self.server, self._names, running, changed)
        running.linger(mounted.run)
        return mounted

    async def watch(self, changed: Changes) -> None:
        """Forward the changes of the mounted server; see `BaseProvider`."""

        def pass_on(change: Hashable) -> None:
            if isinstance(change, tuple):
                changed.resource_updated(self._names.rename_uri(change[0]))
            else:
                # Not a list, or a list that the server did not have when it was mounted.
                with suppress(ValueError):
                    changed(str(change))

        self.server.bus.add(pass_on)
        try:
            await trio.sleep_forever()
        finally:
            self.server.bus.discard(pass_on)

    def _served(self, ctx: Any) -> MountedServer | None:
        """Return the mounted server in the served server of a request; None if it is not served."""
        mounted: MountedServer | None = ctx.running.provider_lists.served_by(self)
        return mounted

    def _context(self, ctx: Any) -> ServerContext | None:
        """Make the context of the mounted server for a request; None while it is not served."""
        mounted = self._served(ctx)
        return None if mounted is None else mounted.context(ctx)

    # Lists

    async def tools(self, ctx: Context) -> Iterable[Any]:
        """List the tools under their new names."""
        return await self._specs(ctx, "tools")

    async def prompts(self, ctx: Context) -> Iterable[Any]:
        """List the prompts under their new names."""
        return await self._specs(ctx, "prompts")

    async def resources(self, ctx: Context) -> Iterable[Any]:
        """List the resources and templates under their new URIs."""
        return await self._specs(ctx, "resources")

    async def templates(self, _ctx: Context) -> Iterable[Any]:
        """List nothing: `resources` also lists the templates."""
        return ()

    async def _specs(self, ctx: Context, feature: str) -> Iterable[Any]:
        mounted = self._served(ctx)
        return () if mounted is None else await mounted.specs(ctx, feature)

    # Introduction and skills

    async def introduce(self, ctx: Context) -> Introduction:
        """Return the instructions and extensions of the mounted server and its providers."""
        inner = self._context(ctx)
        if inner is None:
            return Introduction()
        found = await introduce(self.server, inner)
        if found.instructions is None:
            return found
        name = self.server.options.name
        return found._replace(instructions=self._names.head_instructions(name, found.instructions))

    async def skills(self, ctx: Context) -> Sequence[JSONObject]:
        """List the skills of the mounted server under their new URIs."""
        inner = self._context(ctx)
        found = [] if inner is None else await list_skills(self.server, inner)
        definition_of = self.server.registry.skills.definition_of
        return [self._names.rename_skill(definition_of(each)) for each in found]

    async def skill(self, uri: str, ctx: Context) -> JSONObject | None:
        """Return the entry of a skill of the mounted server."""
        inner, own = self._context(ctx), self._names.restore("uri", uri)
        if inner is None or own is None:
            return None
        spec = self.server.registry.skills.specs.get(own)
        for scopes in (self.server.options.requires, spec and spec.requires):
            if scopes:
                inner.require(scopes)
        entry = await find_skill(self.server, own, inner) if spec is None else spec.definition
        return None if entry is None else self._names.rename_skill(entry)

    async def directory(self, uri: str, cursor: object, ctx: Context) -> JSONObject | None:
        """Return a page of a directory of the skills of the mounted server."""
        inner, own = self._context(ctx), self._names.restore("uri", uri)
        if inner is None or own is None:
            return None
        page = self.server.registry.read_directory(own, cursor)
        if page is None:
            page = await read_directory(self.server, own, cursor, inner)
        return None if page is None else self._names.rename_directory(page)

    # Subscriptions

    async def subscribe(self, uri: str, ctx: Context) -> None:
        """Forward a subscription to the mounted server."""
        mounted = self._served(ctx)
        if mounted is None:  # it was unmounted during the request
            raise not_served(self.server)
        await mounted.subscribe(uri.removeprefix(self.namespace("uri")), ctx)

    async def unsubscribe(self, uri: str, ctx: Context) -> None:
        """Forward the end of a subscription to the mounted server, if it accepted one."""
        mounted, own = self._served(ctx), self._names.restore("uri", uri)
        if mounted is not None and own is not None:
            await mounted.unsubscribe(own, mounted.context(ctx))


def _problems(server: object, prefix: object) -> Iterable[tuple[str, str]]:
    cls = server if isinstance(server, type) else type(server)
    if not issubclass(cls, Server):
        yield "(…)", f"takes a server, got {called(server)}"
        return
    if prefix is not None:
        try:
            read_prefix(prefix)
        except ValueError as error:
            yield f"({cls.__name__}).prefix", str(error)
