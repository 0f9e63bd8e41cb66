"""Checks of policies, before a handler runs; they fail closed.

Each run of a handler is checked once. A handler that waits for an answer, and goes on with it, runs
once; one that is run again from its start is checked again. An override that passes a call on
unchanged is not checked a second time; a call that it changes, or makes, is another call.
"""

import copy
import math
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from ..._errors import Denied, DeniedHidden
from ...engine import is_crash, run_eager, run_user_code
from ..events._recording import observe_decision
from ..policies._policy import CallKind, Chain, Guard, PolicyCall
from ._unknown import not_found, unknown, unknown_template

if TYPE_CHECKING:
    from ...components import Context
    from .._server_context import ServerContext

#: The reason of a policy that failed. The details go to the log only: they may hold secrets.
FAILED: Final = "policy failed"
#: The reason where a decision could not be kept.
UNKEPT: Final = "audit failed"


#: The method of a server between the check and the handler.
_OVERRIDES: Final[Mapping[CallKind, str]] = {
    "tool": "call_tool",
    "prompt": "get_prompt",
    "resource": "read_resource",
    "completion": "complete",
}


class Admitted(NamedTuple):
    """A call that policies have let through to an override, and that it may pass on once."""

    kind: CallKind
    name: str
    arguments: Mapping[str, Any]


async def admit(
    kind: CallKind, name: str, arguments: Mapping[str, Any], spec: Any, ctx: "ServerContext"
) -> None:
    """Ask the policies about a call that is about to begin.

    Args:
        kind: The kind of the call.
        name: The name or URI.
        arguments: The arguments as sent.
        spec: The registration; None if only an override knows it.
        ctx: The request; or the session.

    Raises:
        Denied: The call must not go on.
        DeniedHidden: The same, and the caller must not learn that the component exists.
    """
    server = ctx.running.server
    chain = server.policies.chains.get(kind)
    if chain is None:
        return
    caller = ctx.auth
    call = PolicyCall(
        kind,
        name,
        MappingProxyType(arguments),
        spec,
        caller,
        ctx.envelope.origin.client,
        ctx.running.transport,
        ctx.chain,
    )
    policy, denied = await _decide(chain, call, ctx)
    await note_decision(call, policy, denied, ctx)
    if server.registry.overrides(_OVERRIDES[kind]):
        # A copy: the override may change the mapping that it gets.
        ctx.admitted = Admitted(kind, name, copy.deepcopy(dict(arguments)))
        ctx.passed_on = False


async def admit_within(
    kind: CallKind, name: str, arguments: Mapping[str, Any], spec: Any, ctx: "ServerContext"
) -> None:
    """Ask the policies about a call that a handler or an override makes; see `admit`.

    Raises:
        Denied: The call must not go on.
        McpError: The same; the error for an unknown component.
    """
    try:
        await admit(kind, name, arguments, spec, ctx)
    except DeniedHidden as denied:
        raise denied.answer from None


async def admit_again(
    kind: CallKind, name: str, arguments: Mapping[str, Any], spec: Any, ctx: "ServerContext"
) -> None:
    """Ask about a registered component that an override or a handler calls; see `admit_within`.

    The call that the override itself was let through with is not asked about again, once.
    """
    if not ctx.running.server.policies.chains:
        return
    passed_on, ctx.passed_on = ctx.passed_on, True
    if passed_on or ctx.admitted != (kind, name, arguments):
        await admit_within(kind, name, arguments, spec, ctx)
        ctx.passed_on = True


async def note_decision(
    call: PolicyCall, policy: str | None, denied: Denied | None, ctx: "ServerContext"
) -> None:
    """Tell listeners of a decision, and raise it if the call was denied.

    Args:
        call: The call.
        policy: The policy that denied; None if the call may go on.
        denied: The refusal; None if the call may go on.
        ctx: The request.

    Raises:
        Denied: The call was denied, or its record could not be kept.
        DeniedHidden: The same, and the caller must not learn that the component exists.
    """
    telemetry = ctx.running.server.telemetry
    if telemetry.listeners:
        event = observe_decision(ctx, call, policy, None if denied is None else denied.reason)
        if not await telemetry.confirm(event) and denied is None:
            denied = Denied(UNKEPT)
            observe_decision(ctx, call, "audit", UNKEPT)
    if denied is not None:
        raise _refusal(call, denied, ctx)


def _refusal(call: PolicyCall, denied: Denied, ctx: "Context") -> Denied:
    """Return the error for a denied call; a hidden component is like an unknown one."""
    spec, registry = call.spec, ctx.server.registry
    if spec is None or not spec.hidden:
        return denied
    # Word for word what a caller gets for a name that does not exist.
    if spec.key == "name":
        collection = registry.tools if call.kind == "tool" else registry.prompts
        answer = unknown(collection, call.name, ctx)
    elif call.kind == "completion":
        answer = unknown_template(call.name, ctx)
    else:
        answer = not_found(call.name, ctx)
    return DeniedHidden(denied.reason, answer)


async def _decide(
    chain: Chain, call: PolicyCall, ctx: "ServerContext"
) -> tuple[str | None, Denied | None]:
    """Ask the policies in order.

    Returns:
        The policy that denied and its refusal; None twice if the call may go on.
    """
    if not chain.waits:
        for guard in chain.guards:
            try:
                _expect_none(guard.check(call, ctx))
            except BaseException as error:
                return guard.label, _denial_of(guard, error, ctx)
        return None, None
    # One scope for all, and its deadline is set where a policy waits: most never do, and a scope
    # with a deadline for each would cost more than the policies.
    scope = trio.CancelScope()
    guard = chain.guards[0]
    try:
        with scope:
            for guard in chain.guards:
                try:
                    if guard.waits:
                        await run_eager(
                            _ask(guard, call, ctx), partial(_limit, scope, guard.timeout)
                        )
                        scope.deadline = math.inf
                    else:
                        _expect_none(guard.check(call, ctx))
                except BaseException as error:
                    return guard.label, _denial_of(guard, error, ctx)
                if scope.cancel_called:  # it has swallowed the cancellation
                    break
            else:
                return None, None
    except BaseException as error:
        if not scope.cancelled_caught:
            raise
        return guard.label, _denial_of(guard, error, ctx)
    return guard.label, _denial_of(guard, TimeoutError(f"it took {guard.timeout:g} s"), ctx)


async def _ask(guard: Guard, call: PolicyCall, ctx: "ServerContext") -> None:
    _expect_none(await run_user_code(guard.check(call, ctx)))


def _limit(scope: trio.CancelScope, seconds: float) -> None:
    scope.deadline = trio.current_time() + seconds


def _expect_none(answer: object) -> None:
    # `return False` must not let a call through whose author meant to refuse it; nor must a
    # coroutine that nobody awaits.
    if answer is not None:
        raise TypeError(f"check must return None, or raise Denied; it returned {answer!r}")


def _denial_of(guard: Guard, error: BaseException, ctx: "ServerContext") -> Denied:
    """Turn the exception of a policy into a refusal.

    Raises:
        BaseException: It is no failure of the policy, but a cancellation, and must go on.
    """
    if isinstance(error, Denied):
        return error
    if not is_crash(error):
        raise error
    log = ctx.running.server.crash_log
    log.crash(guard.label, "the policy %s failed; the call was denied", guard.label, error=error)
    return Denied(FAILED)
