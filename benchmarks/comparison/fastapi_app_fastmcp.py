"""The application of docs/examples/fastapi_app.py, written for FastMCP."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiosqlite
from fastapi import FastAPI
from fastmcp import Context, FastMCP


class Shop:
    """The application: orders wait in a queue until a task has written them."""

    def __init__(self, database: aiosqlite.Connection) -> None:
        self.database = database
        self.waiting: asyncio.Queue[tuple[str, asyncio.Future[int]]] = asyncio.Queue()

    async def order(self, item: str) -> int:
        number: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        await self.waiting.put((item, number))
        return await number

    async def orders(self) -> list[str]:
        async with self.database.execute("select item from orders order by number") as rows:
            return [item async for (item,) in rows]

    async def work(self) -> None:
        while True:
            item, number = await self.waiting.get()
            query = "insert into orders (item) values (?) returning number"
            async with self.database.execute(query, [item]) as rows:
                async for (written,) in rows:
                    number.set_result(written)


mcp = FastMCP("shop", version="1.0.0")


@mcp.tool
async def order(item: str, ctx: Context) -> str:
    """Order something."""
    shop: Shop = app.state.shop
    await ctx.info(f"{shop.waiting.qsize()} orders are before yours")
    return f"order {await shop.order(item)}"


@mcp.tool
async def orders() -> list[str]:
    """List everything that was ordered."""
    shop: Shop = app.state.shop
    return await shop.orders()


server = mcp.http_app(path="/mcp")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    async with aiosqlite.connect(":memory:", isolation_level=None) as database:
        await database.execute("create table orders (number integer primary key, item text)")
        app.state.shop = Shop(database)
        async with asyncio.TaskGroup() as group, server.lifespan(app):
            worker = group.create_task(app.state.shop.work())
            yield
            worker.cancel()


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{item}")
async def post_order(item: str) -> int:
    shop: Shop = app.state.shop
    return await shop.order(item)


# After the routes: a mount at "/" takes everything that no route has taken.
app.mount("/", server)
