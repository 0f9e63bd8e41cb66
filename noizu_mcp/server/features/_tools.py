"""`tools/list` and `tools/call` (`server/tools`)."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from ..._errors import InsufficientScope, McpError
from ...components import Context, ToolSpec, prepare
from ...engine import Job
from ...jsonrpc import HEADER_MISMATCH, INVALID_PARAMS
from ...protocol import Mirrored, adapt_tool_result, param_fault
from ...types import ToolResult
from .._request_context import BeginTask, RequestContext
from ..calls._invoke import CRASHED, TIMED_OUT, run, run_inline, run_override, unknown_tool
from ._lists import list_page
from ._task_call import Opening


def list_tools(ctx: RequestContext) -> Job | None:
    """Answer `tools/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = ctx.running.server
    ask = server.list_tools if server.overrides("list_tools") else None
    return list_page(ctx, server.registry.tools, "tools", ask)


def call_tool(ctx: RequestContext) -> Job | None:
    """Find the tool, check the arguments, and begin the call.

    Bad arguments are answered with a result that the model can act on (2025-11-25
    `server/tools`, "Error Handling"); an unknown tool and a malformed request with an error.

    Raises:
        McpError: The tool is unknown, or the request is malformed (-32602).
    """
    server = ctx.running.server
    name, arguments = _read(ctx.request.params or {})
    if "call_tool" in server.overridden:
        return _call_override(ctx, name, arguments)
    spec = server.registry.tools.specs.get(name)
    if spec is None:
        raise unknown_tool(name)
    # Headers before arguments: a proxy has routed or refused by them, so a mismatch makes the whole
    # request invalid, whatever its arguments.
    if spec.mirrored:
        _check_headers(spec, arguments, ctx.envelope.origin.headers)
    args, refusal = prepare(spec, arguments)
    if refusal is not None:
        _reply(ctx, spec, refusal)
        return None
    # No deadline and no task: a short handler is done before either could matter, and this is the
    # fastest path.
    if spec.mode == "inline":
        ctx.take_up_rounds()
        _reply(ctx, spec, run_inline(server, spec, args, ctx))
        return None
    if spec.task is None:
        return _run_in_request(ctx, spec, args)
    in_request = partial(_run_in_request, ctx, spec, args)
    return _run_in_task(ctx, spec, partial(run, server, spec, args), in_request)


def _run_in_request(
    ctx: RequestContext, spec: ToolSpec, args: Any, begin_task: BeginTask | None = None
) -> Job:
    ctx.limit_time(spec)
    ctx.take_up_rounds()
    ctx.begin_task = begin_task

    async def call() -> None:
        try:
            result = await run(ctx.running.server, spec, args, ctx)
        except (McpError, InsufficientScope) as error:
            ctx.send_failure(error)
        else:
            _reply(ctx, spec, result)

    return call


def _run_in_task(
    ctx: RequestContext,
    spec: ToolSpec,
    work: Callable[[Context], Awaitable[ToolResult]],
    in_request: Callable[[BeginTask | None], Job],
) -> Job | None:
    """Begin a call as a task, or run it in its request."""
    opening = Opening(ctx, spec, work)
    if opening.enter():
        return None
    return opening.leaving(in_request(opening.begin_task))


def _check_headers(spec: ToolSpec, arguments: Mapping[str, Any], headers: Mirrored | None) -> None:
    """Refuse a call whose `Mcp-Param-*` headers differ (2026-07-28 `server/tools`)."""
    # On stdio there are no headers, and nothing to compare.
    if spec.mirrored and headers is not None:
        fault = param_fault(spec.mirrored, arguments, headers)
        if fault is not None:
            raise McpError(HEADER_MISMATCH, fault)


def _read(params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise McpError(INVALID_PARAMS, "tools/call requires a tool name")
    if arguments is not None and not isinstance(arguments, dict):
        raise McpError(INVALID_PARAMS, "arguments of tools/call must be an object")
    return name, arguments or {}


def _reply(ctx: RequestContext, spec: ToolSpec | None, result: ToolResult) -> None:
    if result is CRASHED or result is TIMED_OUT:
        ctx.mark_ending("crashed" if result is CRASHED else "timed_out")
    wire = result.to_wire()
    revision = ctx.envelope.revision
    # 2026-07-28 allows any JSON value in `structuredContent`; earlier clients refuse others than
    # objects.
    if revision.structured != "any":
        schema = spec.output.schema if spec is not None and spec.output is not None else None
        wire = adapt_tool_result(wire, schema, revision)
    ctx.complete(wire)


def _call_override(ctx: RequestContext, name: str, arguments: dict[str, Any]) -> Job | None:
    """Begin a call of the server's own `call_tool`, with the rules of the registered tool.

    The tool's headers, timeout and task hold for the override, too.

    Raises:
        McpError: A header differs from the arguments.
    """
    server = ctx.running.server
    spec = server.registry.find_tool(name)
    if spec is not None:
        _check_headers(spec, arguments, ctx.envelope.origin.headers)
    work = partial(run_override, server, spec, name, arguments)

    def in_request(begin_task: BeginTask | None) -> Job:
        ctx.take_up_rounds()
        ctx.begin_task = begin_task

        async def ask() -> None:
            _reply(ctx, spec, await work(ctx))

        return ctx.in_time(ask, spec)

    if spec is None or spec.task is None:
        return in_request(None)
    return _run_in_task(ctx, spec, work, in_request)
