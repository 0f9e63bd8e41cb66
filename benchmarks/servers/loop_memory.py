"""Calls between a client and a server in one process: `loop_memory.py PEER ERA SECONDS`."""

import json
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
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
    import serve_mcp
    from mcp import Client

    return on_asyncio(partial(Client, serve_mcp.build(3)), era, seconds)


def fastmcp(era: str, seconds: float) -> dict[str, float]:
    import serve_fastmcp
    from fastmcp import Client

    return on_asyncio(partial(Client, serve_fastmcp.build(3)), era, seconds)


def on_asyncio(
    client_of: Callable[..., Any], era: str, seconds: float, name: str = "echo"
) -> dict[str, float]:
    """Time a client of either package: fastmcp gave its own the options of the other's."""
    import asyncio

    async def main() -> dict[str, float]:
        async with client_of(mode="legacy" if era == "2025-11-25" else "auto") as client:
            return await timed(lambda: client.call_tool(name, ARGUMENTS), seconds)

    return asyncio.run(main())


def yardstick(_era: str, seconds: float) -> dict[str, float]:
    """Time a bare round trip on trio: bytes both ways, a task for each request, no framework."""
    import serve_trio
    import trio

    params = {"name": "echo", "arguments": ARGUMENTS}

    async def serve(
        requests: trio.MemoryReceiveChannel[bytes], answers: trio.MemorySendChannel[bytes]
    ) -> None:
        async with trio.open_nursery() as nursery:
            async for line in requests:
                nursery.start_soon(serve_trio.answer, line, answers)

    async def main() -> dict[str, float]:
        to_server, requests = trio.open_memory_channel[bytes](100)
        answers, from_server = trio.open_memory_channel[bytes](100)

        async def call() -> Any:
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            await to_server.send(json.dumps(request).encode())
            (content,) = json.loads(await from_server.receive())["result"]["content"]
            return SimpleNamespace(content=[SimpleNamespace(**content)])

        async with trio.open_nursery() as nursery, to_server:
            nursery.start_soon(serve, requests, answers)
            return await timed(call, seconds)

    return trio.run(main)


LOOPS = {"noizu": noizu, "mcp": mcp, "fastmcp": fastmcp, "trio": yardstick}

if __name__ == "__main__":
    peer, era, seconds = sys.argv[1:]
    print(json.dumps(LOOPS[peer](era, float(seconds))))
