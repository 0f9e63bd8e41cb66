"""Calls of handlers, and the conversion of their failures."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

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
from ..._util import Returned
from ...components import error_result
from ...engine import (
    Ending,
    call_user_code,
    is_crash,
    run_user_code,
    unwrap_single,
)
from ...jsonrpc import INTERNAL_ERROR
from ...types import Content, InputRequired, ToolResult
from ..registry._registry import FoundResource
from ..threads._fair_limiter import ClientShare
from ._scope_checks import check_scopes
from ._time_limit import OutOfTime, Timed, in_time
from ._unknown import not_found

if TYPE_CHECKING:
    from ...types import ReadResult
    from .._contracts import HandledRequest, ServedServer
    from .._server_context import ServerContext


#: The result of a crashed handler. Details are logged only: an exception text may contain secrets,
#: and a model may repeat it. Compared by identity: a tool may return an equal text.
CRASHED: Final = ToolResult(Content.text("Tool execution failed"), is_error=True)
#: The result of a call that timed out: a result, so that the model can go on without the tool.
TIMED_OUT: Final = ToolResult(Content.text("Tool execution timed out"), is_error=True)
#: Sent if a handler stores session state and there is no session.
NO_SESSION: Final = (
    "This needs a session, and protocol version 2026-07-28 has no sessions; it works for clients of"
    " earlier versions only"
)
_NO_SESSION: Final = ToolResult(Content.text(NO_SESSION), is_error=True)


#: The answer of a handler that returned `InputRequired`. The request is answered already.
ASKED: Final = ToolResult()


class ClientRefusal(McpError):
    """The error with which the client answered a question.

    Handlers may catch it as an `McpError`. If a tool does not catch it, the author did not choose
    to answer with a protocol error: the model gets a result instead, and can go on without the
    answer.

    Args:
        method: The method of the question.
        error: The error of the client.
    """

    def __init__(self, method: str, error: McpError) -> None:
        self.method = method
        super().__init__(error.code, error.message, error.data)


#: Errors that are meant for the client. Their text is sent.
_CHOSEN: Final = (McpError, ToolError, InsufficientScope)


class Caller(Protocol):
    """A call of a handler, as `invoke_handler` uses it."""

    @property
    def server(self) -> "ServedServer":
        """The server."""

    @property
    def threads(self) -> ClientShare:
        """The threads of sync handlers."""


def invoke_handler(
    caller: Caller, mode: str, source: str, invoke: Callable[[], Any]
) -> Awaitable[Any]:
    """Call a handler: async and inline handlers in this task, others in a thread.

    Args:
        caller: The call, or its context.
        mode: `async`, `inline` or `thread`.
        source: Names the handler.
        invoke: Calls it.

    Raises:
        TooManyAbandoned: Too many of its abandoned threads still run.
    """
    # Not a coroutine function, which would make one more coroutine for each call.
    if mode == "async":
        return run_user_code(invoke())
    if mode == "inline":
        return _call_inline(invoke)
    # A thread cannot be stopped: an abandoned thread goes on, and keeps its token of the limiter
    # until it ends. So a cancelled request ends at once, and the number of threads stays bounded.
    return run_user_code(caller.server.abandoned.run(source, invoke, caller.threads))


async def _call_inline(invoke: Callable[[], Any]) -> Any:
    return call_user_code(invoke)


async def settle(invoke: Callable[[], Awaitable[Any]], request: "HandledRequest | None") -> Any:
    """Run a handler, and run it again while it returns `InputRequired` and gets answers.

    Args:
        invoke: Calls the handler.
        request: The request or task; None for a handler that takes no context.

    Returns:
        The last value of the handler; an `InputRequired` if the request was answered with it.
    """
    try:
        value = await invoke()
    finally:
        # The handler may have ended without its answers, while no request is in flight.
        if request is not None and request.asker is not None:
            await request.asker.stay_open()
    while isinstance(value, InputRequired):
        if request is None:
            raise TypeError("a handler that returns InputRequired must take ctx, for the answers")
        # On 2026-07-28 the round ends here: the client sends a new request, and nothing waits in
        # the meantime.
        if not await request.retry(value):
            return value
        value = await invoke()
    return value


def failure(server: "ServedServer", source: str, error: BaseException) -> ToolResult:
    """Convert the exception of a handler into a result.

    Args:
        server: The server, for its log.
        source: Names the handler in the log.
        error: The exception; see `chosen_error` for groups. If the client refused a question, the
            result tells the model.

    Raises:
        McpError: The handler raised it.
        InsufficientScope: The handler raised it.
    """
    error = chosen_error(error)
    # Before McpError, its base class: the handler did not choose this error as the answer, and a
    # model can go on without the answer.
    if isinstance(error, ClientRefusal):
        text = f"The client refused {error.method}: {error.message} ({error.code})"
        return ToolResult.error(text)
    if isinstance(error, McpError | InsufficientScope):
        raise error
    if isinstance(error, ToolError):
        try:
            return error_result(error)
        except BaseException as bad:  # its content is not valid
            if not is_crash(bad):
                raise
            error = bad
    if isinstance(error, ConnectionClosed):
        # The connection ended while the handler asked. The answer is not read, and a log entry
        # would be written for each client that leaves.
        return CRASHED
    if isinstance(error, RequestTimeout):
        return ToolResult.error(timed_out(error))
    if isinstance(error, NoSessionError):
        log_no_session(server, source, error)
        return _NO_SESSION
    server.crash_log.crash(source, "%s failed", source, error=error)
    return CRASHED


def log_no_session(server: "ServedServer", source: str, error: NoSessionError) -> None:
    """Log, without a traceback, how the author can fix the handler."""
    text = "%s cannot keep session state: %s"
    server.crash_log.entry(logging.ERROR, (text, source), text, source, error)


def chosen_error(error: BaseException) -> BaseException:
    """Unwrap the error to answer with from the exception groups of nurseries.

    Concurrent questions are often refused together. If all exceptions of a group are meant for the
    client, one of them is the answer, an error of the author before a refusal. A group with any
    other exception stays a group, so that the failure is not hidden.
    """
    if isinstance(error, BaseExceptionGroup) and error.split(_CHOSEN)[1] is None:
        error = error.split(ClientRefusal)[1] or error
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
    return unwrap_single(error)


def timed_out(error: Exception) -> str:
    """Make the text for a model after the client did not answer in time."""
    return f"The client did not answer in time: {error}"


def ending_of(result: ToolResult) -> Ending | None:
    """Return how a call ended, for listeners; None if the result alone shows it."""
    if result is CRASHED or result is _NO_SESSION:
        return "crashed"
    return "timed_out" if result is TIMED_OUT else None


async def within(
    server: "ServedServer", spec: Timed | None, work: Callable[[], Awaitable[Returned]]
) -> Returned:
    """Read a resource or get a prompt within another request, with a separate timeout.

    Args:
        server: The server.
        spec: The component; None if it is not registered.
        work: The work.

    Raises:
        McpError: The call timed out (-32603).
    """
    if spec is None:
        return await work()
    try:
        return await in_time(server, spec, work)
    except OutOfTime:
        raise McpError(INTERNAL_ERROR, "Request timed out") from None


async def read_found(
    uri: str, found: FoundResource | None, context: "ServerContext"
) -> "ReadResult | InputRequired":
    """Read a resource, given the result of the registry's search.

    Returns:
        The `ReadResult`; or an `InputRequired` of the handler.

    Raises:
        McpError: There is no such resource.
        InsufficientScope: The caller lacks a scope.
    """
    if found is None:
        raise not_found(uri, context)
    spec, variables = found
    check_scopes(spec, context)
    # Variables are None for a plain resource only. A template without variables has an empty
    # mapping.
    arguments = (uri, context) if variables is None else (uri, variables, context)
    value = await invoke_handler(context, spec.mode, spec.source, partial(spec.invoke, *arguments))
    if isinstance(value, InputRequired | types.ReadResult):
        return value
    return types.ReadResult(components.to_contents(spec.mime_type, uri, value))


async def read_any(
    server: "ServedServer", uri: str, found: FoundResource | None, context: "ServerContext"
) -> "ReadResult | InputRequired":
    """Read a resource with the server's `read_resource`, or from the registry.

    Returns:
        Its contents; or an `InputRequired` of the handler.

    Raises:
        McpError: There is no such resource.
        InsufficientScope: The caller lacks a scope.
    """
    try:
        if not server.registry.overrides("read_resource"):
            return await read_found(uri, found, context)
        if found is not None:
            # An override replaces the reading, but not the scopes that the registration requires.
            check_scopes(found[0], context)
        value = await run_user_code(server.read_resource(uri, context))
    except ResourceNotFound as error:
        raise not_found(error.uri or uri, context) from None
    if isinstance(value, InputRequired | types.ReadResult):
        return value
    return types.ReadResult(
        components.to_contents(None if found is None else found[0].mime_type, uri, value)
    )
