"""The server of the benchmarks, in fastmcp."""

from typing import Annotated, Literal

import bench_tool
from fastmcp import FastMCP
from pydantic import Field


async def echo(
    text: Annotated[str, Field(description=bench_tool.TEXT)],
    repeat: Annotated[int, Field(ge=1, le=10)] = 1,
    mode: Literal["plain", "upper", "lower"] = "plain",
) -> str:
    return bench_tool.apply(text, repeat, mode)


def build(count: int) -> FastMCP:
    server = FastMCP(bench_tool.NAME)
    for name in bench_tool.names(count):
        server.tool(echo, name=name, description=bench_tool.DESCRIPTION, output_schema=None)
    return server


if __name__ == "__main__":
    build(bench_tool.asked()).run("stdio", show_banner=False)
