"""Servers in this process that record the arguments of their tools."""

from functools import cache

from noizu_mcp import Annotations, McpError, Server
from noizu_mcp.schema import compile_schema
from noizu_mcp.types import ToolDefinition


def schema_of(properties, required=()):
    return {"type": "object", "properties": properties, "required": list(required)}


def recorder(tools, results=None):
    """Make a server whose tools refuse wrong arguments, and return given results.

    Args:
        tools: The input schemas, by the names of the tools.
        results: Functions from the arguments to a result, by the names of the tools.

    Returns:
        The class, and the arguments of each tool that were sent.
    """
    calls = {name: [] for name in tools}
    judge_of = cache(lambda name: compile_schema(tools[name]).is_valid)
    notes = Annotations(read_only_hint=True)

    class Recording(Server, name="recording", version="1"):
        async def list_tools(self, cursor, ctx):
            return [
                ToolDefinition(name, input_schema=schema, annotations=notes)
                for name, schema in tools.items()
            ]

        async def call_tool(self, name, args, ctx):
            if name not in tools:
                raise McpError(-32602, "no such tool")
            calls[name].append(args)
            if not judge_of(name)(args):
                raise McpError(-32602, "wrong arguments")
            return (results or {}).get(name, lambda _: "done")(args)

    return Recording, calls
