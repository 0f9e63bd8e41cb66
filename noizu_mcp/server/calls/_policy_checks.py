"""Checks of policies before a handler runs. They fail closed.

Each run of a handler is checked once. A handler that waits for an answer and continues runs once; a
handler that is run again from its start is checked again. A call that an override passes on
unchanged is not checked a second time; a call that it changes or makes is another call.
"""

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import trio

from ..._errors import Denied, DeniedHidden
from ..._value import JSONMapping
from ...engine import call_user_code, is_crash, report_waits, run_user_code, unwrap_single
from ..policies._policy import BoundPolicy, CallKind, Chain, PolicyCall
from ..policies._policy_set import is_guarded
from ._emitters import observe_decision
from ._unknown import not_found, unknown, unknown_template

if TYPE_CHECKING:
    from ...components import Context
    from .._server_context import ServerContext

#: The reason for a policy that failed. Details are logged only: they may contain secrets.
FAILED: Final = "policy failed"
#: The reason if a decision could not be recorded.
UNKEPT: Final = "audit failed"


#: The method of a server between the check and the handler.
_OVERRIDES: Final[Mapping[CallKind, str]] = {
    "tool": "call_tool",
    "prompt": "get_prompt",
    "resource": "read_resource",
    "completion": "complete",
}


def admit(
    kind: CallKind,
    name: str,
    arguments: JSONMapping,
    spec: object,
    ctx: "ServerContext",
    *,
    within: bool = False,
) -> Awaitable[None] | None:
    """Check the policies of a call that is about to begin.

    Args:
        kind: The kind of the call.
        name: The name or URI.
        arguments: The arguments as sent.
        spec: The registration; None if only an override knows it.
        ctx: The request or session.
        within: True for a call made by the handler of `ctx`; False for the call of `ctx` itself.

    Returns:
        The rest of the work, which may raise the same; None if all policies were asked.

    Raises:
        Denied: The call is denied.
        DeniedHidden: The call is denied, and the caller must not learn that the component exists.
    """
    server = ctx.running.server
    chain = server.policies.chains.get(kind)
    waits = chain is not None and _waits(chain, ctx)
    if waits or server.telemetry.listeners or is_guarded(spec):
        return _admit(kind, name, arguments, spec, ctx, within=within)
    # Most calls: no coroutine and no scope are needed.
    if chain is not None:
        call = call_of(kind, name, arguments, spec, ctx, within=within)
        _, denied = _decide_at_once(chain, call, ctx)
        if denied is not None:
            raise refusal(kind, name, spec, denied, ctx)
    if _OVERRIDES[kind] in server.registry.overridden:
        ctx.let_through(kind, name, arguments)
    return None


def _waits(chain: Chain, ctx: "ServerContext") -> bool:
    return chain.waits or (chain.is_shared and ctx.running.node is not None)


async def _admit(
    kind: CallKind,
    name: str,
    arguments: JSONMapping,
    spec: Any,
    ctx: "ServerContext",
    *,
    within: bool,
) -> None:
    """Check policies of which one may wait, and emit the decision; see `admit`."""
    server = ctx.running.server
    chain = server.policies.chains.get(kind)
    if chain is not None:
        call = call_of(kind, name, arguments, spec, ctx, within=within)
        policy, denied = (
            await _decide(chain, call, ctx)
            if _waits(chain, ctx)
            else _decide_at_once(chain, call, ctx)
        )
        if denied is not None or server.telemetry.listeners:
            await note_decision(call, policy, denied, ctx)
    if is_guarded(spec):
        await spec.guard.admit(kind, name, arguments, ctx)
    if server.registry.overrides(_OVERRIDES[kind]):
        ctx.let_through(kind, name, arguments)


def call_of(
    kind: CallKind,
    name: str,
    arguments: JSONMapping,
    spec: object,
    ctx: "ServerContext",
    *,
    within: bool,
) -> PolicyCall:
    """Describe a call for policies; see `admit`."""
    # The text variables of the URI, not the converted values that the handler takes.
    template = getattr(spec, "uri_template", None) if kind == "resource" else None
    if template is not None:
        arguments = template.match(name)
    return PolicyCall(
        kind,
        name,
        MappingProxyType(arguments),
        spec,
        ctx.auth,
        ctx.envelope.origin.client,
        ctx.running.transport,
        ctx.around if within else ctx.chain,
    )


async def admit_within(
    kind: CallKind, name: str, arguments: JSONMapping, spec: object, ctx: "ServerContext"
) -> None:
    """Check the policies of a call that a handler or an override makes; see `admit`.

    Raises:
        Denied: The call is denied.
        McpError: The call is denied, with the error for an unknown component.
    """
    await hide(partial(admit, kind, name, arguments, spec, ctx, within=True))


async def hide(check: Callable[[], Awaitable[None] | None]) -> None:
    """Run a check whose exceptions reach code of the author; see `DeniedHidden`.

    Raises:
        Denied: The call is denied.
        McpError: The call is denied, with the error for an unknown component.
    """
    try:
        rest = check()
        if rest is not None:
            await rest
    except DeniedHidden as denied:
        raise denied.answer from None


async def admit_again(
    kind: CallKind, name: str, arguments: JSONMapping, spec: object, ctx: "ServerContext"
) -> None:
    """Check the policies of a registered component that an override or a handler calls.

    See `admit_within`. The call that was admitted to the override is not checked again, once.
    """
    if not ctx.pass_on(kind, name, arguments):
        denied = ctx.refusal_of(name, arguments) if kind == "tool" else None
        if denied is not None:
            call = call_of(kind, name, arguments, spec, ctx, within=True)
            await hide(partial(note_decision, call, "capability", denied, ctx))
        await admit_within(kind, name, arguments, spec, ctx)
        ctx.pass_on(kind, name, arguments)


