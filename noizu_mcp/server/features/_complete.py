"""`completion/complete` (`server/utilities/completion`)."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import components, types
from ..._errors import McpError, ProtocolError
from ..._value import JSONMapping
from ...engine import Job, run_user_code
from ...jsonrpc import INVALID_PARAMS
from .._server_request import ServerRequest
from ._work import in_time

if TYPE_CHECKING:
    pass


def complete(ctx: ServerRequest) -> Job | None:
    """Answer `completion/complete`.

    Raises:
        McpError: The reference or the argument is malformed or unknown (-32602).
    """
    server = ctx.running.server
    params: JSONMapping = ctx.request.params or {}
    name, prefix = _argument(params)
    try:
        reference = types.Reference.from_wire(params.get("ref"), "ref")
    except ProtocolError:
        raise McpError(INVALID_PARAMS, "completion/complete requires a valid ref") from None

    async def work() -> None:
        value = await run_user_code(server.complete(reference, name, prefix, ctx.context))
        ctx.complete(components.to_completion(value).to_wire())

    check = None
    if server.policies.chains and server.registry.overrides("complete"):
        # The override may know targets that are not registered.
        target = reference.name or reference.uri or ""
        collection: Any = server.registry.prompts if reference.name else server.registry.templates
        arguments = {"argument": name, "value": prefix}
        spec = collection.find(target, ctx.context)
        check = partial(ctx.running.admit, "completion", target, arguments, spec, ctx.context)
    return in_time(ctx, work, None, check)


def _argument(params: JSONMapping) -> tuple[str, str]:
    argument = params.get("argument")
    if isinstance(argument, Mapping):
        name, value = argument.get("name"), argument.get("value")
        if isinstance(name, str) and isinstance(value, str):
            return name, value
    raise McpError(INVALID_PARAMS, "completion/complete requires argument name and value")
