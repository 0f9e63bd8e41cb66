"""`noizu-mcp list` and `noizu-mcp call`: use any server."""

import argparse
import contextlib
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from .._errors import McpError
from ..client import Client, connect
from ..jsonrpc import INVALID_PARAMS
from ..schema._nearest import nearest
from ..transports import Stdio, diverted_stdio
from ..types import ToolDefinition, ToolResult
from ._arguments import read_arguments
from ._errors import FAILED, OK, USAGE, CommandError
from ._loop import run_loop
from ._output import TracePrinter, one_line_log, print_json, print_table, show
from ._target import load_server

Result = TypeVar("Result")


def list_tools(args: argparse.Namespace) -> int:
    """Print the tools of a server."""
    tools = _use(args, Client.list_tools)
    if args.json:
        print_json([tool.to_wire() for tool in tools])
    else:
        rows = [(tool.name, _parameters(tool), _first_line(tool)) for tool in tools]
        print_table(("NAME", "ARGUMENTS", "DESCRIPTION"), rows)
    return OK


def _parameters(tool: ToolDefinition) -> str:
    required = tool.input_schema.get("required", ())
    names = tool.input_schema.get("properties", {})
    return " ".join(name if name in required else f"[{name}]" for name in names)


def _first_line(tool: ToolDefinition) -> str:
    return (tool.description or tool.title or "").partition("\n")[0]


def call_tool(args: argparse.Namespace) -> int:
    """Print what a tool answers."""
    result = _use(args, partial(_call, args))
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
        if error.code == INVALID_PARAMS and not schema:
            await _suggest(client, args.tool, error)
        raise


async def _suggest(client: Client, name: str, error: McpError) -> None:
    """Say which tool was meant; nothing, if the tool is there."""
    names = [tool.name for tool in await client.list_tools()]
    if name not in names:
        meant = nearest(name, names)
        hint = f"did you mean {meant}?" if meant else f"there are: {', '.join(names) or 'none'}"
        raise CommandError(f"no tool {name}; {hint}", USAGE) from error


def _use(args: argparse.Namespace, work: Callable[[Client], Awaitable[Result]]) -> Result:
    """Connect to what the command line names, and do something with it."""
    with contextlib.nullcontext() if args.debug else one_line_log():
        if args.process is not None:
            return run_loop(partial(_connected, args, Stdio(*args.process), work))
        with diverted_stdio():  # what a server in this process prints is no answer
            return run_loop(partial(_connected, args, load_server(args.target), work))


async def _connected(
    args: argparse.Namespace, target: Any, work: Callable[[Client], Awaitable[Result]]
) -> Result:
    tap = TracePrinter(sys.stderr) if args.trace else None
    async with connect(target, version=args.protocol, timeout=args.timeout, tap=tap) as client:
        return await work(client)