async def note_decision(
    call: PolicyCall, policy: str | None, denied: Denied | None, ctx: "ServerContext"
) -> None:
    """Emit a decision to listeners, and raise it if the call was denied.

    Args:
        call: The call.
        policy: The policy that denied; None if the call is allowed.
        denied: The refusal; None if the call is allowed.
        ctx: The request.

    Raises:
        Denied: The call was denied, or the decision could not be recorded.
        DeniedHidden: The call was denied, and the caller must not learn that the component exists.
    """
    telemetry = ctx.running.server.telemetry
    if telemetry.listeners:
        event = observe_decision(ctx, call, policy, None if denied is None else denied.reason)
        if not await telemetry.confirm(event) and denied is None:
            denied = Denied(UNKEPT)
            # Another listener may have recorded that the call was allowed.
            await telemetry.confirm(observe_decision(ctx, call, "audit", UNKEPT))
    if denied is not None:
        raise refusal(call.kind, call.name, call.spec, denied, ctx)


def refusal(kind: CallKind, name: str, spec: Any, denied: Denied, ctx: "Context") -> Denied:
    """Return the error for a denied call. A hidden component looks like an unknown one.

    Args:
        kind: The kind of the call.
        name: The name or URI.
        spec: The registration; None if only an override knows it.
        denied: The refusal.
        ctx: The request.
    """
    registry = ctx.server.registry
    if spec is None or not spec.hidden:
        return denied
    # Exactly the error for a name that does not exist.
    if spec.key == "name":
        collection = registry.tools if kind == "tool" else registry.prompts
        answer = unknown(collection, name, ctx)
    elif kind == "completion":
        answer = unknown_template(name, ctx)
    else:
        answer = not_found(name, ctx)
    return DeniedHidden(denied.reason, (answer.code, answer.message, answer.data))


def _decide_at_once(
    chain: Chain, call: PolicyCall, ctx: "ServerContext"
) -> tuple[str | None, Denied | None]:
    """Check policies that cannot wait; see `_decide`."""
    asked: list[BoundPolicy] = []
    try:
        call_user_code(partial(_ask_at_once, chain, call, ctx, asked))
    except BaseException as raised:
        if not is_crash(raised):
            raise
        return _verdict(asked[-1].label, unwrap_single(raised), ctx)
    return None, None


def _ask_at_once(
    chain: Chain, call: PolicyCall, ctx: "ServerContext", asked: list[BoundPolicy]
) -> None:
    for guard in chain.guards:
        asked.append(guard)
        answer = guard.check(call, ctx)
        if answer is not None:
            raise _wrong(answer)


async def _decide(
    chain: Chain, call: PolicyCall, ctx: "ServerContext"
) -> tuple[str | None, Denied | None]:
    """Check the policies in order.

    Returns:
        The policy that denied and its refusal; (None, None) if the call is allowed.
    """
    asked: list[BoundPolicy] = []
    try:
        # One scope for all, without a deadline until a policy waits: most never do, and a scope
        # takes as long as ten policies.
        with trio.CancelScope() as scope:
            await run_user_code(_ask_all(chain, call, ctx, scope, asked))
            # The policy may have caught the cancellation.
            if not scope.cancel_called:
                return None, None
        error: BaseException = TimeoutError(f"no decision within {asked[-1].timeout:g} s")
    except BaseException as raised:
        if not is_crash(raised):
            raise
        error = unwrap_single(raised)
    return _verdict(asked[-1].label, error, ctx)


async def _ask_all(
    chain: Chain,
    call: PolicyCall,
    ctx: "ServerContext",
    scope: trio.CancelScope,
    asked: list[BoundPolicy],
) -> None:
    """Check the policies of a chain; see `_decide`.

    Args:
        chain: The policies.
        call: The call.
        ctx: The request.
        scope: The surrounding scope. It has a deadline while a policy waits.
        asked: Each policy is appended to it before it is asked.

    Raises:
        Denied: A policy denies the call.
        TypeError: A policy returned a value.
    """
    for guard in chain.guards:
        asked.append(guard)
        answer = guard.check(call, ctx)
        if guard.waits or (guard.is_shared and answer is not None):
            # Most decide without waiting, in their first step.
            answer = await report_waits(answer, partial(_limit, scope, guard.timeout))
            if scope.deadline != math.inf:
                scope.deadline = math.inf
        if answer is not None:
            raise _wrong(answer)


def _limit(scope: trio.CancelScope, seconds: float) -> None:
    scope.deadline = trio.current_time() + seconds


def _verdict(label: str, error: BaseException, ctx: "ServerContext") -> tuple[str, Denied]:
    """Return the policy that ends a call, and the refusal for its exception."""
    if isinstance(error, Denied):
        return label, error
    log = ctx.running.server.crash_log
    log.crash(label, "the policy %s failed; the call was denied", label, error=error)
    return label, Denied(FAILED)


def _wrong(answer: object) -> TypeError:
    """Make the error for a policy that returned a value.

    `return False` must not allow a call that its author meant to deny. Neither must a coroutine
    that is never awaited.
    """
    if inspect.iscoroutine(answer):
        answer.close()  # avoids Python's warning about it
    return TypeError(f"check must return None, or raise Denied; it returned {answer!r}")
