"""Components made of a definition and a function, without a signature to read.

A provider has such a pair for what is described elsewhere: in the list of another server, in an
OpenAPI document. The other side checks arguments and keeps the contract of the output.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, overload

from ...schema import header_paths
from ...types import (
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from ...uri import UriTemplate
from ..declare._class_schemas import open_object
from ..handlers._bound import Bound, PromptSpec, ResourceSpec, TemplateSpec, ToolSpec
from ..handlers._completion import Completer

if TYPE_CHECKING:
    from ...schema import Violation

#: Completes an argument or a variable: takes its name, the text typed so far, and the context.
Complete = Callable[[str, str, object], Awaitable[object]]


class _AsSent:
    """The texts of variables that are handed on as the URI has them."""

    def read(self, values: Mapping[str, object]) -> "tuple[Any, list[Violation]]":
        """Return the values, and no violations."""
        return values, []


_AS_SENT: Final[object] = _AsSent()


@overload
def bind_definition(
    definition: ToolDefinition, handler: Callable[[Any, Any], Awaitable[object]], **options: Any
) -> ToolSpec: ...
@overload
def bind_definition(
    definition: PromptDefinition,
    handler: Callable[[Any, object], Awaitable[object]],
    complete: Complete | None = None,
    **options: object,
) -> PromptSpec: ...
@overload
def bind_definition(
    definition: ResourceDefinition, handler: Callable[[str, Any], Awaitable[Any]], **options: Any
) -> ResourceSpec: ...
@overload
def bind_definition(
    definition: ResourceTemplateDefinition,
    handler: Callable[[str, object, Any], Awaitable[Any]],
    complete: Complete | None = None,
    **options: object,
) -> TemplateSpec: ...
def bind_definition(
    definition: Any,
    handler: Callable[..., Awaitable[object]],
    complete: Complete | None = None,
    **options: object,
) -> Bound:
    """Make a component of its definition and a coroutine function; a provider may list it.

    Nothing is checked: the arguments of a call reach the function as the client sent them, and its
    structured content goes out as it is.

    Args:
        definition: `ToolDefinition`, `PromptDefinition`, `ResourceDefinition` or
            `ResourceTemplateDefinition`; it is listed unchanged.
        handler: `(arguments, ctx)` for a tool or a prompt, `(uri, ctx)` for a resource,
            `(uri, variables, ctx)` for a template. It returns what the method of a component may.
        complete: `(name, prefix, ctx)`, completes an argument of the prompt, or a variable of the
            template.
        options: Further fields of `Bound`: `timeout`, `requires`, `hidden`, `available`, `source`.

    Raises:
        ValueError: The text of a template is not a URI template.
    """
    wire = definition.to_wire()
    fields: dict[str, object] = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "mode": "async",
        "takes_context": True,
        "loop": "trio",
        "invoke": handler,
        "definition": wire,
        "source": f"{type(definition).__name__}({wire.get('uri', definition.name)!r})",
        **options,
    }
    if isinstance(definition, ToolDefinition):
        # Without a schema of the output: it is published, and checked by its owner.
        mirrored = header_paths(definition.input_schema)
        return ToolSpec(input=open_object(), output=None, mirrored=mirrored, **fields)
    if isinstance(definition, ResourceDefinition):
        return ResourceSpec(uri=definition.uri, mime_type=definition.mime_type, **fields)

    if isinstance(definition, PromptDefinition):
        taken = definition.arguments
        return PromptSpec(
            texts=None,
            arguments=tuple(each.name for each in taken),
            required=tuple(each.name for each in taken if each.required),
            complete=_completers(complete),
            **fields,
        )
    template = UriTemplate(definition.uri_template, traversal=True)
    return TemplateSpec(
        uri_template=template,
        texts=_AS_SENT,
        variables=template.variables,
        complete=_completers(complete),
        list=None,
        list_mode="async",
        mime_type=definition.mime_type,
        **fields,
    )


def _completers(complete: Complete | None) -> Callable[[str], Completer | None]:
    """Return the function that finds the completer of an argument or a variable."""

    def find(name: str) -> Completer | None:
        if complete is None:
            return None
        return Completer("async", lambda prefix, ctx: complete(name, prefix, ctx))

    return find
