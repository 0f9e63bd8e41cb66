"""Calls of registered tools: validate, invoke, and turn what comes back into a result."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from .._errors import McpError, ToolError
from ..components import Context, ToolSpec, error_result, prepare, to_result
from ..engine import is_crash, logger, lone
from ..jsonrpc import INVALID_PARAMS
from ..types import Content, ToolResult

if TYPE_CHECKING:
    from ._server import Server

#: What a model reads when a handler crashed; the details are in the log only.
CRASHED: Final = ToolResult(Content.text("Tool execution failed"), is_error=True)
TIMED_OUT: Final = ToolResult(Content.text("Tool execution timed out"), is_error=True)


def find(server: "Server", name: str) -> ToolSpec:
    """Find a registered tool, hidden or not.

    Raises:
        McpError: There is none (-32602, `server/tools`, "Error Handling").
    """
    spec = server.registry.find(name)
    if spec is None:
        raise McpError(INVALID_PARAMS, f"Unknown tool: {name}")
    return spec


async def call_registered(
    server: "Server", name: str, arguments: Mapping[str, Any], context: Context
) -> ToolResult:
    """Call a registered tool with arguments that nobody has checked yet.

    Raises:
        McpError: There is no such tool, or the tool raised it.
    """
    spec = find(server, name)
    args, refusal = prepare(spec, arguments)
    return refusal or await run(server, spec, args, context)


def run_inline(spec: ToolSpec, args: Any, context: Context | None) -> ToolResult:
    """Run a short sync handler in the calling task.

    Raises:
        McpError: The handler raised it.
    """
    try:
        return _result(spec, spec.invoke(args, context))
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(spec.source, error)


async def run(server: "Server", spec: ToolSpec, args: Any, context: Context | None) -> ToolResult:
    """Run a handler: async ones here, sync ones in a thread.

    Returns:
        The result; that of a handler that crashed says so and no more.

    Raises:
        McpError: The handler raised it.
    """
    try:
        if spec.max_concurrency is None:
            return _result(spec, await _invoke(server, spec, args, context))
        async with server.slots(spec):
            return _result(spec, await _invoke(server, spec, args, context))
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(spec.source, error)


async def _invoke(server: "Server", spec: ToolSpec, args: Any, context: Context | None) -> Any:
    if spec.mode == "async":
        return await spec.invoke(args, context)
    # A thread cannot be stopped: an abandoned one goes on, and keeps its place until it ends.
    return await trio.to_thread.run_sync(
        spec.invoke, args, context, abandon_on_cancel=True, limiter=server.threads
    )


def _result(spec: ToolSpec, value: Any) -> ToolResult:
    result, breach = to_result(spec, value)
    if breach is not None:
        logger.error("%s broke its contract: %s", spec.source, breach)
    return result


def failure(source: str, error: BaseException) -> ToolResult:
    """Turn what a handler raised into a result.

    Args:
        source: Where the handler stands, for the log.
        error: What it raised; alone in the group of a nursery counts as raised by itself.

    Raises:
        McpError: It raised this.
    """
    error = lone(error)
    if isinstance(error, McpError):
        raise error
    if isinstance(error, ToolError):
        try:
            return error_result(error)
        except Exception as bad:  # noqa: BLE001 - the content of the error is no content
            error = bad
    logger.error("%s failed", source, exc_info=error)
    return CRASHED
