"""What type checkers see of asyncio: options of components, the clients, `aio.run`."""

import asyncio
from collections.abc import Mapping
from typing import Any, assert_type

from noizu_mcp import (
    Client,
    ClientHandler,
    Clients,
    Context,
    Decline,
    Server,
    SyncClient,
    SyncClients,
    TerminalHandler,
    Tool,
    Toolkit,
    ToolResult,
    aio,
    mcp,
    prompt,
    resource,
    tool,
)
from noizu_mcp.types import Page, ToolDefinition


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
        assert_type(client.list_tools(page=""), Page[ToolDefinition])
        with client.tools as tools:
            assert_type(tools.items, tuple[ToolDefinition, ...])
            assert_type(tools.wait_changed(), None)
        assert_type(client.ping(), None)
        client.call_tool(1)  # type: ignore[arg-type]
        assert_type(client.list_tools(page=""), Page[ToolDefinition])
        with client.listen(tools=True) as agreed:
            assert "toolsListChanged" in agreed
        with client.tools as tools:
            assert_type(tools["one"], ToolDefinition)
    SyncClient(App, tiemout=3.0)  # type: ignore[call-arg]
    client = SyncClient(App).open()
    assert_type(client, SyncClient)
    assert_type(client.close(), None)
    with SyncClients("mcp.json", start_timeout=3.0) as clients:
        assert_type(clients["one"], SyncClient)
        assert_type(clients.call_tool("one_echo", {"text": "a"}), ToolResult)
        assert_type(clients.failures, dict[str, BaseException])


class Answers(ClientHandler):
    async def handle_elicitation(self, params: Mapping[str, Any]) -> Decline:
        assert_type(self.client, Client)
        assert_type(await self.client.list_tools(), list[ToolDefinition])
        return Decline()


async def several() -> None:
    async with aio.connect_all("mcp.json") as clients:
        assert_type(clients, Clients)
        assert_type(clients["one"], Client)
    async with aio.connect(App, handler=Answers()) as client, client.tools as tools:
        assert_type(tools["one"], ToolDefinition)
    async with aio.connect(App, handler=TerminalHandler()) as client:
        await client.aclose()
