"""`noizu-mcp list` and `noizu-mcp call`: use any server."""

import argparse
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from ..client import TIMEOUT, Client, connect
from ..transports import Stdio
from ..types import Content, ToolDefinition, ToolResult
from ._errors import FAILED, OK, USAGE, CommandError
from ._output import TracePrinter, print_json, print_table
from ._target import load_server


def add_parsers(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", *, with_target: bool
) -> None:
    """Describe the commands.

    Args:
        commands: Where they are added.
        with_target: False when the server is a command, given behind `--`.
    """
    listing = commands.add_parser("list", help="list the tools of a server")
    _add_common(listing, with_target=with_target)
    listing.set_defaults(command=list_tools)
    calling = commands.add_parser("call", help="call a tool of a server")
    _add_common(calling, with_target=with_target)
    calling.add_argument("tool", help="the name of the tool")
    calling.add_argument(
        "arguments", nargs="*", metavar="name=value", help="arguments of the tool"
    )
    calling.add_argument("--args", metavar="JSON", help="arguments as one JSON object")
    calling.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds")
    calling.set_defaults(command=call_tool)


def _add_common(parser: argparse.ArgumentParser, *, with_target: bool) -> None:
    if with_target:
        text = "module:Server or path/to/file.py:Server; leave it out with: -- COMMAND ARG …"
        parser.add_argument("target", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--trace", action="store_true", help="print every message to stderr")
    parser.add_argument("--protocol", metavar="VERSION", help="use one protocol revision")


def list_tools(args: argparse.Namespace) -> int:
    """Print the tools of a server."""
    tools = trio.run(_list, args)
    if args.json:
        print_json([tool.to_wire() for tool in tools])
    else:
        rows = [(tool.name, _parameters(tool), _first_line(tool)) for tool in tools]
        print_table(("NAME", "ARGUMENTS", "DESCRIPTION"), rows)
    return OK


async def _list(args: argparse.Namespace) -> list[ToolDefinition]:
    async with _connect(args) as client:
        return await client.list_tools()


def _parameters(tool: ToolDefinition) -> str:
    required = tool.input_schema.get("required", ())
    names = tool.input_schema.get("properties", {})
    return " ".join(name if name in required else f"[{name}]" for name in names)


def _first_line(tool: ToolDefinition) -> str:
    return (tool.description or tool.title or "").partition("\n")[0]


def call_tool(args: argparse.Namespace) -> int:
    """Print what a tool answers."""
    result = trio.run(_call, args)
    if args.json:
        print_json(result.to_wire())
    else:
        for block in result.content:
            print(_readable(block), file=sys.stderr if result.is_error else sys.stdout)
    return FAILED if result.is_error else OK


async def _call(args: argparse.Namespace) -> ToolResult:
    async with _connect(args) as client:
        schema = await _schema_of(client, args.tool)
        arguments = read_arguments(args.arguments, args.args, schema)
        return await client.call_tool(args.tool, arguments, timeout=args.timeout)


async def _schema_of(client: Client, name: str) -> Mapping[str, Any]:
    for tool in await client.list_tools():
        if tool.name == name:
            return tool.input_schema
    return {}  # hidden, or not there: the server will say


def read_arguments(
    pairs: Sequence[str], text: str | None, schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Read the arguments of a call from the command line.

    Args:
        pairs: `name=value` each. A value is taken as JSON if it is JSON, unless the tool wants a
            string there.
        text: One JSON object; single arguments win over it.
        schema: The input schema of the tool.

    Raises:
        CommandError: Something is not of that form.
    """
    arguments = _read_json_object(text) if text is not None else {}
    properties = schema.get("properties", {})
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"write arguments as name=value, not {pair!r}", USAGE)
        arguments[name] = _read_value(value, properties.get(name))
    return arguments


def _read_json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise CommandError(f"--args is not JSON: {error}", USAGE) from error
    if not isinstance(value, dict):
        raise CommandError("--args must be a JSON object", USAGE)
    return value


def _read_value(text: str, schema: Any) -> Any:
    if isinstance(schema, dict) and (schema.get("type") == "string" or "enum" in schema):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _readable(block: Content) -> str:
    wire = block.to_wire()
    if wire["type"] == "text":
        return str(wire["text"])
    if "data" in wire:
        wire["data"] = f"({len(wire['data'])} characters of base64)"
    return json.dumps(wire, ensure_ascii=False)


@asynccontextmanager
async def _connect(args: argparse.Namespace) -> AsyncIterator[Client]:
    """Connect to what the command line names."""
    target: Any = Stdio(*args.process) if args.process else load_server(args.target)
    tap = TracePrinter(sys.stderr) if args.trace else None
    async with connect(target, version=args.protocol, tap=tap) as client:
        yield client
