"""The server of the benchmarks, in noizu_mcp."""

from typing import Literal

import bench_tool

from noizu_mcp import Schema, Server, Tool, field, tool


class Echo(Tool, description=bench_tool.DESCRIPTION):
    class Input(Schema):
        text: str = field(description=bench_tool.TEXT)
        repeat: int = field(default=1, min=1, max=10)
        mode: Literal["plain", "upper", "lower"] = "plain"

    async def call(self, args: Input) -> str:
        return bench_tool.apply(args.text, args.repeat, args.mode)


def build(count: int) -> Server:
    # The peers answer in one page, too.
    class Bench(Server, name=bench_tool.NAME, version="1", page_size=count):
        tools = [tool(Echo, name=name) for name in bench_tool.names(count)]

    return Bench()


if __name__ == "__main__":
    build(bench_tool.asked()).run()
