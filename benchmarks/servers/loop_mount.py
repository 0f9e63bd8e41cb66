"""Calls of a tool, or of a tool of a mounted server: `loop_mount.py PEER WAY ERA SECONDS`.

The way is `direct` or `mounted`.
"""

import json
import sys
from functools import partial
from typing import Any

from loop_memory import ARGUMENTS, on_asyncio, timed


def noizu(mounted: bool, era: str, seconds: float) -> dict[str, float]:
    import serve_noizu
    import trio

    from noizu_mcp import Mount, Server, connect

    inner = serve_noizu.build(3)
    body = {"providers": [Mount(inner, prefix="in")]}
    served: Any = type("Front", (Server,), body, name="front", version="1") if mounted else inner
    name = "in_echo" if mounted else "echo"

    async def main() -> dict[str, float]:
        async with connect(served, version=era) as client:
            return await timed(lambda: client.call_tool(name, ARGUMENTS), seconds)

    return trio.run(main)


def fastmcp(mounted: bool, era: str, seconds: float) -> dict[str, float]:
    import serve_fastmcp
    from fastmcp import Client, FastMCP

    served = inner = serve_fastmcp.build(3)
    if mounted:
        served = FastMCP("front")
        served.mount(inner, namespace="in")
    name = "in_echo" if mounted else "echo"
    return on_asyncio(partial(Client, served), era, seconds, name)


LOOPS = {"noizu": noizu, "fastmcp": fastmcp}

if __name__ == "__main__":
    peer, way, era, seconds = sys.argv[1:]
    print(json.dumps(LOOPS[peer](way == "mounted", era, float(seconds))))
