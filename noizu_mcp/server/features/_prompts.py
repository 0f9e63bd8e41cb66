"""`prompts/list` and `prompts/get` (`server/prompts`)."""

from collections.abc import Awaitable
from typing import Any

from ... import components
from ..._errors import McpError
from ...engine import Job, run_user_code
from ...jsonrpc import INVALID_PARAMS
from ...protocol import adapt_block
from ...types import InputRequired
from .._request_context import RequestContext
from ..calls._invoke import get_found, settle
from ._lists import list_page


def list_prompts(ctx: RequestContext) -> Job | None:
    """Answer `prompts/list`.

    Raises:
        McpError: The cursor is invalid (-32602).
    """
    server = ctx.running.server
    ask = server.list_prompts if server.overrides("list_prompts") else None
    return list_page(ctx, server.registry.prompts, "prompts", ask)


def get_prompt(ctx: RequestContext) -> Job | None:
    """Answer `prompts/get`.

    Raises:
        McpError: The request is malformed, or its state is not valid for it (-32602).
    """
    server = ctx.running.server
    params = ctx.request.params or {}
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise McpError(INVALID_PARAMS, "prompts/get requires a prompt name")
    if not isinstance(arguments, dict | None):
        raise McpError(INVALID_PARAMS, "arguments of prompts/get must be an object")
    # Before any work: a request with an invalid state must not reach the author's code.
    ctx.take_up_rounds()
    spec = server.registry.find_prompt(name)

    def get() -> Awaitable[Any]:
        if server.overrides("get_prompt"):
            return run_user_code(server.get_prompt(name, arguments or {}, ctx))
        return run_user_code(get_found(spec, name, arguments or {}, ctx))

    async def work() -> None:
        value = await settle(get, ctx)
        if not isinstance(value, InputRequired):
            ctx.complete(_write(ctx, components.to_prompt_result(spec, value).to_wire()))

    return ctx.in_time(work, spec)


def _write(ctx: RequestContext, result: dict[str, Any]) -> dict[str, Any]:
    # 2025-03-26 has no `resource_link` block: its clients may refuse the whole message.
    if ctx.envelope.revision.resource_links:
        return result
    messages = [
        {**message, "content": adapt_block(message["content"])} for message in result["messages"]
    ]
    return {**result, "messages": messages}
