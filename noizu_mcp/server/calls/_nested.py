"""Calls of tools by handlers: `ctx.call_tool`.

Theory of operation. A nested call has its own context: the request's, with another capability and
call chain. So it shares progress, questions, cancellation and session with the request, in both
eras, and a handler that runs again makes the same calls again. A capability is joined with the
capability of the calling handler, so it can only become narrower. No tool calls itself, directly or
indirectly, and the depth of calls is limited, so nested calls always end.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import trio

from ..._errors import Denied
from ..._value import JSONMapping
from ...types import InputRequired, ToolResult
from .._contracts import EMPTY
from ..policies._capability import INVALID, IssuedCapability
from ..policies._policy_set import is_guarded
from ._call import ToolCall
from ._emitters import NestedCallEmitter
from ._invoke import ASKED, ending_of, read_any, within
from ._policy_checks import admit, admit_within, call_of, hide, note_decision
from ._scope_checks import check_scopes

if TYPE_CHECKING:
    from ...components import Capability
    from ...types import ReadResult
    from .._server_context import ServerContext


async def open_text(ctx: "ServerContext", text: str) -> IssuedCapability:
    """Open the text of a capability, and mark it as used.

    Raises:
        Denied: It is not valid.
    """
    issuer = ctx.running.server.capability_issuer
    id_, capability = issuer.read(text, ctx.auth)

    async def open_capability(_: str) -> bool:
        issuer.redeem(id_, capability)
        await _claim(ctx, id_, capability.expires_at or 0.0)
        return True

    # A step: if the handler runs again for its answers, it opens the text again, and the sealed
    # state of its request has recorded that.
    await ctx.step(open_capability, id_)
    return capability


async def _claim(ctx: "ServerContext", id_: str, expires_at: float) -> None:
    """Record for all nodes that a text was opened.

    Raises:
        Denied: It was opened at another node, or that cannot be found out now.
    """
    node = ctx.running.node
    if node is None:
        return
    is_first = await node.claim(f"opened:{id_}", max(1.0, expires_at - node.backend.now()))
    if is_first is None:
        raise Denied("the use of the capability cannot be recorded now; try again in a moment")
    if not is_first:
        raise Denied(INVALID)


class NestedCall(ToolCall):
    """A call of a tool by a handler.

    Args:
        ctx: The context of the handler.
        name: The name of the tool.
        arguments: The arguments.
        capability: Narrows what the tool may call; see `Context.call_tool`.
    """

    __slots__ = ("_capability", "emitter")

    def __init__(
        self,
        ctx: "ServerContext",
        name: str,
        arguments: JSONMapping,
        capability: "Capability | str | None",
    ) -> None:
        super().__init__(ctx.request, ctx.running.server, name, dict(arguments), ctx)
        self._capability = capability
        self.emitter: NestedCallEmitter | None = None

    async def check_policies(self) -> None:
        """Make the context of the call, and check capability, depth, cycles and policies.

        Raises:
            Denied: The call is denied.
            McpError: The call is denied, with the error for an unknown tool.
        """
        outer, name = self.context, self.name
        held = await self._join(outer)
        self.made_context = inner = outer.nested(name, held.inner(), self.emitter)
        most = self.server.options.limits.call_depth
        label, denied = "capability", held.refusal(name, self.arguments)
        if denied is None:
            label = "call_depth"
            if name in inner.chain:
                denied = Denied(f"the calls go in a circle: {' > '.join(inner.around)}")
            elif len(inner.chain) > most:
                denied = Denied(f"more than {most} calls are nested in each other")
        if denied is None:
            await hide(partial(admit, "tool", name, self.arguments, self.spec, inner))
        else:
            call = call_of("tool", name, self.arguments, self.spec, inner, within=False)
            await hide(partial(note_decision, call, label, denied, inner))
        if self.overridden:
            # Also without policies: the default that the override calls checks the capability.
            inner.let_through("tool", name, self.arguments)

    async def _join(self, ctx: "ServerContext") -> IssuedCapability:
        given = self._capability
        own = ctx.held or self.server.capability_issuer.issue(ctx.auth)
        if given is None:
            return own
        if isinstance(given, str):
            given = await open_text(ctx, given)
        elif not isinstance(given, IssuedCapability):
            raise TypeError(f"capability must be a Capability or its text, not {given!r}")
        return own.joined(given)

    def refuse(self, denied: Denied) -> ToolResult:
        """Return the answer to a call that policies deny."""
        if self.emitter is not None:
            self.emitter.ending = "denied"
        return super().refuse(denied)

    async def finish(self) -> ToolResult:
        """Run all stages after `find`; see `ToolCall`."""
        result = await super().finish()
        if self.emitter is not None and self.emitter.ending is None:
            self.emitter.ending = "input_required" if result is ASKED else ending_of(result)
        if result is ASKED:
            # The handler returned `InputRequired`, and its request is answered with it. The calling
            # handler must not go on without a result: it runs again with the answers.
            self.request.stop()
            await trio.sleep_forever()
        return result


async def call_nested(
    ctx: "ServerContext",
    name: str,
    arguments: JSONMapping | None,
    capability: "Capability | str | None",
) -> ToolResult:
    """Call a tool for a handler; see `Context.call_tool`."""
    if not isinstance(arguments, Mapping | None):
        raise TypeError(f"arguments must be a mapping, got {arguments!r}")
    call = NestedCall(ctx, name, arguments or {}, capability)
    await call.server.registry.prepare(ctx, "tools", name)
    call.find()
    if not call.server.telemetry.listeners:
        return await call.finish()
    call.emitter = NestedCallEmitter(ctx, name, call.spec)
    return await call.emitter.record(call.finish)


async def read_within(ctx: "ServerContext", uri: str) -> "ReadResult":
    """Read a resource for a handler; see `Context.read_resource`."""
    server = ctx.running.server
    await server.registry.prepare(ctx, "resources", uri)
    uri = server.registry.canonical(uri, ctx)
    found = server.registry.find_resource(uri, ctx)
    spec = None if found is None else found[0]
    known = spec is not None or server.registry.overrides("read_resource")
    if known and (server.policies.chains or is_guarded(spec)):
        if spec is not None:
            check_scopes(spec, ctx)
        await admit_within("resource", uri, EMPTY, spec, ctx)
    result = await within(server, spec, partial(read_any, server, uri, found, ctx))
    if isinstance(result, InputRequired):
        raise TypeError(
            f"{uri} asks with InputRequired, which only a client can answer; let it await"
            " ctx.elicit, ctx.sample or ctx.list_roots"
        )
    return result
