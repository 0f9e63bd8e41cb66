"""`prompts/get` (`server/prompts`)."""

from collections.abc import Awaitable
from functools import partial
from typing import Any

from ... import components
from ..._errors import McpError
from ..._value import JSONObject
from ...engine import Job, run_user_code
from ...jsonrpc import INVALID_PARAMS
from ...protocol import adapt_block
from ...types import InputRequired
from .._server_request import ServerRequest
from ..calls._invoke import settle
from ..calls._registered import get_found
from ..policies._policy_set import is_guarded
from ._work import in_time


def get_prompt(ctx: ServerRequest) -> Job | None:
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
    if ctx.resume_rounds():
        return None
    spec = server.registry.find_prompt(name, ctx.context)

    def get() -> Awaitable[Any]:
        if server.registry.overrides("get_prompt"):
            return run_user_code(server.get_prompt(name, arguments or {}, ctx.context))
        return run_user_code(get_found(spec, name, arguments or {}, ctx.context))

    async def work() -> None:
        value = await settle(get, ctx)
        if not isinstance(value, InputRequired):
            ctx.complete(_write(ctx, components.to_prompt_result(spec, value).to_wire()))

    check = None
    known = spec is not None or server.registry.overrides("get_prompt")
    if known and (server.policies.chains or is_guarded(spec)):
        check = partial(ctx.running.admit, "prompt", name, arguments or {}, spec, ctx.context)
    return in_time(ctx, work, spec, check)


def _write(ctx: ServerRequest, result: JSONObject) -> JSONObject:
    # 2025-03-26 has no `resource_link` block: its clients may reject the whole message.
    if ctx.envelope.revision.resource_links:
        return result
    messages = [
        {**message, "content": adapt_block(message["content"])} for message in result["messages"]
    ]
    return {**result, "messages": messages}
