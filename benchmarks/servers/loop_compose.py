"""Calls in memory through policies, mounts and proxies: `loop_compose.py ROW ERA SECONDS`."""

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from loop_memory import ARGUMENTS, on_asyncio, timed


def alone() -> Any:
    import serve_noizu

    return serve_noizu.build(3)


def five_policies() -> Any:
    """Put five of the package before the tool."""
    from noizu_mcp.policies import AllowTools, DenyTools, RateLimit, TimeWindow

    server = alone()
    names = DenyTools("*shell*"), DenyTools("admin:*"), AllowTools("echo*", "skill:*")
    server.policies.replace([*names, RateLimit(10**9, per=1), TimeWindow("00:00", "24:00")])
    return server


def mounted() -> Any:
    from noizu_mcp import Mount, Server

    class Front(Server, name="front", version="1"):
        providers = [Mount(alone(), prefix="m_")]

    return Front()


def remote() -> Any:
    from noizu_mcp import Remote, Server

    class Front(Server, name="front", version="1"):
        providers = [Remote(alone(), prefix="m_")]

    return Front()


def noizu(build: Callable[[], Any], tool: str, era: str, seconds: float) -> dict[str, float]:
    import trio

    from noizu_mcp import connect

    async def main() -> dict[str, float]:
        async with connect(build(), version=era) as client:
            return await timed(lambda: client.call_tool(tool, ARGUMENTS), seconds)

    return trio.run(main)


def fastmcp(kind: str, tool: str, era: str, seconds: float) -> dict[str, float]:
    import serve_fastmcp
    from fastmcp import Client, FastMCP
    from fastmcp.server import create_proxy

    server = serve_fastmcp.build(3)
    if kind != "alone":
        front = FastMCP("front")
        front.mount(server if kind == "mount" else create_proxy(server), "m")
        server = front
    return on_asyncio(partial(Client, server), era, seconds, tool)


ROWS = {
    "noizu": partial(noizu, alone, "echo"),
    "noizu, five policies": partial(noizu, five_policies, "echo"),
    "noizu, Mount": partial(noizu, mounted, "m_echo"),
    "noizu, Remote": partial(noizu, remote, "m_echo"),
    "fastmcp": partial(fastmcp, "alone", "echo"),
    "fastmcp, mount": partial(fastmcp, "mount", "m_echo"),
    "fastmcp, proxy": partial(fastmcp, "proxy", "m_echo"),
}

if __name__ == "__main__":
    row, era, seconds = sys.argv[1:]
    print(json.dumps(ROWS[row](era, float(seconds))))
