"""`noizu-mcp read`, `prompt` and `complete`: use what else servers offer."""

import argparse
import sys
from functools import partial

from .._errors import McpError
from ..client import Client
from ..jsonrpc import METHOD_NOT_FOUND
from ..types import (
    Completion,
    PromptResult,
    ReadResult,
    Reference,
    ResourceContents,
)
from ._arguments import read_texts
from ._errors import OK, USAGE, CommandError
from ._output import print_json, printable, show
from ._use import suggest, use


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
    """Print what an argument may be completed to, a line each."""
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
