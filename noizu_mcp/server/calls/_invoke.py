"""Calls of registered tools: validate, invoke, and turn what comes back into a result."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from ... import components
from ..._errors import ConnectionClosed, InsufficientScope, McpError, RequestTimeout, ToolError
from ...components import Context, PromptSpec, ToolSpec, error_result, prepare, to_result
from ...engine import Ending, call_in_thread, call_user_code, is_crash, run_user_code, unwrap_single
from ...jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND
from ...protocol import REVISIONS
from ...types import (
    Completion,
    Content,
    InputRequired,
    PromptResult,
    ReadResult,
    Reference,
    ToolResult,
)
from ..registry._registry import Found
from ._concurrency_limit import one_of
from ._refusal import refusal_in, refused, timed_out
from ._scope_checks import demand
from ._time_limit import OutOfTime, Timed, in_time

if TYPE_CHECKING:
    from .._server import Server

Result = TypeVar("Result")

#: What a model reads when a handler crashed; the details are in the log only.
CRASHED: Final = ToolResult(Content.text("Tool execution failed"), is_error=True)
TIMED_OUT: Final = ToolResult(Content.text("Tool execution timed out"), is_error=True)


def unknown_tool(name: str) -> McpError:
    """Make the error for a tool that is not registered (-32602, `server/tools`)."""
    return McpError(INVALID_PARAMS, f"Unknown tool: {name}")


async def call_registered(
    server: "Server", name: str, arguments: Mapping[str, Any], context: Context
) -> ToolResult:
    """Call a registered tool with arguments that nobody has checked yet, in the tool's time.

    Returns:
        The result; `TIMED_OUT` itself when the time of the tool was over.

    Raises:
        McpError: There is no such tool, or the tool raised it.
        InsufficientScope: The caller may not call it.
    """
    spec = server.registry.find_tool(name)
    if spec is None:
        raise unknown_tool(name)
    demand(spec, context)
    args, refusal = prepare(spec, arguments)
    if refusal is not None:
        return refusal
    try:
        return await in_time(server, spec, partial(run, server, spec, args, context))
    except OutOfTime:
        return TIMED_OUT


def run_inline(server: "Server", spec: ToolSpec, args: Any, context: Context | None) -> ToolResult:
    """Run a short sync handler in the calling task.

    Raises:
        McpError: The handler raised it.
        InsufficientScope: The handler raised it.
    """
    try:
        return call_user_code(lambda: answer_of(server, spec, _unasked(spec.invoke(args, context))))
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(server, spec.source, error)


def _unasked(value: Any) -> Any:
    if isinstance(value, InputRequired):
        raise TypeError("an inline handler cannot ask: it must not wait")
    return value


async def run(server: "Server", spec: ToolSpec, args: Any, context: Context) -> ToolResult:
    """Run a handler: async ones here, sync ones in a thread.

    Returns:
        The result; that of a handler that crashed says so and no more.

    Raises:
        McpError: The handler raised it.
        InsufficientScope: The handler raised it.
    """

    async def invoke() -> Any:
        return await invoke_handler(context, spec.mode, partial(spec.invoke, args, context))

    asking = context if spec.takes_context else None
    try:
        if spec.max_concurrency is None:
            return answer_of(server, spec, await settle(invoke, asking))
        async with one_of(server.slots(spec)):
            return answer_of(server, spec, await settle(invoke, asking))
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(server, spec.source, error)


async def run_override(
    server: "Server",
    spec: ToolSpec | None,
    name: str,
    arguments: dict[str, Any],
    context: Context,
) -> ToolResult:
    """Let a server's own `call_tool` answer; what it returns is taken as a handler's.

    Args:
        server: The server.
        spec: The tool; None for one that only the override knows.
        name: What the client calls it.
        arguments: As sent.
        context: The request.

    Returns:
        The result, as of `run`.

    Raises:
        McpError: It raised this.
    """

    async def invoke() -> Any:
        return await run_user_code(server.call_tool(name, arguments, context))

    try:
        return answer_of(server, spec, await settle(invoke, context))
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(server, f"call_tool of {server!r}", error)


async def invoke_handler(context: Context, mode: str, invoke: Callable[[], Any]) -> Any:
    """Call a handler where it belongs: async ones here, inline ones too, others in a thread."""
    if mode == "async":
        return await run_user_code(invoke())
    if mode == "inline":
        return call_user_code(invoke)
    # A thread cannot be stopped: an abandoned one goes on, and keeps its place until it ends.
    limiter = context.threads
    return await run_user_code(
        trio.to_thread.run_sync(call_in_thread, invoke, abandon_on_cancel=True, limiter=limiter)
    )


async def settle(invoke: Callable[[], Awaitable[Any]], context: Context | None) -> Any:
    """Run a handler, and again while it returns `InputRequired` and the answers come.

    Returns:
        What it returned last; an `InputRequired` when the request has been answered with it.
    """
    value = await invoke()
    while isinstance(value, InputRequired):
        if context is None:
            raise TypeError("a handler that returns InputRequired must take ctx, for the answers")
        if not await context.retry(value):
            return value
        value = await invoke()
    return value


def answer_of(server: "Server", spec: ToolSpec | None, value: Any) -> ToolResult:
    """Turn what a handler returned into a result; the log says what could not be sent.

    Args:
        server: The server, whose log it is.
        spec: The tool; None for one that only an override of `call_tool` knows.
        value: What came back.
    """
    if isinstance(value, InputRequired):
        return ToolResult()  # it is never sent: the request has its answer
    result, breach = to_result(spec, value)
    if breach is not None:
        source = "call_tool" if spec is None else spec.source
        text = "%s broke its contract: %s"
        server.crash_log.entry(logging.ERROR, (text, source), text, source, breach)
    return result


def failure(server: "Server", source: str, error: BaseException) -> ToolResult:
    """Turn what a handler raised into a result.

    Args:
        server: The server, whose log it is.
        source: Where the handler stands, for the log.
        error: What it raised; alone in the group of a nursery counts as raised by itself. A
            client's refusal of its question, if it let that out, is for the model to read.

    Raises:
        McpError: It raised this.
        InsufficientScope: The handler raised it.
    """
    refusal = refusal_in(error)
    if refusal is not None:
        return ToolResult.error(refused(refusal))
    error = unwrap_single(error)
    if isinstance(error, McpError | InsufficientScope):
        raise error
    if isinstance(error, ToolError):
        try:
            return error_result(error)
        except BaseException as bad:  # the content of the error is no content
            if not is_crash(bad):
                raise
            error = bad
    if isinstance(error, ConnectionClosed):
        return CRASHED  # while it asked; nobody hears of it
    if isinstance(error, RequestTimeout):
        return ToolResult.error(timed_out(error))
    server.crash_log.crash(source, "%s failed", source, error=error)
    return CRASHED


def ending_of(result: ToolResult) -> Ending | None:
    """Say to who watches how a call ended, where the result alone does not tell."""
    if result is CRASHED:
        return "crashed"
    return "timed_out" if result is TIMED_OUT else None


def not_found(uri: str, version: str) -> McpError:
    """Make the error for a resource that is not there.

    2026-07-28 forbids -32002 and answers -32602 (`server/resources`, "Error Handling").
    """
    code = INVALID_PARAMS if REVISIONS[version].stateless else RESOURCE_NOT_FOUND
    return McpError(code, "Resource not found", {"uri": uri})


async def read_registered(server: "Server", uri: str, context: Context) -> Any:
    """Read a registered resource, in its time; see `read_found`.

    Raises:
        McpError: The time is over (-32603), or see `read_found`.
        InsufficientScope: See `read_found`.
    """
    found = server.registry.find_resource(uri)
    return await within(server, found and found[0], partial(read_found, uri, found, context))


async def within(
    server: "Server", spec: Timed | None, work: Callable[[], Awaitable[Result]]
) -> Result:
    """Read a resource or get a prompt within another request, in the time of its own.

    Args:
        server: The server.
        spec: The component; None where nothing is registered.
        work: The work.

    Raises:
        McpError: The time is over (-32603).
    """
    if spec is None:
        return await work()
    try:
        return await in_time(server, spec, work)
    except OutOfTime:
        raise McpError(INTERNAL_ERROR, "Request timed out") from None


async def read_found(uri: str, found: Found | None, context: Context) -> ReadResult | InputRequired:
    """Read a resource that the registry has found, or not.

    Returns:
        The `ReadResult`; or an `InputRequired` of the handler.

    Raises:
        McpError: There is no such resource.
        InsufficientScope: The caller may not read it.
    """
    if found is None:
        raise not_found(uri, context.protocol_version)
    spec, variables = found
    demand(spec, context)
    arguments = (uri, context) if variables is None else (uri, variables, context)
    value = await invoke_handler(context, spec.mode, partial(spec.invoke, *arguments))
    if isinstance(value, InputRequired | ReadResult):
        return value
    return ReadResult(components.to_contents(spec.mime_type, uri, value))


async def read_any(
    server: "Server", uri: str, found: Found | None, context: Context
) -> ReadResult | InputRequired:
    """Read a resource in the way of the server, which may compute it.

    Returns:
        Its contents; or an `InputRequired` of the handler.

    Raises:
        McpError: There is no such resource.
        InsufficientScope: The caller may not read it.
    """
    if not server.overrides("read_resource"):
        return await read_found(uri, found, context)
    if found is not None:
        demand(found[0], context)
    value = await run_user_code(server.read_resource(uri, context))
    if isinstance(value, InputRequired | ReadResult):
        return value
    return ReadResult(
        components.to_contents(None if found is None else found[0].mime_type, uri, value)
    )


async def get_registered(
    server: "Server", name: str, arguments: Mapping[str, Any], context: Context
) -> Any:
    """Get a registered prompt, in its time; see `get_found`.

    Raises:
        McpError: The time is over (-32603), or see `get_found`.
        InsufficientScope: See `get_found`.
    """
    spec = server.registry.find_prompt(name)
    return await within(server, spec, partial(get_found, spec, name, arguments, context))


async def get_found(
    spec: PromptSpec | None, name: str, arguments: Mapping[str, Any], context: Context
) -> PromptResult | InputRequired:
    """Get a prompt that the registry has found, or not.

    Returns:
        The `PromptResult`; or an `InputRequired` of the handler.

    Raises:
        McpError: There is no such prompt, or its arguments do not fit (-32602).
        InsufficientScope: The caller may not get it.
    """
    if spec is None:
        raise McpError(INVALID_PARAMS, f"Unknown prompt: {name}")
    demand(spec, context)
    args = spec.prepare(arguments)
    value = await invoke_handler(context, spec.mode, partial(spec.invoke, args, context))
    return value if isinstance(value, InputRequired) else components.to_prompt_result(spec, value)


async def complete_registered(
    server: "Server",
    reference: Reference,
    name: str,
    prefix: str,
    context: Context,
) -> Completion:
    """Complete an argument of a registered prompt or template.

    Raises:
        McpError: There is no such prompt, template, argument or variable (-32602).
        InsufficientScope: The caller may not use it.
    """
    source = _completed_from(server, reference, name, context)
    if isinstance(source, components.Completer):
        invoke = partial(source.invoke, prefix, context)
        return components.to_completion(await invoke_handler(context, source.mode, invoke))
    return components.complete_from(source or (), prefix)


def _completed_from(
    server: "Server", reference: Reference, name: str, context: Context
) -> "components.Source | None":
    if reference.type == "ref/prompt":
        prompt = server.registry.find_prompt(reference.name or "")
        if prompt is None:
            raise McpError(INVALID_PARAMS, f"Unknown prompt: {reference.name}")
        demand(prompt, context)
        if name not in prompt.arguments:
            raise McpError(INVALID_PARAMS, f"Unknown prompt argument: {name}")
        return prompt.complete(name)
    template = server.registry.templates.specs.get(reference.uri or "")
    if template is None:
        raise McpError(INVALID_PARAMS, f"Unknown resource template: {reference.uri}")
    demand(template, context)
    if name not in template.variables:
        raise McpError(INVALID_PARAMS, f"Unknown template variable: {name}")
    return template.complete(name)
