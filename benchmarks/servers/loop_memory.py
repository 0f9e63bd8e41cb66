"""Calls between a client and a server in one process: `loop_memory.py PEER ERA SECONDS`."""

import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

ARGUMENTS = {"text": "hello bench", "repeat": 2, "mode": "upper"}
ECHOED = "HELLO BENCHHELLO BENCH"
LEAST = 20

Call = Callable[[], Awaitable[Any]]


async def timed(call: Call, seconds: float) -> dict[str, float]:
    """Call for two thirds of the time to warm up, then count."""
    count = await repeat(call, LEAST, seconds * 2 / 3)
    count = max(LEAST, int(count * 1.5))
    cpu, began = time.process_time(), time.perf_counter()
    await repeat(call, count, 0)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"wall_us": wall / count * 1e6, "cpu_us": cpu / count * 1e6}


async def repeat(call: Call, least: int, seconds: float) -> int:
    """Call so often, and so long; returns how often it was."""
    count, end = 0, time.perf_counter() + seconds
    while count < least or (seconds and time.perf_counter() < end):
        result = await call()
        if result.content[0].text != ECHOED:
            raise RuntimeError(f"unexpected result: {result!r}")
        count += 1
    return count


def noizu(era: str, seconds: float) -> dict[str, float]:
    import serve_noizu
    import trio

    from noizu_mcp import connect

    async def main() -> dict[str, float]:
        async with connect(serve_noizu.build(3), version=era) as client:
            return await timed(lambda: client.call_tool("echo", ARGUMENTS), seconds)

    return trio.run(main)


def mcp(era: str, seconds: float) -> dict[str, float]:
    import asyncio

    import serve_mcp
    from mcp import Client

    async def main() -> dict[str, float]:
        mode = "legacy" if era == "2025-11-25" else "auto"
        async with Client(serve_mcp.build(3), mode=mode) as client:
            return await timed(lambda: client.call_tool("echo", ARGUMENTS), seconds)

    return asyncio.run(main())


def fastmcp(era: str, seconds: float) -> dict[str, float]:
    import asyncio

    import serve_fastmcp
    from fastmcp import Client

    async def main() -> dict[str, float]:
        mode = "legacy" if era == "2025-11-25" else "auto"
        async with Client(serve_fastmcp.build(3), mode=mode) as client:
            return await timed(lambda: client.call_tool("echo", ARGUMENTS), seconds)

    return asyncio.run(main())


if __name__ == "__main__":
    peer, era, seconds = sys.argv[1:]
    print(json.dumps({"noizu": noizu, "mcp": mcp, "fastmcp": fastmcp}[peer](era, float(seconds))))
