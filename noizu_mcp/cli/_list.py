"""`noizu-mcp list`: what a server offers."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from .._errors import McpError
from ..client import Client
from ..jsonrpc import METHOD_NOT_FOUND
from ..types import ToolDefinition
from ._errors import OK
from ._output import print_json, print_table
from ._schema import part_of
from ._use import use


class _Kind(NamedTuple):
    """One kind of things that servers list.

    Attributes:
        header: The columns of its table.
        row: One row of it.
        fetch: Lists them.
        capability: What a server says that has any.
    """

    header: tuple[str, ...]
    row: Callable[[Any], tuple[str, ...]]
    fetch: Callable[[Client], Awaitable[Sequence[Any]]]
    capability: str


def _tool_row(tool: ToolDefinition) -> tuple[str, ...]:
    required = part_of(tool.input_schema, "required", list)
    names = part_of(tool.input_schema, "properties", dict)
    return tool.name, _words(names, required), _first_line(tool)


def _prompt_row(prompt: Any) -> tuple[str, ...]:
    required = [each.name for each in prompt.arguments if each.required]
    return (
        prompt.name,
        _words([each.name for each in prompt.arguments], required),
        _first_line(prompt),
    )


def _words(names: Any, required: Any) -> str:
    return " ".join(name if name in required else f"[{name}]" for name in names)


def _first_line(listed: Any) -> str:
    return (listed.description or listed.title or "").partition("\n")[0]


_NAMED: Final = ("NAME", "ARGUMENTS", "DESCRIPTION")
KINDS: Final = {
    "tools": _Kind(_NAMED, _tool_row, Client.list_tools, "tools"),
    "resources": _Kind(
        ("URI", "NAME", "DESCRIPTION"),
        lambda each: (each.uri, each.name, _first_line(each)),
        Client.list_resources,
        "resources",
    ),
    "templates": _Kind(
        ("URI TEMPLATE", "NAME", "DESCRIPTION"),
        lambda each: (each.uri_template, each.name, _first_line(each)),
        Client.list_resource_templates,
        "resources",
    ),
    "prompts": _Kind(_NAMED, _prompt_row, Client.list_prompts, "prompts"),
}


def list_offers(args: argparse.Namespace) -> int:
    """Print what a server offers: its tools, unless something else is asked for."""
    asked = [kind for kind in KINDS if getattr(args, kind)] or ["tools"]
    found = use(args, partial(_fetch, list(KINDS) if args.all else asked, every=args.all))
    if args.json:
        wire = {kind: [each.to_wire() for each in listed] for kind, listed in found.items()}
        print_json(wire if args.all or len(asked) > 1 else wire[asked[0]])
        return OK
    for n, (kind, listed) in enumerate(found.items()):
        if args.all or len(asked) > 1:
            print(f"{'' if n == 0 else chr(10)}{kind.upper()}")
        if listed:
            print_table(KINDS[kind].header, [KINDS[kind].row(each) for each in listed])
        else:
            print(f"the server lists no {kind}")
    return OK


async def _fetch(kinds: Sequence[str], client: Client, *, every: bool) -> dict[str, Sequence[Any]]:
    """List some kinds; of all kinds those that the server has."""
    return {
        kind: await _listed(KINDS[kind], client)
        for kind in kinds
        if not every or client.capabilities.has(KINDS[kind].capability)
    }


async def _listed(kind: _Kind, client: Client) -> Sequence[Any]:
    try:
        return await kind.fetch(client)
    except McpError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return ()  # a server without any does not know the method either
