"""`completion/complete` (`server/utilities/completion`)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..._errors import McpError, ProtocolError
from ...components import PromptSpec, Source, TemplateSpec, complete_from, to_completion
from ...engine import Exchange, Job
from ...jsonrpc import INVALID_PARAMS
from ...types import Completion, PromptReference, read_reference
from .._calls import invoke_handler
from .._connection import Connection


def complete(connection: Connection, exchange: Exchange) -> Job | None:
    """Answer `completion/complete`.

    Raises:
        McpError: The reference or the argument names nothing (-32602).
    """
    server = connection.server
    if not server.offers("completions"):
        connection.refuse(exchange)
        return None
    params: Mapping[str, Any] = exchange.request.params or {}
    name, prefix = _argument(params)
    context = connection.context(exchange, completion_arguments=_filled_in(params))
    try:
        reference = read_reference(params.get("ref"))
    except ProtocolError:
        raise McpError(INVALID_PARAMS, "completion/complete requires a valid ref") from None
    if server.overrides("complete"):
        invoke = partial(server.complete, reference, name, prefix, context)
    else:
        source = _source(connection, reference, name)
        if source is None or isinstance(source, tuple):
            _reply(connection, exchange, complete_from(source or (), prefix))
            return None
        handler = partial(source.invoke, prefix, context)
        invoke = partial(invoke_handler, server, source.mode, handler)

    async def work() -> None:
        _reply(connection, exchange, to_completion(await invoke()))

    return connection.in_background(exchange, work)


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
    return {name: value for name, value in arguments.items() if isinstance(value, str)}


def _source(connection: Connection, reference: Any, name: str) -> Source | None:
    registry = connection.server.registry
    spec: PromptSpec | TemplateSpec | None
    if isinstance(reference, PromptReference):
        spec = registry.find_prompt(reference.name)
        if spec is None:
            raise McpError(INVALID_PARAMS, f"Unknown prompt: {reference.name}")
        if name not in spec.arguments:
            raise McpError(INVALID_PARAMS, f"Unknown prompt argument: {name}")
        return spec.complete(name)
    spec = registry.template_shelf.specs.get(reference.uri)
    if spec is None:
        raise McpError(INVALID_PARAMS, f"Unknown resource template: {reference.uri}")
    if name not in spec.variables:
        raise McpError(INVALID_PARAMS, f"Unknown template variable: {name}")
    return spec.complete(name)


def _reply(connection: Connection, exchange: Exchange, completion: Completion) -> None:
    connection.reply(exchange, completion.to_wire())
