"""Questions of a context."""

from contextlib import asynccontextmanager

import trio.testing

from noizu_mcp import Context, Server, connect, mcp
from noizu_mcp.auth import InsufficientScope
from noizu_mcp.components import Notify


def test_notices_of_every_kind():
    """`ctx.notify` notifies the server."""

    class Server:
        def __init__(self):
            self.told = []
            self.notify_changed = self.notify_resource_updated = self.told.append

    server, here = Server(), []
    notify = Notify(server, here.append)
    notify.tools()
    notify.prompts()
    notify.resources()
    notify.tools(here=True)
    notify.resource_updated("x://1")
    assert server.told == ["tools", "prompts", "resources", "x://1"]
    assert here == ["tools"]


async def test_the_state_of_a_context_may_have_a_type():
    """A parameter annotated `Context[…]` gets the context, whatever its name."""

    @mcp
    def count(request: Context[int], step: int) -> int:
        return request.state + step

    class Counter(Server, name="counter", version="1"):
        tools = [count]

        @asynccontextmanager
        async def lifespan(self):
            yield 40

    async with connect(Counter) as client:
        assert (await client.call_tool("count", {"step": 2})).text == "42"


async def test_init_has_threads_scopes_and_no_stream():
    """`init` may use threads and check scopes, though it belongs to no request."""

    class Sets(Server, name="sets", version="1"):
        async def init(self, ctx):
            await ctx.release_stream()
            self.threads = ctx.threads
            try:
                ctx.require("read")
            except InsufficientScope as error:
                self.missing = error.scopes

    server = Sets()
    async with connect(server, version="2025-11-25") as client:
        await client.ping()
        await trio.testing.wait_all_tasks_blocked()
    assert server.threads is not None
    assert server.missing == ("read",)
