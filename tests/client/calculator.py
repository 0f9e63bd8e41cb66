"""A server in memory with tools that report, ask, wait, and run on asyncio."""

import asyncio
import threading
from contextlib import asynccontextmanager

import trio

from noizu_mcp import Context, Schema, Server, Toolkit, mcp


class Form(Schema):
    """The form of the questions."""

    name: str


class Kit(Toolkit):
    """Tools on trio."""

    @mcp
    async def add(self, a: int, b: int, ctx: Context) -> int:
        await ctx.report_progress(1)
        return a + b

    @mcp
    async def ask(self, ctx: Context) -> str:
        answer = await ctx.elicit("who?", Form)
        ctx.notify.tools()
        return answer.content.name

    @mcp
    async def wait(self, ctx: Context) -> str:
        ctx.state.started.set()
        try:
            await trio.sleep_forever()
        finally:
            ctx.state.ended.set()
        return "never"

    @mcp(loop="asyncio")
    async def on_asyncio(self) -> int:
        return id(asyncio.get_running_loop())


class State:
    """The running call, as tests see it."""

    def __init__(self):
        self.started = threading.Event()
        self.ended = threading.Event()


class Calculator(Server, name="calculator", version="1", instructions="Count."):
    """A server in memory."""

    tools = [Kit]

    def __init__(self):
        self.state = State()

    @asynccontextmanager
    async def lifespan(self):
        yield self.state
