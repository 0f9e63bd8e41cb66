"""Handles, as type checkers see them."""

from typing import assert_type

from noizu_mcp import Context, Handle, Server, Toolkit, mcp


class Basket(Handle, ttl=60.0, max_size=1000):
    """A basket."""

    items: list[str] = []
    note: str | None = None


class Gift(Basket):
    """A basket with a card."""

    card: str


class Baskets(Toolkit):
    """Tools with handles."""

    @mcp
    async def open(self) -> Basket:
        return Basket(items=["tea"])

    @mcp
    async def add(self, basket: Basket, item: str, ctx: Context) -> Basket:
        basket.items = [*basket.items, item]
        assert_type(basket.id, str | None)
        assert_type(basket.expires_at, float | None)
        await ctx.save(basket)
        return basket

    @mcp
    async def drop(self, basket: Basket | None = None) -> str:
        if basket is not None:
            await basket.delete()
        return "dropped"

    @mcp
    async def wrap(self) -> list[Gift]:
        Gift()  # type: ignore[call-arg]
        Basket(["tea"])  # type: ignore[call-arg]
        Basket(id="x")  # type: ignore[call-arg]
        return [Gift(card="Happy birthday")]


class Shop(Server, name="shop", version="1"):
    tools = [Baskets]
