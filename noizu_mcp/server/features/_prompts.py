"""`prompts/get` (`server/prompts`)."""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import components
from ..._errors import McpError
from ..._value import JSONObject
from ...components import PromptSpec
from ...engine import Job, run_user_code
from ...jsonrpc import INVALID_PARAMS
from ...protocol import adapt_block
from ...types import InputRequired
from .._server_context import ServerContext
from .._server_request import ServerRequest
from ..calls._invoke import invoke_handler, settle, within
from ..calls._scope_checks import check_scopes
from ..calls._unknown import unknown
from ..policies._policy_set import is_guarded

if TYPE_CHECKING:
    from ...types import PromptResult
    from .._server import Server


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
    if ctx.take_up_rounds():
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
    return ctx.in_time(work, spec, check)


def _write(ctx: ServerRequest, result: JSONObject) -> JSONObject:
    # 2025-03-26 has no `resource_link` block: its clients may reject the whole message.
    if ctx.envelope.revision.resource_links:
        return result
    messages = [
        {**message, "content": adapt_block(message["content"])} for message in result["messages"]
    ]
    return {**result, "messages": messages}


async def get_registered(
    server: "Server", name: str, arguments: Mapping[str, Any], context: ServerContext
) -> Any:
    """Get a registered prompt with its timeout; see `get_found`.

    Raises:
        McpError: The call timed out (-32603), or see `get_found`.
        InsufficientScope: See `get_found`.
    """
    await server.registry.prepare(context, "prompts", name)
    spec = server.registry.find_prompt(name, context)
    if spec is not None and (server.policies.chains or is_guarded(spec)):
        from ..calls._policy_checks import admit_again

        check_scopes(spec, context)
        await admit_again("prompt", name, arguments, spec, context)
    return await within(server, spec, partial(get_found, spec, name, arguments, context))


async def get_found(
    spec: PromptSpec | None, name: str, arguments: Mapping[str, Any], context: ServerContext
) -> "PromptResult | InputRequired":
    """Get a prompt, given the result of the registry's search.

    Returns:
        The `PromptResult`; or an `InputRequired` of the handler.

    Raises:
        McpError: The prompt is unknown, or its arguments are invalid (-32602).
        InsufficientScope: The caller lacks a scope.
    """
    if spec is None:
        raise unknown(context.server.registry.prompts, name, context)
    check_scopes(spec, context)
    # Raises -32602: unlike the arguments of a tool, these were chosen by a person, and there is no
    # result that could carry the error (2025-11-25 `server/prompts`, "Error Handling").
    args = spec.prepare(arguments)
    value = await invoke_handler(
        context, spec.mode, spec.source, partial(spec.invoke, args, context)
    )
    return value if isinstance(value, InputRequired) else components.to_prompt_result(spec, value)
