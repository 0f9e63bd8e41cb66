"""Calls of handlers: validate the arguments, invoke, and convert the value into a result."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ... import components, types
from ..._errors import (
    ConnectionClosed,
    InsufficientScope,
    McpError,
    NoSessionError,
    RequestTimeout,
    ResourceNotFound,
    ToolError,
)
from ..._value import JSONObject
from ...components import Context, ToolSpec, error_result, prepare, to_result
from ...engine import (
    Ending,
    QueueFull,
    TooManyAbandoned,
    call_user_code,
    is_crash,
    run_user_code,
    unwrap_single,
)
from ...jsonrpc import INTERNAL_ERROR
from ...types import Content, InputRequired, ToolResult
from ..registry._registry import FoundResource
from ._concurrency_limit import one_of
from ._result_size import bounded
from ._scope_checks import demand
from ._time_limit import OutOfTime, Timed, in_time
from ._unknown import not_found

if TYPE_CHECKING:
    from ...types import ReadResult
    from .._request_context import RequestContext
    from .._server import Server
    from .._server_context import ServerContext

Result = TypeVar("Result")

#: The result of a crashed handler. The details go to the log only: an exception text may hold
#: secrets, and a model may repeat it. Compared by identity: a tool may return an equal text.
CRASHED: Final = ToolResult(Content.text("Tool execution failed"), is_error=True)
#: The result of a call that ran out of time: a result, so that the model can go on without the
#: tool.
TIMED_OUT: Final = ToolResult(Content.text("Tool execution timed out"), is_error=True)
#: What a client learns of a handler that stores session state where there is no session.
NO_SESSION: Final = (
    "This needs a session, and protocol version 2026-07-28 has no sessions; it works for clients of"
    " earlier versions only"
)
_NO_SESSION: Final = ToolResult(Content.text(NO_SESSION), is_error=True)


#: The answer of a handler that has asked with `InputRequired`; the request was answered with that.
ASKED: Final = ToolResult()
#: The answer to a call of a tool. A text stands for the result that is this one block of text.
Answer = ToolResult | str


class ClientRefusal(McpError):
    """The error with which the client answered a question.

    Handlers may catch it as an `McpError`. A tool that does not catch it has not chosen to answer
    with a protocol error: the model gets a result instead, and can go on without the answer.

    Args:
        method: The method of the question.
        error: The error of the client.
    """

    def __init__(self, method: str, error: McpError) -> None:
        self.method = method
        super().__init__(error.code, error.message, error.data)


#: Errors that are meant for the client; their text is sent.
_CHOSEN: Final = (McpError, ToolError, InsufficientScope)


def read_arguments(
    server: "Server", spec: ToolSpec, arguments: Any, context: "RequestContext"
) -> tuple[Any, ToolResult | None]:
    """Turn the arguments of a call into the value that the handler takes.

    Args:
        server: The server with the log.
        spec: The tool.
        arguments: The arguments as sent.
        context: The request.

    Returns:
        The value and None; or None and the answer for the model, also where a validator of the
        author's has crashed.

    Raises:
        McpError: A validator raised it.
        InsufficientScope: A validator raised it.
    """
    try:
        return prepare(spec, arguments, context)
    except BaseException as error:
        if not is_crash(error):
            raise
        return None, failure(server, spec.source, error)


def run_inline(server: "Server", spec: ToolSpec, args: Any, context: Context | None) -> Answer:
    """Run a short sync handler in the calling task.

    Raises:
        McpError: The handler raised it.
        InsufficientScope: The handler raised it.
    """
    try:
        # The conversion is inside as well: it reads objects of the author's, which may raise.
        answer = call_user_code(
            lambda: answer_of(server, spec, _unasked(spec.invoke(args, context)))
        )
        return _within_size(server, spec, answer)
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(server, spec.source, error)


def _unasked(value: Any) -> Any:
    if isinstance(value, InputRequired):
        # On a pipe an inline handler runs in the message loop: waiting would stop all requests.
        raise TypeError("an inline handler cannot ask: it must not wait")
    return value


async def run(server: "Server", spec: ToolSpec, args: Any, context: Context) -> Answer:
    """Run a handler: an async one here, a sync one in a thread.

    Returns:
        The answer; `CRASHED` for a handler that raised an unexpected exception.

    Raises:
        McpError: The handler raised it.
        InsufficientScope: The handler raised it.
    """
    invoke = partial(
        invoke_handler, context, spec.mode, spec.source, partial(spec.invoke, args, context)
    )
    # A handler without ctx could not read the answers of the next round.
    asking = context if spec.takes_context else None
    try:
        # Looked at before a context manager is made: most tools have no limit, and this is the path
        # of every call.
        if spec.max_concurrency is None:
            return _within_size(server, spec, answer_of(server, spec, await settle(invoke, asking)))
        slots = server.registry.slots(spec, server.options.limits.call_queue)
        async with one_of(slots.of(cast("ServerContext", context).envelope.origin.client)):
            return _within_size(server, spec, answer_of(server, spec, await settle(invoke, asking)))
    except QueueFull:
        return ToolResult.error(f"{spec.name} is busy: too many calls wait for it; try again later")
    except TooManyAbandoned as error:
        return ToolResult.error(str(error))
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(server, spec.source, error)


def _within_size(server: "Server", spec: ToolSpec | None, answer: Answer) -> Answer:
    most = None if spec is None else spec.max_result_bytes
    if most is None:
        most = server.options.max_result_bytes
    return answer if most is None else bounded(spec, most, answer)


async def run_override(
    server: "Server",
    spec: ToolSpec | None,
    name: str,
    arguments: JSONObject,
    context: Context,
) -> Answer:
    """Run the server's own `call_tool`; its value counts as a handler's.

    Args:
        server: The server.
        spec: The tool; None for one that only the override knows.
        name: The name of the tool.
        arguments: The unchecked arguments.
        context: The request.

    Returns:
        The answer; see `run`.

    Raises:
        McpError: The override raised it.
    """

    def invoke() -> Awaitable[Any]:
        return run_user_code(server.call_tool(name, arguments, context))

    try:
        return _within_size(server, spec, answer_of(server, spec, await settle(invoke, context)))
    except BaseException as error:
        if not is_crash(error):
            raise
        return failure(server, f"call_tool of {server!r}", error)


def invoke_handler(
    context: Context, mode: str, source: str, invoke: Callable[[], Any]
) -> Awaitable[Any]:
    """Call a handler: async and inline ones here, others in a thread.

    Args:
        context: The request.
        mode: `async`, `inline` or `thread`.
        source: Names the handler.
        invoke: Calls it.

    Raises:
        TooManyAbandoned: Too many of its threads have not ended.
    """
    # Not a coroutine function: each call of a tool would make one coroutine more.
    if mode == "async":
        return run_user_code(invoke())
    if mode == "inline":
        return _call_inline(invoke)
    # A thread cannot be stopped: an abandoned one goes on, and keeps its token of the limiter until
    # it ends. So a cancelled request ends at once, and the threads stay bounded all the same.
    return run_user_code(context.server.abandoned.run(source, invoke, context.threads))


async def _call_inline(invoke: Callable[[], Any]) -> Any:
    return call_user_code(invoke)


async def settle(invoke: Callable[[], Awaitable[Any]], context: Context | None) -> Any:
    """Run a handler, and repeat it while it returns `InputRequired` and the answers come.

    Returns:
        The last value of the handler; an `InputRequired` if the request was answered with it.
    """
    try:
        value = await invoke()
    finally:
        # It may have ended without the answers to its questions, while no request is in flight.
        if context is not None and cast("RequestContext", context).parked:
            await cast("RequestContext", context).stay_open()
    while isinstance(value, InputRequired):
        if context is None:
            raise TypeError("a handler that returns InputRequired must take ctx, for the answers")
        # On 2026-07-28 the round ends here: the client comes back with a new request, and nothing
        # waits in the meantime.
        if not await cast("ServerContext", context).retry(value):
            return value
        value = await invoke()
    return value


def answer_of(server: "Server", spec: ToolSpec | None, value: Any) -> Answer:
    """Convert the value of a handler into an answer; a value that cannot be sent goes to the log.

    Args:
        server: The server with the log.
        spec: The tool; None for one that only an override of `call_tool` knows.
        value: The value.
    """
    # Most answers. Not of a subclass, which may be an enumeration: those have forms of their own.
    if value.__class__ is str and (spec is None or spec.output is None):
        text: str = value
        return text
    if isinstance(value, InputRequired):
        return ASKED  # it is never sent
    result, breach = to_result(spec, value)
    if breach is not None:
        source = "call_tool" if spec is None else spec.source
        text = "%s broke its contract: %s"
        # By source: each tool has its own share of the log, so that a noisy one hides no other.
        server.crash_log.entry(logging.ERROR, (text, source), text, source, breach)
    return result


def as_result(answer: Answer) -> ToolResult:
    """Convert an answer into the result that it stands for."""
    return ToolResult(answer) if isinstance(answer, str) else answer


def failure(server: "Server", source: str, error: BaseException) -> ToolResult:
    """Convert the exception of a handler into a result.

    Args:
        server: The server with the log.
        source: The place of the handler, for the log.
        error: The exception; see `chosen_error` for a group. A client's refusal of a question
            becomes a result for the model.

    Raises:
        McpError: The handler raised it.
        InsufficientScope: The handler raised it.
    """
    error = chosen_error(error)
    # Before McpError, its base class: the handler did not choose to answer with this error, and a
    # model can go on without the answer.
    if isinstance(error, ClientRefusal):
        text = f"The client refused {error.method}: {error.message} ({error.code})"
        return ToolResult.error(text)
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
    if isinstance(error, NoSessionError):
        log_no_session(server, source, error)
        return _NO_SESSION
    server.crash_log.crash(source, "%s failed", source, error=error)
    return CRASHED


def log_no_session(server: "Server", source: str, error: NoSessionError) -> None:
    """Log, without a traceback, what the author of a handler should write."""
    text = "%s cannot keep session state: %s"
    server.crash_log.entry(logging.ERROR, (text, source), text, source, error)


def chosen_error(error: BaseException) -> BaseException:
    """Take the error to answer with out of the groups that nurseries put around it.

    Concurrent questions are often refused together: if all exceptions of a group are meant for the
    client, one stands for the group, an error of the author before a refusal. Any other failure
    must not hide behind them, so a group with one stays a group.
    """
    if isinstance(error, BaseExceptionGroup) and error.split(_CHOSEN)[1] is None:
        error = error.split(ClientRefusal)[1] or error
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
    return unwrap_single(error)


def timed_out(error: Exception) -> str:
    """Make the text for a model: the client did not answer in time."""
    return f"The client did not answer in time: {error}"


def ending_of(result: ToolResult) -> Ending | None:
    """Return how a call ended, for listeners, where the result alone does not tell."""
    if result is CRASHED or result is _NO_SESSION:
        return "crashed"
    return "timed_out" if result is TIMED_OUT else None


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


async def read_found(
    uri: str, found: FoundResource | None, context: Context
) -> "ReadResult | InputRequired":
    """Read a resource, given the result of the registry's search.

    Returns:
        The `ReadResult`; or an `InputRequired` of the handler.

    Raises:
        McpError: There is no such resource.
        InsufficientScope: The caller may not read it.
    """
    if found is None:
        raise not_found(uri, context)
    spec, variables = found
    demand(spec, context)
    # Variables are None for a plain resource only: a template without variables has an empty
    # mapping.
    arguments = (uri, context) if variables is None else (uri, variables, context)
    value = await invoke_handler(context, spec.mode, spec.source, partial(spec.invoke, *arguments))
    if isinstance(value, InputRequired | types.ReadResult):
        return value
    return types.ReadResult(components.to_contents(spec.mime_type, uri, value))


async def read_any(
    server: "Server", uri: str, found: FoundResource | None, context: Context
) -> "ReadResult | InputRequired":
    """Read a resource with the server's `read_resource`, or from the registry.

    Returns:
        Its contents; or an `InputRequired` of the handler.

    Raises:
        McpError: There is no such resource.
        InsufficientScope: The caller may not read it.
    """
    try:
        if not server.registry.overrides("read_resource"):
            return await read_found(uri, found, context)
        if found is not None:
            # An override replaces the reading, never the scopes that the registration requires.
            demand(found[0], context)
        value = await run_user_code(server.read_resource(uri, context))
    except ResourceNotFound as error:
        raise not_found(error.uri or uri, context) from None
    if isinstance(value, InputRequired | types.ReadResult):
        return value
    return types.ReadResult(
        components.to_contents(None if found is None else found[0].mime_type, uri, value)
    )
