"""A mounted server while the outer server is served: lifespan, calls, subscriptions.

Theory of operation. `run` enters the lifespan, serves the mounted server and its providers, and
leaves the lifespan once `end` was called and no call or subscription uses the server; see
`MountedContexts`. A lifespan that fails is entered again after a growing pause; meanwhile the
components of the server are not listed.
"""

import math

import trio

from ...components import Bound, Context, Renaming
from ...engine import (
    crashes_logged,
    enter_user_code,
    logger,
    run_user_code,
    split_cancellation,
)
from .._running import RunningServer
from .._server import Server
from .._server_context import ServerContext
from ..changes._feed import UNSUBSCRIBE_TIME
from ._mounted_contexts import MountedContexts
from ._mounted_specs import MountedSpecs
from ._providers import FIRST_PAUSE, LONGEST_PAUSE, ProviderEntry


class MountedServer:
    """A mounted server while the outer server is served; a `ServedProvider`.

    Args:
        server: The mounted server.
        names: Converts between its names and the names that clients see.
        outer: The running outer server.
        entry: The entry of the mount among the providers of the outer server.

    Attributes:
        settled: Set once the lifespan was entered, or failed.
    """

    def __init__(
        self, server: Server, names: Renaming, outer: RunningServer, entry: ProviderEntry
    ) -> None:
        self.settled = trio.Event()
        self._server = server
        self._uri_start = names.start("uri")
        self._calls = MountedContexts(server, names, outer.portal)
        self._specs = MountedSpecs(self._calls)
        self._outer = outer
        self._entry = entry
        self._scope = trio.CancelScope(shield=True)
        self._ending = trio.Event()
        # The contexts of the accepted subscriptions, by URI.
        self._subscriptions: dict[str, list[ServerContext]] = {}

    def context(self, ctx: Context) -> ServerContext | None:
        """Make the context of the mounted server for a request; None while it is not served."""
        return self._calls.context(ctx)

    async def specs(self, ctx: Context, feature: str) -> list[Bound]:
        """List the components of the server under the names that clients see.

        Args:
            ctx: The request.
            feature: `tools`, `prompts` or `resources`.
        """
        context = self.context(ctx)
        if context is None:
            return []  # the lifespan has not begun; a change of the lists follows
        await self._server.registry.prepare(context, feature)
        return await self._specs.list_all(feature, context)

    def expires(self, ctx: object, feature: str) -> float:
        """Return the time when the last returned list expires."""
        inner = self._calls.inner
        if inner is None or self._server.registry.providers is None:
            return math.inf
        return inner.provider_lists.expiry(self._calls.need_context(ctx), feature)

    # Subscriptions

    async def can_watch(self, uri: str, ctx: Context) -> bool:
        """Tell whether the mounted server allows a caller to watch one of its resources."""
        context, own = await self._prepare(uri, ctx)
        return bool(await run_user_code(self._server.can_watch(own, context)))

    async def takes_alone(self, uri: str, ctx: Context) -> bool:
        """Tell whether `subscribe` of the mounted server decides about a resource."""
        registry = self._server.registry
        if registry.providers is None or registry.overrides("subscribe"):
            return registry.overrides("subscribe")
        context, own = await self._prepare(uri, ctx)
        return await registry.providers.takes_alone(own, context)

    async def _prepare(self, uri: str, ctx: Context) -> tuple[ServerContext, str]:
        """Return a context whose lists are up to date, and the URI in the mounted server."""
        context, own = self._calls.need_context(ctx), uri.removeprefix(self._uri_start)
        await self._server.registry.prepare(context, "resources", own)
        return context, own

    async def subscribe(self, uri: str, ctx: Context) -> None:
        """Forward a subscription to the server. The lifespan lasts at least until it ends.

        Args:
            uri: The URI of the resource in the server.
            ctx: The request.
        """
        context = self._calls.enter(ctx)
        try:
            await self._server.registry.prepare(context, "resources", uri)
            await run_user_code(self._server.subscribe(uri, context))
        except BaseException:
            self._calls.leave(context)
            raise
        self._subscriptions.setdefault(uri, []).append(context)
        if self._ending.is_set():
            await self.unsubscribe(uri)

    async def unsubscribe(self, uri: str, context: ServerContext | None = None) -> None:
        """Forward the end of a subscription to the server, if the server accepted one.

        Args:
            uri: The URI of the resource in the server.
            context: The request that ends it; None for the request that began it.
        """
        accepted = self._subscriptions.get(uri)
        if not accepted:
            return
        begun = accepted.pop()
        if not accepted:
            del self._subscriptions[uri]
        try:
            await run_user_code(self._server.unsubscribe(uri, context or begun))
        finally:
            self._calls.leave(begun)

    async def _end_subscriptions(self) -> None:
        """End the remaining subscriptions concurrently."""

        async def end(uri: str) -> None:
            with crashes_logged("unsubscribe of %r failed for %s", self._server, uri):
                await self.unsubscribe(uri)

        with trio.move_on_after(UNSUBSCRIBE_TIME):
            async with trio.open_nursery() as nursery:
                for uri, accepted in self._subscriptions.items():
                    for _ in accepted:
                        nursery.start_soon(end, uri)

    # The lifespan

    def end(self, grace: float | None = None) -> None:
        """Leave the lifespan once the running calls have ended.

        Args:
            grace: Maximum seconds to wait for them; None for no limit.
        """
        self._ending.set()
        if grace is not None:
            self._scope.deadline = trio.current_time() + grace

    async def run(self) -> None:
        """Serve until `end` is called. If the lifespan fails, enter it again after a pause."""
        # Shielded: the lifespan outlasts the handlers, which are cancelled when serving ends.
        with self._scope:
            pause, logged = FIRST_PAUSE, False
            while not self._ending.is_set():
                try:
                    async with enter_user_code(self._server.lifespan()) as state:
                        await self._serve(state)
                except BaseException as error:
                    crash, cancelled = split_cancellation(error)
                    if crash is None or cancelled is not None:
                        raise
                else:
                    return
                self.settled.set()
                self._entry.failures += 1
                self._entry.failing["lifespan"] = "failed"
                if not logged:
                    text = "the lifespan of %r failed; it begins again, with growing pauses"
                    logger.error(text, self._entry.provider, exc_info=crash)
                    logged = True
                with trio.move_on_after(pause):
                    await self._ending.wait()
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _serve(self, state: object) -> None:
        outer = self._outer
        inner = RunningServer(
            self._server,
            outer.routes,
            state,
            outer.transport,
            outer.linger,
            node=outer.node,
        )
        try:
            await inner.begin_serving()
            self._calls.begin(inner)
            self._entry.failing.pop("lifespan", None)
            if self.settled.is_set():
                self._entry()  # its lists were empty until now
            self.settled.set()
            await self._ending.wait()
            await self._end_subscriptions()
            await self._calls.wait_idle()
        finally:
            self._calls.end()
            inner.end_serving()
