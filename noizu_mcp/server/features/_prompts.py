"""`prompts/list` and `prompts/get` (`server/prompts`)."""

from functools import partial
from typing import Any

from ..._errors import McpError
from ...components import to_prompt_result
from ...engine import Exchange, Job
from ...jsonrpc import INVALID_PARAMS
from ...protocol import adapt_block
from ...types import InputRequired
from .._calls import invoke_handler, settle
from .._connection import Connection
from ._lists import list_computed, list_shelf


def list_prompts(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `prompts/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = connection.server
    shelf = server.registry.prompt_shelf
    if not server.offers("prompts"):
        connection.refuse(exchange)
        return None
    if server.overrides("list_prompts"):
        return list_computed(connection, exchange, shelf, "prompts", server.list_prompts)
    return list_shelf(connection, exchange, shelf, "prompts")


def get_prompt(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `prompts/get`.

    Raises:
        McpError: There is no such prompt, or an argument is missing (-32602).
    """
    server = connection.server
    if not server.offers("prompts"):
        connection.refuse(exchange)
        return None
    params = exchange.request.params or {}
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise McpError(INVALID_PARAMS, "prompts/get requires a prompt name")
    if not isinstance(arguments, dict | None):
        raise McpError(INVALID_PARAMS, "arguments of prompts/get must be an object")
    context = connection.context_of_round(exchange)
    if server.overrides("get_prompt"):
        invoke = partial(server.get_prompt, name, arguments or {}, context)
        spec = server.registry.find_prompt(name)
    else:
        spec = server.registry.find_prompt(name)
        if spec is None:
            raise McpError(INVALID_PARAMS, f"Unknown prompt: {name}")
        args = spec.prepare(arguments or {})
        invoke = partial(
            invoke_handler, server, spec.mode, partial(spec.invoke, args, context)
        )

    async def work() -> None:
        value = await settle(invoke, context)
        if not isinstance(value, InputRequired):
            connection.reply(exchange, _write(exchange, to_prompt_result(spec, value).to_wire()))

    return connection.in_background(exchange, work, spec)


def _write(exchange: Exchange, result: dict[str, Any]) -> dict[str, Any]:
    if exchange.envelope.revision.resource_links:
        return result
    messages = [
        {**message, "content": adapt_block(message["content"])} for message in result["messages"]
    ]
    return {**result, "messages": messages}
