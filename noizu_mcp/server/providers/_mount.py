"""`Mount`: another server in the same process, whose components a server offers as its own.

Theory of operation. A mounted server is served wherever the server is that mounts it: a
`MountedServer` enters its lifespan before the first request and leaves it after the last one, and
its own providers run meanwhile. Its components are listed once, under their new names, until the
server says that they changed. A call finds such a component as it finds any other, and runs its
handler with a context whose server and state are those of the mounted server; so nothing stands in
the way of a call but that object. The bus of the mounted server tells every server that mounts it.
"""

import math
import weakref
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import trio

from ..._errors import DefinitionError, McpError
from ..._source import calling_frame, problem_at
from ..._util import called
from ..._value import JSONObject
from ...components import (
    Context,
    Introduction,
    Provider,
    SkillProvider,
    add_prefix,
    headed,
    read_prefix,
    rename_skill,
)
from ...engine import (
    crashes_logged,
    enter_user_code,
    logger,
    run_user_code,
    split_cancellation,
)
from ...jsonrpc import INVALID_PARAMS
from .._running import RunningServer
from .._server import Server
from .._server_context import ServerContext
from ..changes._feed import UNSUBSCRIBE_TIME
from ._introductions import find_skill, introduce, list_skills, read_directory
from ._mounted_context import MountedCalls
from ._mounted_specs import MountedSpecs

if TYPE_CHECKING:
    from ._providers import Entry

#: Seconds in which the lifespan of a mounted server must end once its server is served no longer.
GRACE: Final = 5.0
#: Seconds before a provider that failed is asked again, before its `watch` is started again, and
#: before a lifespan begins again; they double with each failure, up to the second value.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
_KINDS: Final = ("tools", "prompts", "resources")


