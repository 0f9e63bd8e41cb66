"""The official client, each of whose requests goes to the next node."""

import itertools
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import httpx2
import pytest
import trio
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

from noizu_mcp import Resource, Schema, Server, Toolkit, mcp
from noizu_mcp.backends import Memory
from noizu_mcp.transports.http import HttpApp, HttpLimits, HttpOptions, serve_asgi

pytestmark = pytest.mark.slow


class Name(Schema):
    """A question."""

    name: str


class Board(Resource, uri="shop:///board", subscribable=True):
    """A resource that changes."""

    async def read(self, ctx):
        return "board"


class Kit(Toolkit):
    @mcp
    async def put(self, ctx, *, value: str) -> str:
        """Store a value."""
        before = ctx.session.get("value", "nothing")
        await ctx.put_session("value", value)
        return before

    @mcp
    async def ask(self, ctx) -> str:
        """Ask the client."""
        answer = await ctx.elicit("Who are you?", Name)
        return answer.content.name

    @mcp
    async def poll(self, ctx) -> str:
        """Let the client come back for the answer."""
        await ctx.release_stream(retry_after=0.01)
        await trio.sleep(0.5)
        return "polled"


class Shop(Server, name="shop", version="1"):
    tools = [Kit]
    resources = [Board]


@asynccontextmanager
async def balanced(count):
    """Serve nodes behind one URL; yields it and the servers."""
    backend, servers = Memory(), [Shop() for _ in range(count)]
    options = HttpOptions(backend=backend, limits=HttpLimits(grace=0.1), allowed_hosts=["*"])
    apps = [HttpApp(server, options) for server in servers]
    turn = itertools.cycle(apps)

    async def balance(scope, receive, send):
        await next(turn)(scope, receive, send)

    async with AsyncExitStack() as stack:
        for app in apps:
            await stack.enter_async_context(app.lifespan())
        nursery = await stack.enter_async_context(trio.open_nursery())
        host = await nursery.start(partial(serve_asgi, balance, port=0))
        yield f"{host.urls[0]}/mcp", servers
        nursery.cancel_scope.cancel()


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
# The client leaves the generators of its HTTP library to the garbage collector.
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_the_official_client_does_not_notice_that_there_are_nodes():
    """Values, questions, polled answers, subscriptions and list changes, three times each."""
    told = []
    news = trio.Event()

    async def note(message):
        nonlocal news
        told.append(type(message).__name__)
        news.set()
        news = trio.Event()

    async def answer(_context, _params):
        return types.ElicitResult(action="accept", content={"name": "Ann"})

    async with balanced(3) as (url, servers), httpx2.AsyncClient(timeout=20) as http_client:
        client = Client(
            streamable_http_client(url, http_client=http_client),
            mode="legacy",
            elicitation_callback=answer,
            message_handler=note,
        )
        with trio.fail_after(60):
            async with client:
                await client.subscribe_resource("shop:///board")
                for number in range(3):
                    before = await client.call_tool("put", {"value": str(number)})
                    assert before.content[0].text == (str(number - 1) if number else "nothing")
                    for name, text in (("ask", "Ann"), ("poll", "polled")):
                        result = await client.call_tool(name, {})
                        assert result.content[0].text == text
                for server in servers:
                    del told[:]
                    server.notify_resource_updated("shop:///board")
                    while told != ["ResourceUpdatedNotification"]:
                        await news.wait()
                    server.notify_changed("tools")
                    while len(told) < 2:
                        await news.wait()
                    assert told[1] == "ToolListChangedNotification"
