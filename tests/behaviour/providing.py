"""A server whose tools come from a provider, and which mounts another one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from noizu_mcp import (
    Context,
    Mount,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Toolkit,
    ToolProvider,
    ToolResult,
    mcp,
    tool,
)


class Skills(ToolProvider):
    """Lists what stands in `store`; a skill waits for the event of its name."""

    def __init__(self):
        self.store = {}
        self.events = {}
        self.changed = None

    async def run(self, args, ctx: Context):
        event = self.events.get(args.get("wait"))
        if event is not None:
            await event.wait()
        return ToolResult(f"ran {args}")

    async def tools(self, ctx):
        await trio.lowlevel.checkpoint()
        return list(self.store.values())

    async def watch(self, changed):
        self.changed = changed
        await trio.sleep_forever()

    def unknown(self, name):
        return f"Unknown skill: {name[6:]}" if name.startswith("skill:") else None


class Manage(Toolkit):
    """Changes the skills while they are served."""

    def __init__(self, skills):
        self.skills = skills

    @mcp
    async def learn(self, name: str, count: int = 1):
        for number in range(count):
            self.skills.store = dict(self.skills.store)
            self.skills.store[name] = tool(
                self.skills.run,
                name=f"skill:{name}",
                description=f"[dynamic] version {number}",
                input_schema={"type": "object"},
            )
            self.skills.changed()

    @mcp
    async def forget(self, name: str):
        del self.skills.store[name]
        self.skills.changed("tools")

    @mcp
    async def hold(self, key: str):
        self.skills.events[key] = trio.Event()

    @mcp
    async def release(self, key: str):
        self.skills.events[key].set()


class Stock(Toolkit):
    @mcp
    async def count(self, ctx: Context) -> str:
        found = await ctx.read_resource("stock://all")
        return f"{ctx.server.options.name} {ctx.state} {found.contents[0].text}"

    @mcp
    async def ask(self, ctx: Context):
        return f"roots: {len(await ctx.list_roots())}"

    @mcp
    def update(self, ctx: Context):
        ctx.notify.resource_updated("stock://all")

    @mcp
    async def extend(self, ctx: Context):
        ctx.server.tools.add(tool(Stock(), prefix="more"))


class All(Resource, uri="stock://all", subscribable=True):
    async def read(self):
        return "everything"


class Item(ResourceTemplate, uri_template="stock://{item}/count"):
    async def read(self, item: str):
        return f"one {item}"


class Order(Prompt):
    async def get(self, what: str, ctx: Context):
        return f"{ctx.server.options.name}: order {what}"


class Store(Server, name="store", version="1"):
    tools = [Stock]
    resources = [All, Item]
    prompts = [Order]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[Any]:
        yield "open"
        await trio.lowlevel.checkpoint()


class Workshop(Server, name="workshop", version="1"):
    def __init__(self):
        skills = Skills()
        self.tools.add(Manage(skills))
        self.providers.add(skills, Mount(Store, prefix="store"))
