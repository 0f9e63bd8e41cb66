"""`completion/complete` (`server/utilities/completion`)."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import components, types
from ..._errors import McpError, ProtocolError
from ...components import PromptSpec, TemplateSpec
from ...engine import Job, run_user_code
from ...jsonrpc import INVALID_PARAMS
from .._server_context import ServerContext
from .._server_request import ServerRequest
from ..calls._invoke import invoke_handler
from ..calls._scope_checks import check_scopes
from ..calls._unknown import unknown, unknown_template, unknown_word
from ..policies._policy_set import is_guarded

if TYPE_CHECKING:
    from ...types import Completion, Reference
    from .._server import Server


def complete(ctx: ServerRequest) -> Job | None:
    """Answer `completion/complete`.

    Raises:
        McpError: The reference or the argument is malformed or unknown (-32602).
    """
    server = ctx.running.server
    params: Mapping[str, Any] = ctx.request.params or {}
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
    return ctx.in_time(work, None, check)


def _argument(params: Mapping[str, Any]) -> tuple[str, str]:
    argument = params.get("argument")
    if isinstance(argument, Mapping):
        name, value = argument.get("name"), argument.get("value")
        if isinstance(name, str) and isinstance(value, str):
            return name, value
    raise McpError(INVALID_PARAMS, "completion/complete requires argument name and value")


async def complete_registered(
    server: "Server",
    reference: "Reference",
    name: str,
    prefix: str,
    context: ServerContext,
) -> "Completion":
    """Complete an argument of a registered prompt or template.

    Raises:
        McpError: There is no such prompt, template, argument or variable (-32602).
        InsufficientScope: The caller lacks a scope.
    """
    spec = _component_of(server, reference, context)
    if server.policies.chains or is_guarded(spec):
        from ..calls._policy_checks import admit_again

        target = reference.name or reference.uri or ""
        arguments = {"argument": name, "value": prefix}
        await admit_again("completion", target, arguments, spec, context)
    source = _completed_from(spec, name)
    if isinstance(source, components.Completer):
        invoke = partial(source.invoke, prefix, context)
        return components.to_completion(
            await invoke_handler(context, source.mode, spec.source, invoke)
        )
    # A known argument without completions has an empty list, not an error.
    return components.complete_from(source or (), prefix)


def _component_of(
    server: "Server", reference: "Reference", context: ServerContext
) -> PromptSpec | TemplateSpec:
    spec: PromptSpec | TemplateSpec | None
    if reference.type == "ref/prompt":
        spec = server.registry.find_prompt(reference.name or "", context)
        if spec is None:
            raise unknown(server.registry.prompts, reference.name or "", context)
    else:
        spec = server.registry.templates.find(reference.uri or "", context)
        if spec is None:
            raise unknown_template(reference.uri or "", context)
    check_scopes(spec, context)
    return spec


def _completed_from(spec: PromptSpec | TemplateSpec, name: str) -> "components.Source | None":
    noun, known = (
        ("template variable", spec.variables)
        if isinstance(spec, TemplateSpec)
        else ("prompt argument", spec.arguments)
    )
    if name not in known:
        raise unknown_word(noun, name, known)
    return spec.complete(name)
