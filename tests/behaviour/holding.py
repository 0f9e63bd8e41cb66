"""Tools with handles."""

import trio

from noizu_mcp import Annotations, Context, Handle, Schema, Server, ToolError, Toolkit, mcp


class Basket(Handle, max_size=200):
    """A basket of a shop."""

    items: list[str] = []


class Name(Schema):
    name: str


class Baskets(Toolkit):
    """Makes baskets, changes them, and holds calls up."""

    def __init__(self):
        self._gates = {}
        self._inside = 0

    def _gate(self, key):
        return self._gates.setdefault(key, trio.Event())

    @mcp
    async def open(self, items: list[str] = []) -> Basket:  # noqa: B006 - each call has its own
        return Basket(items=items)

    @mcp
    async def add(self, basket: Basket, item: str) -> Basket:
        basket.items.append(item)
        return basket

    @mcp
    def add_in_thread(self, basket: Basket, item: str) -> str:
        basket.items.append(item)
        return "added"

    @mcp
    async def add_and_fail(self, basket: Basket, item: str) -> str:
        basket.items.append(item)
        raise ToolError("failed")

    @mcp(annotations=Annotations(read_only_hint=True))
    async def look(self, basket: Basket) -> Basket:
        return basket

    @mcp
    async def drop(self, basket: Basket) -> str:
        await basket.delete()
        return "dropped"

    @mcp
    async def hold(self, ctx: Context, basket: Basket, key: str) -> str:
        """Report progress, and wait for `release`."""
        self._inside += 1
        try:
            basket.items.append(key)
            await ctx.report_progress(1)
            await self._gate(key).wait()
            return "held"
        finally:
            self._inside -= 1

    @mcp(inline=True)
    def release(self, key: str) -> str:
        self._gate(key).set()
        return str(self._inside)

    @mcp(timeout=0.05)
    async def too_slow(self, basket: Basket) -> str:
        basket.items.append("late")
        return await trio.sleep_forever()

    @mcp
    async def ask(self, ctx: Context, basket: Basket) -> str:
        basket.items.append("asked")
        answer = await ctx.elicit("Who?", Name)
        basket.items.append(answer.content.name)
        return "answered"


class Holding(Server, name="holding", version="1"):
    tools = [Baskets]
