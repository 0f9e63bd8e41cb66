"""`noizu-mcp call`: call a tool of any server."""

import argparse
import sys
from functools import partial

from .._errors import McpError
from ..client import Client
from ..types import ToolResult
from ._arguments import read_arguments
from ._errors import FAILED, OK
from ._output import print_json, show
from ._use import suggest, use


def call_tool(args: argparse.Namespace) -> int:
    """Print what a tool answers."""
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
