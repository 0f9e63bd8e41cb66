"""Servers with handles, and a backend that fails, for the tests of handles."""

import attrs
import trio

from noizu_mcp import (
    Annotations,
    Context,
    Handle,
    InputRequest,
    InputRequired,
    Schema,
    Server,
    ToolError,
    Toolkit,
    ToolResult,
    mcp,
)
from noizu_mcp.backends import BackendUnavailable, Memory
from noizu_mcp.server import HandleBacking

READS = Annotations(read_only_hint=True)


class Basket(Handle, ttl=100.0, max_size=200):
    """A basket of a shop."""

    items: list[str] = []


class Order(Handle):
    lines: int = 0


class Name(Schema):
    name: str


class Baskets(Toolkit):
    """Tools with handles; `gates` hold calls up, and `seen` has objects that handlers had."""

    def __init__(self):
        self.gates = {}
        self.seen = []
        self.running = 0

    def gate(self, key):
        return self.gates.setdefault(key, trio.Event())

    @mcp
    async def open(self, items: list[str] | None = None) -> Basket:
        return Basket(items=items or [])

    @mcp
    async def order(self) -> Order:
        return Order()

    @mcp
    async def add(self, basket: Basket, item: str) -> Basket:
        basket.items = [*basket.items, item]
        self.seen.append(basket)
        return basket

    @mcp
    async def touch(self, basket: Basket, item: str = "") -> str:
        """Change it in place, and return something else."""
        if item:
            basket.items.append(item)
        return str(basket.expires_at)

    @mcp(annotations=READS)
    async def look(self, basket: Basket) -> Basket:
        return basket

    @mcp
    async def close(self, basket: Basket) -> str:
        await basket.delete()
        await basket.delete()
        return f"closed {len(basket.items)}"

    @mcp
    async def close_and_show(self, basket: Basket) -> Basket:
        await basket.delete()
        return basket

    @mcp
    async def close_and_fail(self, basket: Basket) -> str:
        await basket.delete()
        raise ToolError("closed, and failed")

    @mcp
    async def fail(self, basket: Basket, how: str) -> object:
        basket.items.append("lost")
        match how:
            case "advice":
                raise ToolError("not today")
            case "crash":
                raise RuntimeError("boom")
            case "result":
                return ToolResult.error("refused")
            case "contract":
                return object()
            case "types":
                basket.items = 5
                return "fine"
            case "large":
                basket.items = ["x" * 300]
                return "fine"
        return await trio.sleep_forever()

    @mcp
    async def hold(self, basket: Basket, key: str) -> Basket:
        """Wait at a gate, and count the calls that wait there."""
        self.running += 1
        try:
            await self.gate(key).wait()
            basket.items.append(key)
            return basket
        finally:
            self.running -= 1

    @mcp
    async def hold_and_close(self, basket: Basket, key: str) -> str:
        await self.gate(key).wait()
        await basket.delete()
        return "closed"

    @mcp(annotations=READS)
    async def hold_reading(self, basket: Basket, key: str) -> str:
        self.running += 1
        try:
            await self.gate(key).wait()
            basket.items.append("dropped")
            return str(len(basket.items))
        finally:
            self.running -= 1

    @mcp
    async def move(self, source: Basket, target: Basket, order: Order | None = None) -> str:
        target.items = [*target.items, *source.items]
        if source is not target:
            source.items = []
        if order is not None:
            order.lines += 1
        await trio.lowlevel.checkpoint()
        return f"{len(target.items)}"

    @mcp
    async def save(self, ctx: Context, basket: Basket, fail: bool = False) -> Basket:
        basket.items.append("saved")
        await ctx.save(basket)
        basket.items.append("returned")
        if fail:
            raise ToolError("after the save")
        return basket

    @mcp
    async def make(self, ctx: Context, more: bool = False) -> str:
        """Store a new handle without returning it."""
        basket = Basket(items=["made"])
        await ctx.save(basket)
        self.seen.append(basket)
        if more:
            basket.items.append("more")
            return basket
        return basket.id

    @mcp
    async def many(self, count: int, fail: bool = False) -> list[Basket]:
        self.seen = [Basket(items=[str(number)]) for number in range(count)]
        if fail:
            self.seen[-1].items = ["x" * 300]
        return [*self.seen, *self.seen[:1]]

    @mcp
    async def bare(self):
        return {"one": Basket(items=["bare"]), "two": ToolResult}["one"]

    @mcp
    def threaded(self, basket: Basket, drop: bool = False) -> Basket:
        basket.items.append("thread")
        if drop:
            trio.from_thread.run(basket.delete)
        return basket

    @mcp
    async def ask(self, basket: Basket, ctx: Context) -> Basket:
        basket.items.append("asked")
        answer = await ctx.elicit("Who?", Name)
        basket.items.append(answer.content.name)
        return basket

    @mcp
    async def ask_by_hand(self, basket: Basket, ctx: Context) -> object:
        basket.items.append("run")
        if not ctx.input_responses:
            form = {"type": "object", "properties": {"name": {"type": "string"}}}
            params = {"mode": "form", "message": "Who?", "requestedSchema": form}
            return InputRequired({"who": InputRequest("elicitation/create", params)})
        return basket

    @mcp(task="optional")
    async def work(self, basket: Basket) -> str:
        basket.items.append("worked")
        return "worked"

    # Misuse

    @mcp(annotations=READS)
    async def change_reading(self, ctx: Context, basket: Basket, how: str) -> object:
        if how == "delete":
            await basket.delete()
        elif how == "save":
            await ctx.save(basket)
        elif how == "save new":
            await ctx.save(Basket())
        return Basket()

    @mcp
    async def use_late(self, ctx: Context, how: str) -> object:
        """Use the object of an earlier call."""
        basket = self.seen[-1]
        if how == "delete":
            await basket.delete()
        elif how == "save":
            await ctx.save(basket)
        return basket

    @mcp
    async def save_anything(self, ctx: Context, how: str) -> str:
        if how == "deleted":
            basket = Basket()
            await ctx.save(basket)
            await basket.delete()
            await ctx.save(basket)
        await ctx.save("text")
        return ""

    @mcp(inline=True)
    def inline(self):
        return Basket()

    # Calls within calls

    @mcp
    async def add_twice(self, ctx: Context, basket: Basket, inner: str = "add") -> Basket:
        basket.items.append("outer")
        told = await ctx.call_tool(inner, {"basket": basket.id, "item": "inner"})
        if told.is_error:
            basket.items.append(told.text)
        basket.items.append("end")
        return basket

    @mcp
    async def add_beside(self, ctx: Context, basket: Basket) -> Basket:
        async def add(item):
            await ctx.call_tool("add_slowly", {"basket": basket.id, "item": item})

        async with trio.open_nursery() as nursery:
            for item in "abc":
                nursery.start_soon(add, item)
        return basket

    @mcp
    async def add_slowly(self, basket: Basket, item: str) -> str:
        items = basket.items
        await trio.lowlevel.checkpoint()
        basket.items = [*items, item]
        return ""

    @mcp
    async def add_and_fail(self, basket: Basket, item: str) -> str:
        basket.items.append(item)
        raise ToolError("inner failed")

    @mcp(annotations=READS)
    async def read_outside(self, ctx: Context, basket: Basket) -> str:
        told = await ctx.call_tool("add", {"basket": basket.id, "item": "inner"})
        return told.text

    @mcp(annotations=READS)
    async def peek(self, basket: Basket, item: str) -> str:
        basket.items.append(item)
        return ",".join(basket.items)

    @mcp
    async def close_inside(self, ctx: Context, basket: Basket) -> str:
        await ctx.call_tool("close", {"basket": basket.id})
        told = await ctx.call_tool("add", {"basket": basket.id, "item": "x"})
        return told.text


