"""`prompts/list` and `prompts/get` (`server/prompts`)."""

from functools import partial
from typing import Any

from ..._errors import McpError
from ...components import to_prompt_result
from ...engine import Exchange, Job
from ...jsonrpc import INVALID_PARAMS
from ...protocol import adapt_block
from ...types import InputRequired
from .._calls import settle
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
    list_shelf(connection, exchange, shelf, "prompts")
    return None


def get_prompt(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `prompts/get`.

    Raises:
        McpError: It is no such request, or its state is not good for it (-32602).
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
    spec = server.registry.find_prompt(name)

    async def work() -> None:
        value = await settle(partial(server.get_prompt, name, arguments or {}, context), context)
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
