"""`prompts/list` and `prompts/get` (`server/prompts`)."""

from collections.abc import Awaitable
from typing import Any

from ..._errors import McpError
from ...components import to_prompt_result
from ...engine import Exchange, Job
from ...jsonrpc import INVALID_PARAMS
from ...protocol import adapt_block
from ...types import InputRequired
from .._authored import authored
from .._calls import get_found, settle
from .._connection import Connection
from ._lists import list_page


def list_prompts(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `prompts/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = connection.server
    ask = server.list_prompts if server.overrides("list_prompts") else None
    return list_page(connection, exchange, server.registry.prompt_shelf, "prompts", ask)


def get_prompt(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `prompts/get`.

    Raises:
        McpError: It is no such request, or its state is not good for it (-32602).
    """
    server = connection.server
    params = exchange.request.params or {}
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise McpError(INVALID_PARAMS, "prompts/get requires a prompt name")
    if not isinstance(arguments, dict | None):
        raise McpError(INVALID_PARAMS, "arguments of prompts/get must be an object")
    context = connection.context_of_round(exchange)
    spec = server.registry.find_prompt(name)

    def get() -> Awaitable[Any]:
        if server.overrides("get_prompt"):
            return authored(server.get_prompt(name, arguments or {}, context))
        return authored(get_found(spec, name, arguments or {}, context))

    async def work() -> None:
        value = await settle(get, context)
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
