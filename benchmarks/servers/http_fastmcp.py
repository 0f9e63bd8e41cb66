"""The server of the benchmarks over HTTP, in fastmcp."""

from typing import Any

import bench_port
import serve_fastmcp
from fastmcp import Context, FastMCP

joined: list[Any] = []


async def join(ctx: Context) -> str:
    joined.append(ctx.session)
    return "joined"


async def bump() -> str:
    for session in joined:
        await session.send_tool_list_changed()
    return "bumped"


def build() -> FastMCP:
    server = serve_fastmcp.build(bench_port.tools())
    if bench_port.has("notices"):
        server.tool(join, output_schema=None)
        server.tool(bump, output_schema=None)
    return server


if __name__ == "__main__":
    build().run(
        "http",
        host=bench_port.HOST,
        port=bench_port.port(),
        show_banner=False,
        log_level="warning",
        # As without uvloop and httptools, which uvicorn would choose by itself.
        uvicorn_config={"loop": "asyncio", "http": "h11"},
    )
