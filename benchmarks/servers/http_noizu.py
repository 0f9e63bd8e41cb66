"""The server of the benchmarks over HTTP, in noizu_mcp: `run_http`, or stock hypercorn."""

import bench_port
import serve_noizu

from noizu_mcp import Context, Schema, Server, Tool


class Bump(Tool):
    """Change the list of tools."""

    async def call(self, args: Schema, ctx: Context) -> str:
        ctx.server.notify_changed("tools")
        return "bumped"


def build() -> Server:
    server = serve_noizu.build(bench_port.tools())
    if bench_port.has("notices"):
        server.tools.add(Bump)
    return server


if __name__ == "__main__":
    if bench_port.has("hypercorn"):
        import stock_hypercorn

        stock_hypercorn.run(build().asgi(), bench_port.port())
    else:
        build().run_http(bench_port.HOST, bench_port.port())
