"""The server of the benchmarks over HTTP, in noizu_mcp: `run_http`, or stock hypercorn.

With the flag `raw` the host of noizu_mcp serves the application that answers by hand, without the
rest of the framework: what an answer costs at least there.
"""

from functools import partial

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
    elif bench_port.has("raw"):
        import http_trio
        import trio

        from noizu_mcp.transports.host import serve_asgi

        http_trio.offer(bench_port.tools())
        trio.run(partial(serve_asgi, http_trio.app, port=bench_port.port()))
    else:
        build().run_http(bench_port.HOST, bench_port.port())
