"""`tools/list` and `tools/call` (`server/tools`)."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import trio

from ..._errors import InsufficientScope, McpError
from ..._util import UNSET
from ...components import Context, ToolSpec, prepare
from ...engine import Exchange, Job
from ...jsonrpc import HEADER_MISMATCH, INVALID_PARAMS
from ...protocol import Mirrored, adapt_tool_result, param_fault
from ...types import ToolResult
from .._call import BeginTask
from .._calls import fate_of, find, run, run_inline, run_override
from .._connection import Connection
from .._task_calls import Opening
from ._lists import list_page


def list_tools(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `tools/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = connection.server
    ask = server.list_tools if server.overrides("list_tools") else None
    return list_page(connection, exchange, server.registry.tool_shelf, "tools", ask)


def call_tool(connection: Connection, exchange: Exchange) -> Job | None:
    """Find the tool, check the arguments, and begin the call.

    Bad arguments are answered with a result that the model can act on (2025-11-25
    `server/tools`, "Error Handling"); an unknown tool and a malformed request with an error.

    Raises:
        McpError: No such tool, or no call of one (-32602).
    """
    server = connection.server
    name, arguments = _read(exchange.request.params or {})
    if server.overrides("call_tool"):
        return _call_override(connection, exchange, name, arguments)
    spec = find(server, name)
    _check_headers(spec, arguments, exchange.envelope.origin.headers)
    args, refusal = prepare(spec, arguments)
    if refusal is not None:
        _reply(connection, exchange, spec, refusal)
        return None
    if spec.mode == "inline":
        context = connection.context_of_round(exchange)
        _reply(connection, exchange, spec, run_inline(server, spec, args, context))
        return None
    if spec.task is None:
        return _run_in_request(connection, exchange, spec, args)
    in_request = partial(_run_in_request, connection, exchange, spec, args)
    return _run_in_task(connection, exchange, spec, partial(run, server, spec, args), in_request)


def _run_in_request(
    connection: Connection,
    exchange: Exchange,
    spec: ToolSpec,
    args: Any,
    begin_task: BeginTask | None = None,
) -> Job:
    server = connection.server
    context = connection.context_of_round(exchange, begin_task)
    timeout = server.options.tool_timeout if spec.timeout is UNSET else spec.timeout
    if timeout is not None:
        exchange.deadline = trio.current_time() + timeout

    async def call() -> None:
        try:
            _reply(connection, exchange, spec, await run(server, spec, args, context))
        except (McpError, InsufficientScope) as error:
            connection.crash(exchange, error)

    return call


def _run_in_task(
    connection: Connection,
    exchange: Exchange,
    spec: ToolSpec,
    work: Callable[[Context], Awaitable[ToolResult]],
    in_request: Callable[[BeginTask | None], Job],
) -> Job | None:
    """Let a call go on as a task; where that is not to be, or not yet, in its request."""
    opening = Opening(connection, exchange, spec, work)
    if opening.enter():
        return None
    return opening.leaving(in_request(opening.begin_task))


def _check_headers(spec: ToolSpec, arguments: Mapping[str, Any], headers: Mirrored | None) -> None:
    """Refuse a call whose `Mcp-Param-*` headers say something else (2026-07-28 `server/tools`)."""
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


def _reply(
    connection: Connection, exchange: Exchange, spec: ToolSpec | None, result: ToolResult
) -> None:
    fate = fate_of(result)
    if fate is not None:
        exchange.mark(fate)
    wire = result.to_wire()
    revision = exchange.envelope.revision
    if revision.structured != "any":
        schema = spec.output.schema if spec is not None and spec.output is not None else None
        wire = adapt_tool_result(wire, schema, revision)
    connection.reply(exchange, wire)


def _call_override(
    connection: Connection, exchange: Exchange, name: str, arguments: dict[str, Any]
) -> Job | None:
    """Let the server's own `call_tool` answer, with all that a registered tool demands.

    It answers in the time of the tool, and in a task if the tool has one.

    Raises:
        McpError: A header says something else than the arguments.
    """
    server = connection.server
    spec = server.registry.find(name)
    if spec is not None:
        _check_headers(spec, arguments, exchange.envelope.origin.headers)
    work = partial(run_override, server, spec, name, arguments)

    def in_request(begin_task: BeginTask | None) -> Job:
        context = connection.context_of_round(exchange, begin_task)

        async def ask() -> None:
            _reply(connection, exchange, spec, await work(context))

        return connection.in_background(exchange, ask, spec)

    if spec is None or spec.task is None:
        return in_request(None)
    return _run_in_task(connection, exchange, spec, work, in_request)
