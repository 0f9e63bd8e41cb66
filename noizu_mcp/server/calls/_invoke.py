"""Calls of handlers: validate the arguments, invoke, and convert the value into a result."""

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

#: The result of a crashed handler. The details go to the log only: an exception text may hold
#: secrets, and a model may repeat it. Compared by identity: a tool may return an equal text.
CRASHED: Final = ToolResult(Content.text("Tool execution failed"), is_error=True)
#: The result of a call that ran out of time: a result, so that the model can go on without the
#: tool.
TIMED_OUT: Final = ToolResult(Content.text("Tool execution timed out"), is_error=True)


def unknown_tool(name: str) -> McpError:
    """Make the error for a tool that is not registered (-32602, `server/tools`)."""
    return McpError(INVALID_PARAMS, f"Unknown tool: {name}")


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
    spec = server.registry.find_tool(name)
    if spec is None:
        raise unknown_tool(name)
    # Scopes before arguments: a caller without access must not learn the schema from the errors.
    demand(spec, context)
    # Invalid arguments are a result with `isError`, not an error: a model can mend them (2025-11-25
    # `server/tools`, "Error Handling").
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
        # The conversion is inside as well: it reads objects of the author's, which may raise.
        return call_user_code(lambda: answer_of(server, spec, _unasked(spec.invoke(args, context))))
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(server, spec.source, error)


def _unasked(value: Any) -> Any:
    if isinstance(value, InputRequired):
        # On a pipe an inline handler runs in the message loop: waiting would stop all requests.
        raise TypeError("an inline handler cannot ask: it must not wait")
    return value


