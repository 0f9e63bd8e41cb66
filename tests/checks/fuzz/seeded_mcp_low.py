"""A low-level server of the official Python package with a fault: `seeded_mcp_low.py FAULT`.

The tools and their faults are the same as in `seeded.py`; the package reads and writes messages.
"""

import sys
import time

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from seeded import STATELESS, Refusal, Seeded

seeded = Seeded(sys.argv[1])


async def list_tools(context, params):
    try:
        found = seeded.list_tools({} if params.cursor is None else {"cursor": params.cursor})
    except Refusal as refusal:
        raise MCPError(*refusal.args) from None
    return types.ListToolsResult.model_validate(found)


async def call_tool(context, params):
    meta = {"io.modelcontextprotocol/protocolVersion": STATELESS}
    call = {"name": params.name, "arguments": params.arguments or {}}
    if context.protocol_version == STATELESS:
        call["_meta"] = meta
    try:
        found = seeded.call(call)
    except Refusal as refusal:
        raise MCPError(*refusal.args) from None
    Stdout.is_doubled = seeded.fault == "twice" and params.name == "say"
    return types.CallToolResult.model_validate(found)


def wait(stateless):
    # The fault: nothing else is read meanwhile, not even a cancellation.
    time.sleep(0.4)
    return Seeded.text("done")


seeded.wait = wait


class Stdout:
    """The output, on which a message is written twice if `is_doubled` is set."""

    is_doubled = False

    def __init__(self, file):
        self._file = file

    async def write(self, text):
        await self._file.write(text * (1 + Stdout.is_doubled))
        Stdout.is_doubled = False

    async def flush(self):
        await self._file.flush()


async def main():
    server = Server("seeded", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server(stdout=Stdout(anyio.wrap_file(sys.stdout))) as streams:
        await server.run(*streams, options)


if __name__ == "__main__":
    anyio.run(main)
