"""`completion/complete` (`server/utilities/completion`)."""

from collections.abc import Mapping
from typing import Any

from ... import components
from ..._errors import McpError, ProtocolError
from ...engine import Job, run_user_code
from ...jsonrpc import INVALID_PARAMS
from ...types import Reference
from .._request_context import RequestContext


def complete(ctx: RequestContext) -> Job | None:
    """Answer `completion/complete`.

    Raises:
        McpError: The reference or the argument is malformed or unknown (-32602).
    """
    server = ctx.running.server
    params: Mapping[str, Any] = ctx.request.params or {}
    name, prefix = _argument(params)
    # On the context: an override of `complete` has no parameter for them.
    ctx.completion_arguments = _filled_in(params)
    try:
        reference = Reference.from_wire(params.get("ref"), "ref")
    except ProtocolError:
        raise McpError(INVALID_PARAMS, "completion/complete requires a valid ref") from None

    async def work() -> None:
        value = await run_user_code(server.complete(reference, name, prefix, ctx))
        ctx.complete(components.to_completion(value).to_wire())

    return ctx.in_time(work)


def _argument(params: Mapping[str, Any]) -> tuple[str, str]:
    argument = params.get("argument")
    if isinstance(argument, Mapping):
        name, value = argument.get("name"), argument.get("value")
        if isinstance(name, str) and isinstance(value, str):
            return name, value
    raise McpError(INVALID_PARAMS, "completion/complete requires argument name and value")


def _filled_in(params: Mapping[str, Any]) -> Mapping[str, str]:
    context = params.get("context")
    arguments = context.get("arguments") if isinstance(context, Mapping) else None
    if not isinstance(arguments, Mapping):
        return {}
    # `context` exists since 2025-06-18 and is optional: a malformed entry is left out, and the
    # completion is merely less precise.
    return {name: value for name, value in arguments.items() if isinstance(value, str)}
