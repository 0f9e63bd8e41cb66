"""A server written with the official Python package, for our client to drive."""

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import BaseModel

server = MCPServer("foreign", version="2.3", instructions="Call anything.", log_level="CRITICAL")
cancelled = anyio.Event()


class Weight(BaseModel):
    city: str
    celsius: float


@server.tool()
def echo(message: str) -> types.CallToolResult:
    """Answer with the text that came."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)])


@server.tool()
def weigh(city: str) -> Weight:
    """Answer with an object that has a schema."""
    return Weight(city=city, celsius=21.5)


@server.tool()
def refuse() -> str:
    """Fail in a way that a model can act on."""
    raise ToolError("the shop is closed")


@server.tool()
async def steps(count: int, ctx: Context[Any]) -> str:
    """Report progress."""
    for number in range(1, count + 1):
        await ctx.report_progress(number, count, f"step {number}")
    return "finished"


@server.tool()
async def shout(ctx: Context[Any]) -> str:
    """Log a warning."""
    await ctx.log("warning", "almost full", logger_name="disk")
    return "logged"


@server.tool()
async def endless(ctx: Context[Any]) -> str:
    """Report once, then wait until cancelled."""
    await ctx.report_progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        cancelled.set()


@server.tool()
async def was_cancelled() -> str:
    """Answer once a call of `endless` has been cancelled."""
    with anyio.move_on_after(10):
        await cancelled.wait()
        return "yes"
    return "no"


@server.tool()
async def add_extra(ctx: Context[Any]) -> str:
    """Add a tool to the running server."""
    server.add_tool(lambda: "extra", name="extra")
    await ctx.notify_tools_changed()
    if ctx.protocol_version < "2026-07-28":
        await ctx.session.send_tool_list_changed()
    return "added"


def serve_http() -> None:
    """Serve on a free port, and print it."""
    import socket

    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    import warnings

    # What 2026-07-28 deprecates is still part of the older revisions.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    if sys.argv[1:] == ["http"]:
        serve_http()
    else:
        server.run()
