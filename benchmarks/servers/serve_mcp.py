"""The server of the benchmarks, in the official Python SDK: its high-level class."""

from typing import Annotated, Literal

import bench_tool
from mcp.server import MCPServer
from pydantic import Field


async def echo(
    text: Annotated[str, Field(description=bench_tool.TEXT)],
    repeat: Annotated[int, Field(ge=1, le=10)] = 1,
    mode: Literal["plain", "upper", "lower"] = "plain",
) -> str:
    return bench_tool.apply(text, repeat, mode)


def build(count: int) -> MCPServer:
    server = MCPServer(bench_tool.NAME, log_level="WARNING")
    for name in bench_tool.names(count):
        server.add_tool(
            echo, name=name, description=bench_tool.DESCRIPTION, structured_output=False
        )
    return server


if __name__ == "__main__":
    build(bench_tool.asked()).run("stdio")
