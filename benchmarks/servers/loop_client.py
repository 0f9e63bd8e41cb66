"""Calls of a client to a server in a process of its own: `loop_client.py ROW ERA SECONDS TARGET …`.

The target is a URL, or the words of a command that serves on stdio. The processor time is that of
the client alone.
"""

import json
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

LEGACY = "2025-11-25"
ARGUMENTS = {"text": "hello bench", "repeat": 2, "mode": "upper"}
ECHOED = "HELLO BENCHHELLO BENCH"
#: Calls in flight at once, and calls at least.
MANY, LEAST = 16, 32

Call = Callable[[], Awaitable[Any]]
#: Runs a number of workers side by side until all have ended.
Together = Callable[[int, Callable[[], Awaitable[None]]], Awaitable[None]]


def check(result: Any) -> None:
    if result.content[0].text != ECHOED:
        raise RuntimeError(f"unexpected result: {result!r}")


async def timed(call: Call, together: Together, seconds: float) -> dict[str, float]:
    """Measure calls one after the other, then many at once.

    Args:
        call: Calls the tool.
        together: Runs the workers.
        seconds: How long each takes; two thirds of that to warm up.
    """
    figures = {}
    for name, window in (("one", 1), ("many", MANY)):
        left = [LEAST]
        work = partial(_work, call, left)
        began = time.perf_counter()
        await together(window, work)
        pace = (time.perf_counter() - began) / LEAST
        for part in (seconds * 2 / 3, seconds):
            count = left[0] = max(LEAST, int(part / pace))
            cpu, began = time.process_time(), time.perf_counter()
            await together(window, work)
            wall, cpu = time.perf_counter() - began, time.process_time() - cpu
            pace = wall / count
        figures[f"{name}_us"] = wall / count * 1e6
        figures[f"{name}_cpu_us"] = cpu / count * 1e6
    return figures


async def _work(call: Call, left: list[int]) -> None:
    while left[0] > 0:
        left[0] -= 1
        check(await call())


def noizu(era: str, seconds: float, target: list[str]) -> dict[str, float]:
    import trio

    from noizu_mcp import connect

    async def together(window: int, work: Callable[[], Awaitable[None]]) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(window):
                nursery.start_soon(work)

    async def main() -> dict[str, float]:
        async with connect(_target(target), version=era) as client:
            return await timed(lambda: client.call_tool("echo", ARGUMENTS), together, seconds)

    return trio.run(main)


def noizu_aio(era: str, seconds: float, target: list[str]) -> dict[str, float]:
    import asyncio

    from noizu_mcp import aio

    async def main() -> dict[str, float]:
        async with aio.connect(_target(target), version=era) as client:
            return await timed(lambda: client.call_tool("echo", ARGUMENTS), _gather, seconds)

    return asyncio.run(main())


def noizu_sync(era: str, seconds: float, target: list[str]) -> dict[str, float]:
    """Measure the client for plain code; many calls are made by as many threads."""
    import asyncio

    from noizu_mcp import SyncClient

    with SyncClient(_target(target), version=era) as client:

        async def call() -> Any:
            return client.call_tool("echo", ARGUMENTS)

        async def together(window: int, work: Callable[[], Awaitable[None]]) -> None:
            # None of these coroutines ever waits.
            with ThreadPoolExecutor(window) as pool:
                for ended in [pool.submit(_drive, work) for _ in range(window)]:
                    ended.result()

        return asyncio.run(timed(call, together, seconds))


def _drive(work: Callable[[], Any]) -> None:
    try:
        work().send(None)
    except StopIteration:
        return


def _target(words: list[str]) -> Any:
    from noizu_mcp import Stdio

    return Stdio(*words) if len(words) > 1 else words[0]


def mcp(era: str, seconds: float, target: list[str]) -> dict[str, float]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    def stdio(command: str, *args: str) -> Any:
        return stdio_client(StdioServerParameters(command=command, args=list(args)))

    return on_asyncio(Client, stdio, era, seconds, target)


def fastmcp(era: str, seconds: float, target: list[str]) -> dict[str, float]:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    def stdio(command: str, *args: str) -> Any:
        return StdioTransport(command, list(args))

    return on_asyncio(Client, stdio, era, seconds, target)


def on_asyncio(
    client_of: Callable[..., Any],
    stdio: Callable[..., Any],
    era: str,
    seconds: float,
    target: list[str],
) -> dict[str, float]:
    """Time a client of either package: fastmcp gave its own the options of the other's."""
    import asyncio

    async def main() -> dict[str, float]:
        where = stdio(*target) if len(target) > 1 else target[0]
        async with client_of(where, mode="legacy" if era == LEGACY else "auto") as client:
            return await timed(lambda: client.call_tool("echo", ARGUMENTS), _gather, seconds)

    return asyncio.run(main())


async def _gather(window: int, work: Callable[[], Awaitable[None]]) -> None:
    import asyncio

    await asyncio.gather(*[work() for _ in range(window)])


LOOPS = {
    "noizu": noizu,
    "noizu, aio": noizu_aio,
    "noizu, SyncClient": noizu_sync,
    "mcp": mcp,
    "fastmcp": fastmcp,
}

if __name__ == "__main__":
    row, era, seconds, *target = sys.argv[1:]
    print(json.dumps(LOOPS[row](era, float(seconds), target)))
