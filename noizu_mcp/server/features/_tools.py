"""`tools/call` (`server/tools`)."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..._errors import Denied, InsufficientScope, McpError
from ..._value import JSONObject
from ...components import Context, ToolSpec
from ...engine import Job, is_crash
from ...jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, render
from ...protocol import adapt_tool_result, param_fault
from ...types import ToolResult
from .._request_context import RequestContext
from ..calls._invoke import (
    CRASHED,
    TIMED_OUT,
    Answer,
    as_result,
    read_arguments,
    run,
    run_inline,
    run_override,
)
from ..calls._result_size import LARGE, size_of
from ..calls._scope_checks import demand
from ..calls._time_limit import OutOfTime, in_time
from ..calls._unknown import unknown
from ..policies._policy_set import is_guarded
from ..registry._availability import is_available

if TYPE_CHECKING:
    from .._server import Server


def call_tool(ctx: RequestContext) -> Job | None:
    """Find the tool, check the arguments, and begin the call, in its request or as a task.

    Bad arguments are answered with a result that the model can act on (2025-11-25
    `server/tools`, "Error Handling"); an unknown tool and a malformed request with an error. The
    headers, the timeout and the task of a tool hold for an override of `call_tool`, too.

    Raises:
        McpError: The tool is unknown, or the request is malformed (-32602).
    """
    server = ctx.running.server
    name, arguments = _read(ctx.request.params or {})
    spec = server.registry.tools.look_up(name, ctx)
    if spec is not None and spec.available is not None and not is_available(spec, ctx):
        spec = None
    # Headers before arguments: a proxy has routed or refused by them, so a mismatch makes the whole
    # request invalid, whatever its arguments.
    if spec is not None and spec.mirrored:
        _check_headers(ctx, spec, arguments)
    if spec is None and "call_tool" not in server.registry.overridden:
        raise unknown(server.registry.tools, name, ctx)
    if server.policies.chains or is_guarded(spec):
        return _begin_checked(ctx, spec, name, arguments)
    return _begin(ctx, spec, name, arguments)


def _begin_checked(
    ctx: RequestContext, spec: ToolSpec | None, name: str, arguments: JSONObject
) -> Job | None:
    """Ask the policies, and then begin the call; a parked handler goes on without."""
    # Before the policies: they are asked once for each run of a handler.
    if ctx.take_up_rounds():
        return None

    async def job() -> None:
        try:
            rest = ctx.running.admit("tool", name, arguments, spec, ctx)
            if rest is not None:
                await rest
            # Sets the deadline of the tool: the policies have time of their own.
            work = _begin(ctx, spec, name, arguments)
            if work is not None:
                await work()
        except BaseException as error:
            if not is_crash(error):
                raise
            ctx.send_failure(error)

    ctx.component = spec
    return job


def _begin(
    ctx: RequestContext, spec: ToolSpec | None, name: str, arguments: JSONObject
) -> Job | None:
    """Check the arguments, and begin the call; see `call_tool`.

    Args:
        ctx: The request.
        spec: The tool; None for one that only the override of `call_tool` knows.
        name: Its name.
        arguments: The arguments as sent.
    """
    server = ctx.running.server
    work: Callable[[Context], Awaitable[Answer]]
    if spec is None or "call_tool" in server.registry.overridden:
        work = partial(run_override, server, spec, name, arguments)
    else:
        args, refusal = read_arguments(server, spec, arguments, ctx)
        if refusal is not None:
            _reply(ctx, spec, refusal)
            return None
        # No deadline and no task: a short handler is done before either could matter, and this is
        # the fastest path.
        if spec.mode == "inline":
            ctx.take_up_rounds()
            _reply(ctx, spec, run_inline(server, spec, args, ctx))
            return None
        work = partial(run, server, spec, args)
    opening = None
    if spec is not None and spec.task is not None:
        # Most tools are never a task.
        from ._tasks import Opening

        opening = Opening(ctx, spec, work)
        if opening.enter():
            return None
        ctx.begin_task = opening.begin_task
        ctx.has_task_room = opening.has_room
    if ctx.take_up_rounds():
        return None
    ctx.limit_time(spec)
    job = partial(_answer, ctx, spec, work)
    return job if opening is None else opening.leaving(job)


def _read(params: Mapping[str, Any]) -> tuple[str, JSONObject]:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise McpError(INVALID_PARAMS, "tools/call requires a tool name")
    if arguments is not None and not isinstance(arguments, dict):
        raise McpError(INVALID_PARAMS, "arguments of tools/call must be an object")
    return name, arguments or {}


def _check_headers(ctx: RequestContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    """Refuse a call whose `Mcp-Param-*` headers differ (2026-07-28 `server/tools`)."""
    headers = ctx.envelope.origin.headers
    # On stdio there are no headers, and nothing to compare.
    fault = None if headers is None else param_fault(spec.mirrored, arguments, headers)
    if fault is not None:
        raise McpError(HEADER_MISMATCH, fault)


async def _answer(
    ctx: RequestContext,
    spec: ToolSpec | None,
    work: Callable[[Context], Awaitable[Answer]],
) -> None:
    """Run the handler, and answer with its result."""
    try:
        answer = await work(ctx)
    except (McpError, InsufficientScope) as error:
        ctx.send_failure(error)
        return
    size = _size_of(answer)
    if size <= LARGE or await ctx.take_turn(size):
        _reply(ctx, spec, answer)


def _size_of(answer: Answer) -> int:
    """Estimate the bytes of an answer, without structured content; see `size_of`."""
    if isinstance(answer, str):
        return len(answer)
    return sum(size_of(value) for block in answer.content for value in block.fields.values())


def _reply(ctx: RequestContext, spec: ToolSpec | None, result: Answer) -> None:
    if isinstance(result, str):
        # Most answers are one text, alike in all revisions. Put together from bytes: the objects
        # and dicts of a result would take five times as long.
        ctx.complete_rendered(b'"content":[{"type":"text","text":', render(result), b"}]")
        return
    if result is CRASHED or result is TIMED_OUT:
        ctx.mark_ending("crashed" if result is CRASHED else "timed_out")
    wire = result.to_wire()
    revision = ctx.envelope.revision
    # 2026-07-28 allows any JSON value in `structuredContent`; earlier clients refuse others than
    # objects.
    if revision.structured != "any":
        schema = None if spec is None else spec.definition.get("outputSchema")
        wire = adapt_tool_result(wire, schema, revision)
    ctx.complete(wire)


async def call_registered(
    server: "Server", name: str, arguments: Mapping[str, Any], context: Context
) -> ToolResult:
    """Call a registered tool with unchecked arguments, within its timeout.

    Returns:
        The result; `TIMED_OUT` itself when the time of the tool was over.

    Raises:
        McpError: There is no such tool, or the tool raised it.
        InsufficientScope: The caller may not call it.
    """
    await server.registry.prepare(context, "tools", name)
    spec = server.registry.find_tool(name, context)
    if spec is None:
        raise unknown(server.registry.tools, name, context)
    # Scopes before arguments: a caller without access must not learn the schema from the errors.
    demand(spec, context)
    ctx = cast("RequestContext", context)
    if server.policies.chains or ctx.held is not None or is_guarded(spec):
        from ..calls._policy_checks import admit_again

        try:
            await admit_again("tool", name, arguments, spec, ctx)
        except Denied as denied:
            return ToolResult.error(str(denied))
    # Invalid arguments are a result with `isError`, not an error: a model can mend them (2025-11-25
    # `server/tools`, "Error Handling").
    args, refusal = read_arguments(server, spec, arguments, ctx)
    if refusal is not None:
        return refusal
    try:
        return as_result(await in_time(server, spec, partial(run, server, spec, args, ctx)))
    except OutOfTime:
        return TIMED_OUT
