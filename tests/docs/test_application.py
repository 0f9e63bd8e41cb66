"""The example of an asyncio application: its routes and its tools share one loop and one thread."""

import asyncio
import runpy
import threading
from functools import partial
from pathlib import Path

import httpx2
import pytest
import trio
import uvicorn

from noizu_mcp import aio
from noizu_mcp.check.fuzz import fuzz

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "fastapi_app.py"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_the_application(loop, version):
    """A route and a tool put orders into one queue, and one worker of the host takes them."""
    module = runpy.run_path(str(EXAMPLE))
    app = module["app"]
    seen = []

    async def main(server):
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0)
        (listener,) = server.servers[0].sockets
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        watch(app.state.shop)
        async with (
            asyncio.timeout(60),
            httpx2.AsyncClient() as routes,
            aio.connect(f"{address}/mcp", version=version) as client,
        ):
            assert (await routes.post(f"{address}/orders/milk")).json() == 1
            result = await client.call_tool("order", {"item": "tea"})
            assert result.content[0].text == "order 2"
            listed = await client.call_tool("orders")
            assert listed.content[0].text == '["milk","tea"]'
        assert seen == [(threading.get_ident(), asyncio.get_running_loop())] * 2
        server.should_exit = True
        await serving

    def watch(shop):
        order = shop.order

        async def noted(item):
            seen.append((threading.get_ident(), asyncio.get_running_loop()))
            return await order(item)

        shop.order = noted

    config = uvicorn.Config(app, port=0, log_level="error", loop=loop, lifespan="on")
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(main(uvicorn.Server(config)))


@pytest.mark.slow
@pytest.mark.time_limit(360)
def test_the_fuzzer_finds_nothing_in_the_application():
    """Every answer is valid, while routes and tools share one loop."""
    app = runpy.run_path(str(EXAMPLE))["app"]
    report = None

    async def main(server):
        nonlocal report
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0)
        (listener,) = server.servers[0].sockets
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        report = await asyncio.to_thread(trio.run, partial(fuzz, url, examples=8, budget=20.0))
        server.should_exit = True
        await serving

    asyncio.run(main(uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))))
    assert [each.to_json() for each in report.findings] == []