class Shop(Server, name="shop", version="1.0.0"):
    def __init__(self):
        self.kit = Baskets()
        self.tools.add(self.kit)


class Failing(Memory):
    """A backend that fails while `down` names the operation, and is slow while it waits."""

    down = ""

    async def get(self, key, **options):
        self._check("get")
        return await super().get(key, **options)

    async def put(self, key, value, **options):
        self._check("put")
        if key.startswith("lock:"):
            self._check("lock")
            self._check("renew" if options["version"] else "take")
        elif self.down == "write":
            raise BackendUnavailable("down")
        return await super().put(key, value, **options)

    async def delete(self, key, **options):
        self._check("unlock" if key.startswith("lock:") else "delete")
        return await super().delete(key, **options)

    def _check(self, operation):
        if self.down == operation:
            raise BackendUnavailable("down")


class Node(Shop, name="shop", version="1.0.0"):
    """A node of a shop, on a backend that is open."""

    def __init__(self, backend, **seals):
        super().__init__()
        self.backing = HandleBacking(backend, self.options.limits, **seals)

    def local_handles(self):
        return self.backing


def text_of(result):
    """Return the text of a failed result."""
    assert result.is_error
    return result.text


#: The tools that return a basket; those that make one come first.
KNOWN = "open, many, add, look, close_and_show, hold, save, threaded, ask, add_twice, add_beside"


def unknown():
    """Return the one answer to every id that is not good."""
    text = "No such Basket: basket is unknown, has expired, or was deleted."
    return f"{text} Tools that return one: {KNOWN}"


class Client:
    """Short calls of a shop."""

    def __init__(self, client):
        self.client = client

    async def __call__(self, tool, **arguments):
        return await self.client.call_tool(tool, arguments)

    async def open(self, *items):
        return (await self("open", items=list(items))).structured["id"]

    async def items(self, basket):
        return (await self("look", basket=basket)).structured["items"]


def replaced(limits, **changes):
    """Return limits with changes."""
    return attrs.evolve(limits, **changes)
