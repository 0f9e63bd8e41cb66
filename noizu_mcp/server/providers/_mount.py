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
from ...engine import enter_user_code, logger, split_cancellation
from ...jsonrpc import INVALID_PARAMS
from .._running import RunningServer
from .._server import Server
from ._introductions import find_skill, introduce, list_skills, read_directory
from ._mounted_context import MountedContext
from ._mounted_specs import MountedSpecs

if TYPE_CHECKING:
    from ._providers import Entry

#: Seconds in which the lifespan of a mounted server must end once its server is served no longer.
GRACE: Final = 5.0
#: Seconds before a provider that failed is asked again, before its `watch` is started again, and
#: before a lifespan begins again; they double with each failure, up to the second value.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
#: Methods that belong to a connection; a mounted server has none of its own.
_OF_CONNECTIONS: Final = ("init", "can_watch", "subscribe", "unsubscribe")
_KINDS: Final = ("tools", "prompts", "resources")


class Mount(Provider, SkillProvider):
    """A server in the same process as a provider: all that it has, with skills and instructions.

    The handlers run as in the mounted server: `ctx.server`, `ctx.state` and `ctx.read_resource`,
    timeouts, scopes and `available` are those of it, and methods that it overrides are called. Its
    lifespan runs while the server is served that mounts it. What it lists under other names than
    its own: `billing_charge` for the tool or prompt `charge`, `billing+db://{id}` for `db://{id}`.
    Its options `timeout` and `stale` matter only where it computes lists; see `ToolProvider`.

    Args:
        server: The server: an instance, or a class that needs no arguments.
        prefix: A word before the names; None: they stay as they are.

    Attributes:
        server: The mounted server.
        prefix: See Args.

    Raises:
        DefinitionError: It is no server, the prefix is wrong, or the server overrides a method that
            belongs to a connection: `init`, `can_watch`, `subscribe`, `unsubscribe`.
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
                inner.check_scopes(scopes)
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

    def _context(self, ctx: Any) -> MountedContext | None:
        """Make the context of the mounted server for a request; None while it is not served."""
        mounted: MountedServer | None = ctx.running.provider_lists.mounts.get(self)
        return None if mounted is None or mounted.inner is None else mounted.context(ctx)

    def _rename_uri(self, uri: str) -> str:
        return self.rename("uri", uri)

    def _own_uri(self, uri: str) -> str | None:
        """Return a URI as the mounted server knows it; None for one without the prefix."""
        start = self.rename("uri", "")
        return uri.removeprefix(start) if uri.startswith(start) else None

    async def subscribe(self, uri: str, ctx: Any) -> None:
        """Pass a subscription on to the provider of the mounted server that has the resource."""
        mounted: MountedServer | None = ctx.running.provider_lists.mounts.get(self)
        providers = self.server.registry.providers
        if providers is not None and mounted is not None and mounted.inner is not None:
            inner, name = mounted.context(ctx), uri.removeprefix(self.rename("uri", ""))
            await self.server.registry.prepare(inner, "resources", name)
            await providers.subscribe(name, inner)

    async def unsubscribe(self, uri: str, ctx: Any) -> None:
        """Pass the end of a subscription on to the providers of the mounted server."""
        mounted: MountedServer | None = ctx.running.provider_lists.mounts.get(self)
        providers, start = self.server.registry.providers, self.rename("uri", "")
        is_served = mounted is not None and mounted.inner is not None
        if providers is not None and mounted is not None and is_served and uri.startswith(start):
            await providers.unsubscribe(uri.removeprefix(start), mounted.context(ctx))

    async def _specs(self, ctx: Any, feature: str) -> Iterable[Any]:
        mounted: MountedServer | None = ctx.running.provider_lists.mounts.get(self)
        if mounted is None or mounted.inner is None:
            return ()  # its lifespan has not begun; its lists change when it has
        inner = mounted.context(ctx)
        await self.server.registry.prepare(inner, feature)
        return await mounted.specs.list_all(feature, inner)

    def expiry(self, ctx: Any, feature: str) -> float:
        """Return the time when a list that was just given must be asked for again."""
        mounted: MountedServer | None = ctx.running.provider_lists.mounts.get(self)
        if mounted is None or mounted.inner is None or self.server.registry.providers is None:
            return math.inf
        return mounted.inner.provider_lists.expiry(mounted.context(ctx), feature)


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
    for name in _OF_CONNECTIONS:
        if getattr(cls, name) is not getattr(Server, name):
            text = f"overrides {name}, and a mounted server has no connections; serve it by itself"
            yield f"({cls.__name__})", text


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

    def context(self, ctx: Any) -> MountedContext:
        """Make the context of the mounted server for a request.

        Raises:
            McpError: The server is no longer mounted (-32602).
        """
        if self.inner is None:
            raise McpError(INVALID_PARAMS, f"{self._mount.server.options.name} is not served now")
        return MountedContext(ctx, self.inner, self._mount.rename)

    def enter(self, ctx: Any) -> MountedContext:
        """Begin a call of a handler: the lifespan lasts at least until `leave`."""
        context = self.context(ctx)
        inner: Any = context.running
        if inner.server.registry.providers is not None:
            # URIs of its providers' resources in the answer are renamed, too.
            inner.provider_lists.attach(context)
        self._calls[context] = None
        return context

    def leave(self, context: MountedContext) -> None:
        """End a call; from any thread."""
        del self._calls[context]
        if self._ending.is_set() and not self._calls:
            self._outer.portal.run_soon(self._note_idle)

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
            while self._calls:
                self._idle = trio.Event()
                await self._idle.wait()
        finally:
            self.inner = None
            inner.end_serving()
