"""Calls of registered components: the defaults of the methods that a `Server` may override.

Policies are asked here about calls that code of the author makes; see `admit_again`.
"""

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import components
from ..._value import JSONMapping, JSONObject
from ...components import PromptSpec, TemplateSpec
from ...types import InputRequired, ToolResult
from .._contracts import EMPTY
from ..policies._policy_set import is_guarded
from ._call import ToolCall
from ._invoke import invoke_handler, read_found, within
from ._scope_checks import check_scopes
from ._unknown import unknown, unknown_template, unknown_word

if TYPE_CHECKING:
    from ...types import Completion, PromptResult, Reference
    from .._contracts import ServedServer
    from .._server_context import ServerContext


class DefaultCall(ToolCall):
    """A call of the default by an override of `Server.call_tool`, or by other code.

    Args:
        server: The server.
        name: The name of the tool.
        arguments: The arguments, not validated.
        context: The context of the override.
    """

    __slots__ = ()

    def __init__(
        self, server: "ServedServer", name: str, arguments: JSONObject, context: "ServerContext"
    ) -> None:
        super().__init__(context.request, server, name, arguments, context)
        self.overridden = False

    def check_policies(self) -> Awaitable[None] | None:
        """Check the policies, unless the call was admitted to the override unchanged."""
        if not (self.server.policies.chains or self.context.held or is_guarded(self.spec)):
            return None
        from ._policy_checks import admit_again

        return admit_again("tool", self.name, self.arguments, self.spec, self.context)


async def call_registered(
    server: "ServedServer", name: str, arguments: JSONObject, context: "ServerContext"
) -> ToolResult:
    """Call a registered tool with arguments that are not validated, with its timeout.

    Returns:
        The result; `TIMED_OUT` itself if the tool timed out.

    Raises:
        McpError: The tool is unknown, or raised it.
        InsufficientScope: The caller lacks a scope.
    """
    await server.registry.prepare(context, "tools", name)
    call = DefaultCall(server, name, arguments, context)
    call.find()
    return await call.finish()


async def read_registered(server: "ServedServer", uri: str, context: "ServerContext") -> Any:
    """Read a registered resource with its timeout; see `read_found`.

    Raises:
        McpError: The call timed out (-32603), or see `read_found`.
        InsufficientScope: See `read_found`.
    """
    await server.registry.prepare(context, "resources", uri)
    uri = server.registry.canonical(uri, context)
    found = server.registry.find_resource(uri, context)
    if found is not None and (server.policies.chains or is_guarded(found[0])):
        from ._policy_checks import admit_again

        check_scopes(found[0], context)
        await admit_again("resource", uri, EMPTY, found[0], context)
    return await within(server, found and found[0], partial(read_found, uri, found, context))


async def get_registered(
    server: "ServedServer", name: str, arguments: JSONMapping, context: "ServerContext"
) -> Any:
    """Get a registered prompt with its timeout; see `get_found`.

    Raises:
        McpError: The call timed out (-32603), or see `get_found`.
        InsufficientScope: See `get_found`.
    """
    await server.registry.prepare(context, "prompts", name)
    spec = server.registry.find_prompt(name, context)
    if spec is not None and (server.policies.chains or is_guarded(spec)):
        from ._policy_checks import admit_again

        check_scopes(spec, context)
        await admit_again("prompt", name, arguments, spec, context)
    return await within(server, spec, partial(get_found, spec, name, arguments, context))


async def get_found(
    spec: PromptSpec | None, name: str, arguments: JSONMapping, context: "ServerContext"
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


async def complete_registered(
    server: "ServedServer",
    reference: "Reference",
    name: str,
    prefix: str,
    context: "ServerContext",
) -> "Completion":
    """Complete an argument of a registered prompt or template.

    Raises:
        McpError: There is no such prompt, template, argument or variable (-32602).
        InsufficientScope: The caller lacks a scope.
    """
    spec = _component_of(server, reference, context)
    if server.policies.chains or is_guarded(spec):
        from ._policy_checks import admit_again

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
    server: "ServedServer", reference: "Reference", context: "ServerContext"
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
