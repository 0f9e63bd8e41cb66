"""What type checkers see of asyncio: options of components, the clients, `aio.run`."""

import asyncio
from typing import assert_type

from noizu_mcp import (
    Client,
    Clients,
    Context,
    Server,
    SyncClient,
    SyncClients,
    Tool,
    ToolDefinition,
    Toolkit,
    ToolResult,
    aio,
    mcp,
    prompt,
    resource,
    tool,
)


class Kit(Toolkit, loop="asyncio"):
    @mcp(loop="trio")
    async def where(self, ctx: Context) -> str:
        return ctx.transport


class One(Tool, loop="asyncio"):
    async def call(self, number: int) -> int:
        await asyncio.sleep(0)
        return number


async def plain(text: str) -> str:
    return text


class App(Server, name="app", version="1", loop="asyncio"):
    tools = [Kit, One, tool(plain, loop="asyncio"), tool(One, name="other", loop="trio")]
    prompts = [prompt(plain, loop="asyncio")]
    resources = [resource(plain, uri="data://{text}", loop="asyncio")]


async def double(number: int, *, times: int = 2) -> int:
    return number * times


async def main() -> None:
    async with aio.connect(App, timeout=3.0) as client:
        assert_type(client, Client)
        assert_type(await client.call_tool("one", {"number": 1}), ToolResult)
    async with aio.connect(App, tiemout=3.0) as client:  # type: ignore[call-arg]
        pass
    async with aio.connect_all({"app": App}, prefix=None) as clients:
        assert_type(clients, Clients)
        assert_type(await clients.list_tools(), list[ToolDefinition])
        assert_type(clients["app"], Client)
    async with aio.connect_all({"app": App}, prefix=3) as clients:  # type: ignore[arg-type]
        pass
    assert_type(await aio.run(double, 2), int)
    await aio.run(double, "2")  # type: ignore[arg-type]


def plain_code() -> None:
    with SyncClient(App, timeout=3.0) as client:
        assert_type(client.call_tool("one", {"number": 1}), ToolResult)
        assert_type(client.list_tools(), list[ToolDefinition])
        assert_type(client.ping(), None)
        client.call_tool(1)  # type: ignore[arg-type]
        with client.listen(tools=True) as agreed:
            assert "toolsListChanged" in agreed
    SyncClient(App, tiemout=3.0)  # type: ignore[call-arg]
    with SyncClients("mcp.json", timeout=3.0) as clients:
        assert_type(clients.call_tool("app_one", {"number": 1}), ToolResult)
        assert_type(clients["app"], SyncClient)
        assert_type(clients.failures, dict[str, BaseException])
