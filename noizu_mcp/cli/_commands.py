"""The commands that use a server: list, call, read, prompt and complete.

Each connects to the server (`_use.use`), asks one thing, and prints the answer: text for people, or
with `--json` the result as the server sent it.
"""

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from .._errors import McpError
from ..client import Client
from ..jsonrpc import METHOD_NOT_FOUND
from ..types import (
    Completion,
    PromptResult,
    ReadResult,
    Reference,
    ResourceContents,
    ToolDefinition,
    ToolResult,
)
from ._arguments import part_of, read_arguments, read_texts
from ._errors import FAILED, OK, USAGE, CommandError
from ._output import print_json, print_table, printable, show
from ._use import suggest, use


class _Kind(NamedTuple):
    """One kind of things that servers list.

    Attributes:
        header: The columns of its table.
        row: One row of it.
        fetch: Lists them.
        capability: The capability of a server that has components of the kind.
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
    """Print the components of a server: its tools, unless other kinds are asked for."""
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


def call_tool(args: argparse.Namespace) -> int:
    """Print the result of a tool."""
    result = use(args, partial(_call, args))
    if args.json:
        print_json(result.to_wire())
    else:
        for block in result.content:
            show(block, sys.stderr if result.is_error else sys.stdout)
    return FAILED if result.is_error else OK


async def _call(args: argparse.Namespace, client: Client) -> ToolResult:
    # Only values that stand alone need the schema to be read.
    tools = await client.list_tools() if args.arguments else []
    schema = next((tool.input_schema for tool in tools if tool.name == args.tool), {})
    arguments = read_arguments(args.arguments, args.args, schema)
    try:
        return await client.call_tool(args.tool, arguments)
    except McpError as error:
        if schema:
            raise
        await suggest("tool", args.tool, client.list_tools, error)


def read_resource(args: argparse.Namespace) -> int:
    """Print a resource: readable on a terminal, elsewhere byte for byte."""
    result = use(args, partial(_read, args.uri))
    if args.json:
        print_json(result.to_wire())
    else:
        for contents in result.contents:
            _show_contents(contents)
    return OK


async def _read(uri: str, client: Client) -> ReadResult:
    try:
        return await client.read_resource(uri)
    except McpError as error:
        await suggest("resource", uri, client.list_resources, error)


def _show_contents(contents: ResourceContents) -> None:
    text, blob = contents.text, contents.blob
    if sys.stdout.isatty():
        kind = contents.mime_type or "no known type"
        note = f"({len(blob or b'')} bytes of {kind}; write them to a file with >)"
        print(printable(note if text is None else text, sys.stdout))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(blob or b"" if text is None else text.encode("utf-8", "replace"))


def get_prompt(args: argparse.Namespace) -> int:
    """Print the messages of a prompt."""
    result = use(args, partial(_get, args.name, read_texts(args.arguments)))
    if args.json:
        print_json(result.to_wire())
    else:
        for message in result.messages:
            print(f"{message.role}:")
            show(message.content, sys.stdout)
    return OK


async def _get(name: str, arguments: dict[str, str], client: Client) -> PromptResult:
    try:
        return await client.get_prompt(name, arguments)
    except McpError as error:
        await suggest("prompt", name, client.list_prompts, error)


def complete(args: argparse.Namespace) -> int:
    """Print the completions of an argument, one on each line."""
    if len(args.arguments) > 1:
        raise CommandError(f"give one prefix, not {' '.join(args.arguments)}", USAGE)
    found = use(args, partial(_complete, args))
    if args.json:
        print_json(found.to_wire()["completion"])
        return OK
    for value in found.values:
        print(printable(value, sys.stdout, ""))
    if found.has_more:
        many = "" if found.total is None else f", {found.total} in all"
        print(f"noizu-mcp: there are more{many}", file=sys.stderr)
    return OK


async def _complete(args: argparse.Namespace, client: Client) -> Completion:
    is_template = "{" in args.ref or "://" in args.ref
    ref = Reference.resource(args.ref) if is_template else Reference.prompt(args.ref)
    prefix = "".join(args.arguments)
    context = read_texts(args.context) or None
    try:
        return await client.complete(ref, args.argument, prefix, context)
    except McpError as error:
        if error.code == METHOD_NOT_FOUND:
            raise CommandError("the server completes nothing") from error
        if is_template:
            await suggest("template", args.ref, client.list_resource_templates, error)
        await suggest("prompt", args.ref, client.list_prompts, error)
