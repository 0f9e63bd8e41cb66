"""An application on FastAPI with its own queue and database, and an MCP server mounted in it.

The tools run on the asyncio loop of the application, in its thread. So they use its database and
its queue as the routes do.

Try it:

    pip install -e '.[http]' fastapi uvicorn aiosqlite
    uvicorn --app-dir docs/examples fastapi_app:app
    noizu-mcp call http://127.0.0.1:8000/mcp order item=tea
    noizu-mcp call http://127.0.0.1:8000/mcp orders
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiosqlite
from fastapi import FastAPI

from noizu_mcp import Context, Server


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


async def order(item: str, ctx: Context) -> str:
    """Order something."""
    shop: Shop = app.state.shop
    await ctx.info(f"{shop.waiting.qsize()} orders are before yours")
    return f"order {await shop.order(item)}"


async def orders() -> list[str]:
    """List everything that was ordered."""
    shop: Shop = app.state.shop
    return await shop.orders()


class ShopServer(Server, name="shop", version="1.0.0", loop="asyncio"):
    tools = [order, orders]


server = ShopServer().asgi(path="/mcp")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    async with aiosqlite.connect(":memory:", isolation_level=None) as database:
        await database.execute("create table orders (number integer primary key, item text)")
        app.state.shop = Shop(database)
        async with asyncio.TaskGroup() as group, server.lifespan():
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
