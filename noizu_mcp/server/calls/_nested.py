"""Calls of tools by handlers: `ctx.call_tool`.

Theory of operation. A call within a request has a context of its own, which is that of the request
but for its capability and the chain of calls around it. So progress, questions, cancellation and
session are those of the request, in both eras, and a handler that is run again for its answers
makes the same calls again. A capability is joined with that of the calling handler, so it can only
narrow. No tool calls itself, at any distance, and the chain is bounded: calls always come to an
end.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import trio

from ..._errors import Denied
from ...components import Context, ToolSpec
from ...events import Recording
from ...types import ToolResult
from ..policies._capability import IssuedCapability
from ._invoke import (
    ASKED,
    TIMED_OUT,
    Answer,
    as_result,
    ending_of,
    read_arguments,
    run,
    run_override,
)
from ._policy_checks import Admitted, admit, call_of, hide, let_through, note_decision
from ._recordings import NestedRecording
from ._scope_checks import demand
from ._time_limit import OutOfTime, in_time
from ._unknown import unknown

if TYPE_CHECKING:
    from ...components import Capability
    from .._request_context import RequestContext
    from .._server_context import ServerContext


class _NestedContext(Context):
    """The context of a call within a request.

    Args:
        outer: The context of the handler that calls.
        name: The name of the tool.
        capability: The capability of the call.

    Attributes:
        chain: The tools whose calls this one is nested in, the outermost first.
        around: The same, and this one.
        held: The capability.
        recording: The recording of the call, or that of the handler; None: nobody listens.
        admitted: As in `ServerContext`.
        passed_on: As in `ServerContext`.
    """

    __slots__ = ("_outer", "admitted", "around", "chain", "held", "passed_on", "recording")

    def __init__(
        self,
        outer: "ServerContext",
        name: str,
        capability: IssuedCapability,
        recording: "NestedRecording | None",
    ) -> None:
        self._outer = outer
        self.recording: Recording | None = recording or outer.recording
        self.chain = outer.around
        self.around = (*outer.around, name)
        self.held = capability
        self.admitted: Admitted | None = None
        self.passed_on = False

    def __getattr__(self, name: str) -> Any:
        """Look up what the server needs beyond `Context`: that of the request."""
        return getattr(self._outer, name)

    @property
    def provided(self) -> Mapping[str, Any] | None:
        """The lists that the caller sees: those of the request."""
        return self._outer.provided

    @provided.setter
    def provided(self, lists: Mapping[str, Any] | None) -> None:
        self._outer.provided = lists  # type: ignore[misc]  # a slot of each of its classes

    def refusal_of(self, name: str, arguments: Mapping[str, Any]) -> Denied | None:
        """Tell why the capability does not allow a call of this handler; None if it does."""
        return self.held.refusal(name, arguments)

    @property
    def capability(self) -> IssuedCapability:
        """The capability that the call was made under, one level deeper; see `Context`."""
        return self.held

    async def open_capability(self, text: str) -> IssuedCapability:
        """Open the text of a capability; see `Context`."""
        return await open_text(cast("ServerContext", self), text)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        capability: "Capability | str | None" = None,
    ) -> ToolResult:
        """Call another tool of the server; see `Context`."""
        return await call_nested(cast("ServerContext", self), name, arguments, capability)

    def note_coercion(self) -> None:
        """Note for listeners that the arguments of the call had text for other types."""
        if self.recording is not None:
            self.recording.coerced = True

    def takes_task(self) -> bool:
        """Tell that there is no task: the request belongs to the handler around this call."""
        return False

    async def start_task(self) -> None:
        """Begin no task: the request belongs to the handler around this call."""
        await trio.lowlevel.checkpoint()


def _of_the_request(name: str) -> property:
    return property(lambda self: getattr(self._outer, name))


# The members of `Context` that are those of the request, methods too.
NestedContext: Callable[
    ["ServerContext", str, IssuedCapability, "NestedRecording | None"], Context
] = type(
    "NestedContext",
    (_NestedContext,),
    {"__slots__": (), **{n: _of_the_request(n) for n in _NestedContext.__abstractmethods__}},
)


async def open_text(ctx: "ServerContext", text: str) -> IssuedCapability:
    """Open the text of a capability, once.

    Raises:
        Denied: It is not valid.
    """
    issuer = ctx.running.server.capability_issuer
    id_, capability = issuer.read(text, ctx.auth)

    async def open_capability(_: str) -> bool:
        issuer.redeem(id_, capability)
        return True

    # A step: a handler that is run again for its answers opens the text again, and the sealed state
    # of its request says that it has done so.
    await cast("RequestContext", ctx).step(open_capability, id_)
    return capability


async def call_nested(
    ctx: "ServerContext",
    name: str,
    arguments: Mapping[str, Any] | None,
    capability: "Capability | str | None",
) -> ToolResult:
    """Call a tool for a handler; see `Context.call_tool`."""
    if not isinstance(arguments, Mapping | None):
        raise TypeError(f"arguments must be a mapping, got {arguments!r}")
    server = ctx.running.server
    await server.registry.prepare(ctx, "tools", name)
    spec = server.registry.find_tool(name, ctx)
    call = partial(_call, ctx, name, dict(arguments or {}), spec, capability=capability)
    if not server.telemetry.listeners:
        return await call(None)
    recording = NestedRecording(ctx, name, spec)
    return await recording.record(partial(call, recording))


async def _call(
    ctx: "ServerContext",
    name: str,
    given: dict[str, Any],
    spec: ToolSpec | None,
    recording: NestedRecording | None,
    *,
    capability: "Capability | str | None",
) -> ToolResult:
    server = ctx.running.server
    if spec is None and not server.registry.overrides("call_tool"):
        raise unknown(server.registry.tools, name, ctx)
    if spec is not None:
        demand(spec, ctx)
    try:
        held = await _joined(ctx, capability)
        made = NestedContext(ctx, name, held.inner(), recording)
        inner = cast("RequestContext", made)
        await _check(inner, name, given, spec, held)
    except Denied as denied:
        if recording is not None:
            recording.ending = "denied"
        return ToolResult.error(str(denied))
    result = as_result(await _run(inner, name, given, spec))
    if recording is not None:
        recording.ending = "input_required" if result is ASKED else ending_of(result)
    if result is ASKED:
        # The handler has asked by hand, and its request is answered with that. The call around it
        # must not go on with a result that there is not yet: it is run again with the answers.
        inner.stop()
        await trio.sleep_forever()
    return result


async def _joined(ctx: "ServerContext", capability: "Capability | str | None") -> IssuedCapability:
    if capability is None:
        return ctx.capability
    if isinstance(capability, str):
        capability = await ctx.open_capability(capability)
    elif not isinstance(capability, IssuedCapability):
        raise TypeError(f"capability must be a Capability or its text, not {capability!r}")
    return ctx.capability.joined(capability)


async def _check(
    inner: "RequestContext",
    name: str,
    arguments: Mapping[str, Any],
    spec: ToolSpec | None,
    held: IssuedCapability,
) -> None:
    """Check capability, depth and circles, and ask the policies.

    Raises:
        Denied: The call must not go on.
        McpError: The same; the error for an unknown tool.
    """
    most = inner.running.server.options.limits.call_depth
    label, denied = "capability", held.refusal(name, arguments)
    if denied is None:
        label = "call_depth"
        if name in inner.chain:
            denied = Denied(f"the calls go in a circle: {' > '.join(inner.around)}")
        elif len(inner.chain) > most:
            denied = Denied(f"more than {most} calls are nested in each other")
    if denied is None:
        await hide(partial(admit, "tool", name, arguments, spec, inner))
    else:
        call = call_of("tool", name, arguments, spec, inner, within=False)
        await hide(partial(note_decision, call, label, denied, inner))


async def _run(
    inner: "RequestContext", name: str, arguments: dict[str, Any], spec: ToolSpec | None
) -> Answer:
    server = inner.running.server
    work: Callable[[], Awaitable[Answer]]
    if spec is None or server.registry.overrides("call_tool"):
        # Also without policies: the default that the override calls checks the capability.
        let_through("tool", name, arguments, inner)
        work = partial(run_override, server, spec, name, arguments, inner)
        if spec is None:
            return await work()
    else:
        args, refusal = read_arguments(server, spec, arguments, inner)
        if refusal is not None:
            return refusal
        work = partial(run, server, spec, args, inner)
    try:
        return await in_time(server, spec, work)
    except OutOfTime:
        return TIMED_OUT