class Mount(Provider, SkillProvider):
    """A server in the same process as a provider: all that it has, with skills and instructions.

    The handlers run as in the mounted server: `ctx.server`, `ctx.state` and `ctx.read_resource`,
    timeouts, scopes and `available` are those of it, and methods that it overrides are called. Its
    lifespan runs while the server is served that mounts it. What it lists under other names than
    its own: `billing_charge` for the tool or prompt `charge`, `billing+db://{id}` for `db://{id}`.
    Its options `timeout` and `stale` matter only where it computes lists; see `ToolProvider`.
    Its `init` sets up each session that begins while it is served, after that of the server that
    mounts it. Its `can_watch`, `subscribe` and `unsubscribe` are called for its own resources.

    Args:
        server: The server: an instance, or a class that needs no arguments.
        prefix: A word before the names; None: they stay as they are.

    Attributes:
        server: The mounted server.
        prefix: See Args.

    Raises:
        DefinitionError: It is no server, or the prefix is wrong.
    """

    def __init__(self, server: Server | type[Server], *, prefix: str | None = None) -> None:
        found = list(_problems(server, prefix))
        if found:
            frame = calling_frame()
            raise DefinitionError([problem_at(f"Mount{w}", text, frame) for w, text in found])
        self.server: Server = server() if isinstance(server, type) else server
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"Mount({self.server!r}, prefix={self.prefix!r})"

    @property
    def name(self) -> str:
        """The name of the mounted server."""
        return f"Mount({self.server.options.name})"

    @property
    def offers(self) -> frozenset[str]:
        """The lists that the mounted server has."""
        return frozenset(_KINDS) & self.server.registry.offered

    @property
    def shared(self) -> bool:  # type: ignore[override]  # read-only: it follows the other server
        """True unless the mounted server computes lists for each caller.

        An `available` function goes with its component: it is asked where the list is.
        """
        registry = self.server.registry
        methods = ("list_tools", "list_prompts", "list_resources", "list_resource_templates")
        return registry.providers is None and not registry.overrides(*methods)

    def fixed_names(self) -> Iterable[tuple[str, str]]:
        """Return the new names of the registrations."""
        parts = self.server.registry.parts
        for feature in sorted(self.offers):
            for collection in parts[feature]:
                option = "name" if collection.kind.key == "name" else "uri"
                for key in collection.specs:
                    yield feature, self.rename(option, key)

    def reaches(self, server: Server) -> bool:
        """Tell whether a server is mounted here, at any depth."""
        if self.server is server:
            return True
        inner: Any = self.server.registry.providers or ()
        return any(isinstance(each, Mount) and each.reaches(server) for each in inner)

    def rename(self, option: str, value: str) -> str:
        """Return the name or URI under which something of the mounted server is listed."""
        return value if self.prefix is None else add_prefix(self.prefix, option, value)

    def namespace(self, key: str) -> str:
        """Return the prefix of the names or URIs; see `BaseProvider`."""
        return self.rename(key, "")

    def unknown(self, name: str) -> str | None:
        """Word the error as the providers of the mounted server do."""
        start, providers = self.rename("name", ""), self.server.registry.providers
        if providers is None or not name.startswith(start):
            return None
        return providers.unknown(name.removeprefix(start))

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
        """List nothing: `resources` lists the templates, too."""
        return ()

    async def introduce(self, ctx: Any) -> Introduction:
        """Introduce the mounted server, and what it mounts itself."""
        inner = self._context(ctx)
        if inner is None:
            return Introduction()
        found = await introduce(self.server, inner)
        if found.instructions is None:
            return found
        text = headed(self.server.options.name, self.prefix or "", found.instructions)
        return found._replace(instructions=text)

    async def skills(self, ctx: Any) -> Sequence[JSONObject]:
        """List the skills of the mounted server under their new URIs."""
        inner = self._context(ctx)
        found = [] if inner is None else await list_skills(self.server, inner)
        definition_of = self.server.registry.skills.definition_of
        return [rename_skill(definition_of(each), self._rename_uri) for each in found]

    async def skill(self, uri: str, ctx: Any) -> JSONObject | None:
        """Return the entry of a skill of the mounted server."""
        inner, own = self._context(ctx), self._own_uri(uri)
        if inner is None or own is None:
            return None
        spec = self.server.registry.skills.specs.get(own)
        for scopes in (self.server.options.requires, spec and spec.requires):
            if scopes:
                inner.require(scopes)
        entry = await find_skill(self.server, own, inner) if spec is None else spec.definition
        return None if entry is None else rename_skill(entry, self._rename_uri)

    async def directory(self, uri: str, cursor: Any, ctx: Any) -> JSONObject | None:
        """Return a page of a directory of the skills of the mounted server."""
        inner, own = self._context(ctx), self._own_uri(uri)
        if inner is None or own is None:
            return None
        page = self.server.registry.read_directory(own, cursor)
        if page is None:
            page = await read_directory(self.server, own, cursor, inner)
        if page is None:
            return None
        entries = [{**each, "uri": self._rename_uri(each["uri"])} for each in page["resources"]]
        return {**page, "resources": entries}

    def _context(self, ctx: Any) -> ServerContext | None:
        """Make the context of the mounted server for a request; None while it is not served."""
        mounted = self.served(ctx)
        return None if mounted is None else mounted.context(ctx)

    def _rename_uri(self, uri: str) -> str:
        return self.rename("uri", uri)

    def _own_uri(self, uri: str) -> str | None:
        """Return a URI as the mounted server knows it; None for one without the prefix."""
        start = self.rename("uri", "")
        return uri.removeprefix(start) if uri.startswith(start) else None

    def served(self, ctx: Any) -> "MountedServer | None":
        """Return the mounted server as it is served where a request is; None if it is not."""
        mounted: MountedServer | None = ctx.running.provider_lists.mounts.get(self)
        return None if mounted is None or mounted.inner is None else mounted

    def _serving(self, ctx: Any) -> "MountedServer":
        """Return the mounted server as it is served where a request is.

        Raises:
            McpError: It was unmounted while the request was on its way (-32602).
        """
        mounted = self.served(ctx)
        if mounted is None:
            raise _not_served(self)
        return mounted

    async def can_watch(self, uri: str, ctx: Any) -> bool:
        """Tell whether the mounted server lets a caller watch a resource of it."""
        inner, own = await self._prepared(uri, ctx)
        return bool(await run_user_code(self.server.can_watch(own, inner)))

    async def takes_alone(self, uri: str, ctx: Any) -> bool:
        """Tell whether a method of the mounted server takes the subscriptions of a resource."""
        registry = self.server.registry
        if registry.providers is None or registry.overrides("subscribe"):
            return registry.overrides("subscribe")
        inner, own = await self._prepared(uri, ctx)
        return await registry.providers.takes_alone(own, inner)

    async def subscribe(self, uri: str, ctx: Any) -> None:
        """Pass a subscription on to the mounted server, which has the resource."""
        await self._serving(ctx).subscribe(uri.removeprefix(self.rename("uri", "")), ctx)

    async def unsubscribe(self, uri: str, ctx: Any) -> None:
        """Pass the end of a subscription on to the mounted server, if it has taken it."""
        mounted, own = self.served(ctx), self._own_uri(uri)
        if mounted is not None and own is not None:
            await mounted.unsubscribe(own, mounted.context(ctx))

    async def _prepared(self, uri: str, ctx: Any) -> tuple[ServerContext, str]:
        """Return the context of the mounted server, with lists, and its own name for a URI."""
        inner, own = self._serving(ctx).context(ctx), uri.removeprefix(self.rename("uri", ""))
        await self.server.registry.prepare(inner, "resources", own)
        return inner, own

    async def _specs(self, ctx: Any, feature: str) -> Iterable[Any]:
        mounted = self.served(ctx)
        if mounted is None:
            return ()  # its lifespan has not begun; its lists change when it has
        inner = mounted.context(ctx)
        await self.server.registry.prepare(inner, feature)
        return await mounted.specs.list_all(feature, inner)

    def expiry(self, ctx: Any, feature: str) -> float:
        """Return the time when a list that was just given must be asked for again."""
        mounted = self.served(ctx)
        if mounted is None or self.server.registry.providers is None:
            return math.inf
        inner = mounted.context(ctx)
        return inner.running.provider_lists.expiry(inner, feature)