async def run(server: "Server", spec: ToolSpec, args: Any, context: Context) -> ToolResult:
    """Run a handler: an async one here, a sync one in a thread.

    Returns:
        The result; `CRASHED` for a handler that raised an unexpected exception.

    Raises:
        McpError: The handler raised it.
        InsufficientScope: The handler raised it.
    """

    async def invoke() -> Any:
        return await invoke_handler(context, spec.mode, partial(spec.invoke, args, context))

    # A handler without ctx could not read the answers of the next round.
    asking = context if spec.takes_context else None
    try:
        # Looked at before a context manager is made: most tools have no limit, and this is the path
        # of every call.
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
    """Run the server's own `call_tool`; its value counts as a handler's.

    Args:
        server: The server.
        spec: The tool; None for one that only the override knows.
        name: The name of the tool.
        arguments: The unchecked arguments.
        context: The request.

    Returns:
        The result; see `run`.

    Raises:
        McpError: The override raised it.
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
    """Call a handler: async and inline ones here, others in a thread."""
    if mode == "async":
        return await run_user_code(invoke())
    if mode == "inline":
        return call_user_code(invoke)
    # A thread cannot be stopped: an abandoned one goes on, and keeps its token of the limiter until
    # it ends. So a cancelled request ends at once, and the threads stay bounded all the same.
    limiter = context.threads
    return await run_user_code(
        trio.to_thread.run_sync(call_in_thread, invoke, abandon_on_cancel=True, limiter=limiter)
    )


async def settle(invoke: Callable[[], Awaitable[Any]], context: Context | None) -> Any:
    """Run a handler, and repeat it while it returns `InputRequired` and the answers come.

    Returns:
        The last value of the handler; an `InputRequired` if the request was answered with it.
    """
    value = await invoke()
    while isinstance(value, InputRequired):
        if context is None:
            raise TypeError("a handler that returns InputRequired must take ctx, for the answers")
        # On 2026-07-28 the round ends here: the client comes back with a new request, and nothing
        # waits in the meantime.
        if not await context.retry(value):
            return value
        value = await invoke()
    return value


def answer_of(server: "Server", spec: ToolSpec | None, value: Any) -> ToolResult:
    """Convert the value of a handler into a result; a value that cannot be sent goes to the log.

    Args:
        server: The server with the log.
        spec: The tool; None for one that only an override of `call_tool` knows.
        value: The value.
    """
    if isinstance(value, InputRequired):
        return ToolResult()  # it is never sent: the request has its answer
    result, breach = to_result(spec, value)
    if breach is not None:
        source = "call_tool" if spec is None else spec.source
        text = "%s broke its contract: %s"
        # By source: each tool has its own share of the log, so that a noisy one hides no other.
        server.crash_log.entry(logging.ERROR, (text, source), text, source, breach)
    return result


def failure(server: "Server", source: str, error: BaseException) -> ToolResult:
    """Convert the exception of a handler into a result.

    Args:
        server: The server with the log.
        source: The place of the handler, for the log.
        error: The exception. One that is alone in the group of a nursery counts as raised without
            it. A client's refusal of a question becomes a result for the model.

    Raises:
        McpError: The handler raised it.
        InsufficientScope: The handler raised it.
    """
    # Before McpError, its base class: the handler did not choose to answer with this error, and a
    # model can go on without the answer.
    refusal = refusal_in(error)
    if refusal is not None:
        return ToolResult.error(refused(refusal))
    error = unwrap_single(error)
    if isinstance(error, McpError | InsufficientScope):
        raise error
    if isinstance(error, ToolError):
        try:
            return error_result(error)
        except BaseException as bad:  # its content is not valid content
            if not is_crash(bad):
                raise
            error = bad
    if isinstance(error, ConnectionClosed):
        # The connection ended while the handler asked. Nobody reads the answer, and a log entry
        # would report each client that leaves.
        return CRASHED
    if isinstance(error, RequestTimeout):
        return ToolResult.error(timed_out(error))
    server.crash_log.crash(source, "%s failed", source, error=error)
    return CRASHED


def ending_of(result: ToolResult) -> Ending | None:
    """Return how a call ended, for listeners, where the result alone does not tell."""
    if result is CRASHED:
        return "crashed"
    return "timed_out" if result is TIMED_OUT else None


def not_found(uri: str, version: str) -> McpError:
    """Make the error for an unknown resource.

    2026-07-28 forbids -32002 and answers -32602 (`server/resources`, "Error Handling").
    """
    code = INVALID_PARAMS if REVISIONS[version].stateless else RESOURCE_NOT_FOUND
    return McpError(code, "Resource not found", {"uri": uri})


async def read_registered(server: "Server", uri: str, context: Context) -> Any:
    """Read a registered resource within its timeout; see `read_found`.

    Raises:
        McpError: The time is over (-32603), or see `read_found`.
        InsufficientScope: See `read_found`.
    """
    found = server.registry.find_resource(uri)
    return await within(server, found and found[0], partial(read_found, uri, found, context))


async def within(
    server: "Server", spec: Timed | None, work: Callable[[], Awaitable[Result]]
) -> Result:
    """Read a resource or get a prompt within another request, with its own timeout.

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
    """Read a resource, given the result of the registry's search.

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
    # Variables are None for a plain resource only: a template without variables has an empty
    # mapping.
    arguments = (uri, context) if variables is None else (uri, variables, context)
    value = await invoke_handler(context, spec.mode, partial(spec.invoke, *arguments))
    if isinstance(value, InputRequired | ReadResult):
        return value
    return ReadResult(components.to_contents(spec.mime_type, uri, value))


async def read_any(
    server: "Server", uri: str, found: Found | None, context: Context
) -> ReadResult | InputRequired:
    """Read a resource with the server's `read_resource`, or from the registry.

    Returns:
        Its contents; or an `InputRequired` of the handler.

    Raises:
        McpError: There is no such resource.
        InsufficientScope: The caller may not read it.
    """
    if not server.overrides("read_resource"):
        return await read_found(uri, found, context)
    if found is not None:
        # An override replaces the reading, never the scopes that the registration requires.
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
    """Get a registered prompt within its timeout; see `get_found`.

    Raises:
        McpError: The time is over (-32603), or see `get_found`.
        InsufficientScope: See `get_found`.
    """
    spec = server.registry.find_prompt(name)
    return await within(server, spec, partial(get_found, spec, name, arguments, context))


async def get_found(
    spec: PromptSpec | None, name: str, arguments: Mapping[str, Any], context: Context
) -> PromptResult | InputRequired:
    """Get a prompt, given the result of the registry's search.

    Returns:
        The `PromptResult`; or an `InputRequired` of the handler.

    Raises:
        McpError: The prompt is unknown, or its arguments are invalid (-32602).
        InsufficientScope: The caller may not get it.
    """
    if spec is None:
        raise McpError(INVALID_PARAMS, f"Unknown prompt: {name}")
    demand(spec, context)
    # Raises -32602: unlike those of a tool, a person chose these arguments, and there is no result
    # that could carry the error (2025-11-25 `server/prompts`, "Error Handling").
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
    # A known argument without completions has none to offer: an empty list, not an error.
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
