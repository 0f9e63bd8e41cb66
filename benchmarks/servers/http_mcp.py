"""The server of the benchmarks over HTTP, in the official Python SDK."""

import bench_port
import serve_mcp
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.session import ServerSession

joined: list[ServerSession] = []


async def join(ctx: Context) -> str:
    joined.append(ctx.session)
    return "joined"


async def bump(ctx: Context) -> str:
    # The one reaches listen requests only; the other, one session with a handshake.
    await ctx.notify_tools_changed()
    for session in joined:
        await session.send_tool_list_changed()
    return "bumped"


def build() -> MCPServer:
    server = serve_mcp.build(bench_port.tools())
    if bench_port.has("notices"):
        server.add_tool(join, structured_output=False)
        server.add_tool(bump, structured_output=False)
    return server


if __name__ == "__main__":
    fast = bench_port.has("fast")
    # As `run("streamable-http")` does, but that uvicorn would choose uvloop by itself.
    uvicorn.run(
        build().streamable_http_app(json_response=fast),
        host=bench_port.HOST,
        port=bench_port.port(),
        log_level="warning",
        loop="uvloop" if fast else "asyncio",
        http="httptools" if fast else "h11",
    )