def _problems(server: Any, prefix: Any) -> Iterable[tuple[str, str]]:
    cls = server if isinstance(server, type) else type(server)
    if not issubclass(cls, Server):
        yield "(…)", f"takes a server, got {called(server)}"
        return
    if prefix is not None:
        try:
            read_prefix(prefix)
        except ValueError as error:
            yield f"({cls.__name__}).prefix", str(error)


def _not_served(mount: Mount) -> McpError:
    return McpError(INVALID_PARAMS, f"{mount.server.options.name} is not served now")


class Relay:
    """Passes the changes of a mounted server on to a server that mounts it; from any thread.

    Args:
        mount: The mount.
        entry: Its entry among the providers of the other server; may go without notice.
    """

    def __init__(self, mount: Mount, entry: "Entry") -> None:
        self._mount = mount
        self._entry = weakref.ref(entry)
        mount.server.bus.add(self)

    def __call__(self, change: Hashable) -> None:
        entry = self._entry()
        if entry is None:
            self.close()
        elif isinstance(change, tuple):
            entry.resource_updated(self._mount.rename("uri", change[0]))
        elif change in entry.versions:
            entry(str(change))

    def close(self) -> None:
        """Pass on no more changes."""
        self._mount.server.bus.discard(self)


class MountedServer:
    """A mounted server while the one that mounts it is served.

    Args:
        mount: The mount.
        outer: The served server that mounts it.
        entry: Its entry among the providers of that server.

    Attributes:
        entry: See Args.
        inner: The mounted server as it is served; None before its lifespan and after it.
        specs: Its components under their new names.
        settled: Set once its lifespan has begun, or has failed to.
    """

    def __init__(self, mount: Mount, outer: RunningServer, entry: "Entry") -> None:
        self._mount = mount
        self._outer = outer
        self.entry = entry
        self.inner: RunningServer | None = None
        self.specs = MountedSpecs(mount, self)
        self.settled = trio.Event()
        self._scope = trio.CancelScope(shield=True)
        self._ending = trio.Event()
        self._idle = trio.Event()
        self._calls: dict[object, None] = {}
        # The contexts of the subscriptions that the server has taken, by URI.
        self._taken: dict[str, list[ServerContext]] = {}

    def context(self, ctx: Any) -> ServerContext:
        """Make the context of the mounted server for a request.

        Raises:
            McpError: The server is no longer mounted (-32602).
        """
        if self.inner is None:
            raise _not_served(self._mount)
        outer: ServerContext = ctx
        return outer.of_mounted(self.inner, MountedCalls(outer, self._mount.rename))

    def enter(self, ctx: Any) -> ServerContext:
        """Begin a call of a handler: the lifespan lasts at least until `leave`."""
        context = self.context(ctx)
        inner: Any = context.running
        if inner.server.registry.providers is not None:
            # URIs of its providers' resources in the answer are renamed, too.
            inner.provider_lists.attach(context)
        self._calls[context] = None
        return context

    def leave(self, context: ServerContext) -> None:
        """End a call; from any thread."""
        del self._calls[context]
        if self._ending.is_set() and not self._calls:
            self._outer.portal.run_soon(self._note_idle)

    async def subscribe(self, uri: str, ctx: Any) -> None:
        """Let the server take a subscription; the lifespan lasts at least until its end.

        Args:
            uri: The URI that the resource has in the server.
            ctx: The request.
        """
        context, server = self.enter(ctx), self._mount.server
        try:
            await server.registry.prepare(context, "resources", uri)
            await run_user_code(server.subscribe(uri, context))
        except BaseException:
            self.leave(context)
            raise
        self._taken.setdefault(uri, []).append(context)
        if self._ending.is_set():
            await self.unsubscribe(uri)

    async def unsubscribe(self, uri: str, context: ServerContext | None = None) -> None:
        """Tell the server of the end of a subscription that it has taken; ignore any other.

        Args:
            uri: The URI that the resource has in the server.
            context: The request that ends it; None for the one that began it.
        """
        taken = self._taken.get(uri)
        if not taken:
            return
        begun = taken.pop()
        if not taken:
            del self._taken[uri]
        try:
            await run_user_code(self._mount.server.unsubscribe(uri, context or begun))
        finally:
            self.leave(begun)

    async def _end_subscriptions(self) -> None:
        """End what is left of the subscriptions, all at the same time."""

        async def end(uri: str) -> None:
            server = self._mount.server
            with crashes_logged("unsubscribe of %r failed for %s", server, uri):
                await self.unsubscribe(uri)

        with trio.move_on_after(UNSUBSCRIBE_TIME):
            async with trio.open_nursery() as nursery:
                for uri, taken in self._taken.items():
                    for _ in taken:
                        nursery.start_soon(end, uri)

    def _note_idle(self) -> None:
        self._idle.set()  # each wait has its own event

    def end(self, grace: float | None = None) -> None:
        """Leave the lifespan once the running calls have ended.

        Args:
            grace: Seconds that it gets for this; None for any time.
        """
        self._ending.set()
        if grace is not None:
            self._scope.deadline = trio.current_time() + grace

    async def run(self) -> None:
        """Serve until `end` is called; a lifespan that fails begins again after a pause."""
        # Shielded: the lifespan outlasts the handlers, which are cancelled when serving ends.
        with self._scope:
            pause, told = FIRST_PAUSE, False
            while not self._ending.is_set():
                try:
                    async with enter_user_code(self._mount.server.lifespan()) as state:
                        await self._serve(state)
                except BaseException as error:
                    crash, going_on = split_cancellation(error)
                    if crash is None or going_on is not None:
                        raise
                else:
                    return
                self.settled.set()
                self.entry.failures += 1
                self.entry.failing["lifespan"] = "failed"
                if not told:
                    text = "the lifespan of %r failed; it begins again, with growing pauses"
                    logger.error(text, self._mount, exc_info=crash)
                    told = True
                with trio.move_on_after(pause):
                    await self._ending.wait()
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _serve(self, state: Any) -> None:
        outer = self._outer
        inner = RunningServer(
            self._mount.server, outer.routes, state, outer.transport, outer.linger
        )
        try:
            await inner.begin_serving()
            self.inner = inner
            self.entry.failing.pop("lifespan", None)
            if self.settled.is_set():
                self.entry()  # its lists were empty
            self.settled.set()
            await self._ending.wait()
            await self._end_subscriptions()
            while self._calls:
                self._idle = trio.Event()
                await self._idle.wait()
        finally:
            self.inner = None
            inner.end_serving()
