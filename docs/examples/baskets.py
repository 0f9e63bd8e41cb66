"""Baskets of a shop: objects that a server keeps between calls, under handles.

`open_basket` returns a basket with its id. The other tools take this id, and their methods get the
object. What a method changes is stored when it returns.

A basket lives in the process of the server, so these commands use a server that keeps running:

    noizu-mcp run docs/examples/baskets.py --http
    noizu-mcp call http://127.0.0.1:8000/mcp open_basket
    noizu-mcp call http://127.0.0.1:8000/mcp add_item basket=ID item=tea
    noizu-mcp call http://127.0.0.1:8000/mcp order basket=ID
"""

from noizu_mcp import Accept, Annotations, Context, Handle, Schema, Server, ToolError, Toolkit, mcp

PRICES = {"tea": 4, "milk": 1, "salt": 2}


class Basket(Handle, ttl=1800.0, max_size=4096):
    """A basket of the shop."""

    items: dict[str, int] = {}

    def total(self) -> int:
        """Add up the prices."""
        return sum(PRICES[item] * count for item, count in self.items.items())


class Confirmation(Schema):
    """The answer of a person."""

    buy: bool


class Baskets(Toolkit):
    """Buy things."""

    @mcp
    async def open_basket(self) -> Basket:
        """Open an empty basket."""
        return Basket()

    @mcp
    async def add_item(self, basket: Basket, item: str, count: int = 1) -> Basket:
        """Put something into a basket.

        Args:
            basket: The basket to put it into.
            item: What to buy: tea, milk or salt.
            count: How many of them.
        """
        if item not in PRICES:
            raise ToolError(f"No {item} here; there are: {', '.join(PRICES)}")
        basket.items[item] = basket.items.get(item, 0) + count
        return basket

    @mcp(annotations=Annotations(read_only_hint=True))
    async def price(self, basket: Basket) -> int:
        """Add up the prices in a basket."""
        return basket.total()

    @mcp
    async def merge(self, source: Basket, target: Basket) -> Basket:
        """Move everything into another basket, and drop the first one.

        Args:
            source: The basket to empty and to drop.
            target: The basket that gets everything.
        """
        for item, count in source.items.items():
            target.items[item] = target.items.get(item, 0) + count
        await source.delete()
        return target

    @mcp
    async def order(self, basket: Basket, ctx: Context) -> str:
        """Order what is in a basket, once the user has agreed."""
        answer = await ctx.elicit(f"Buy this for {basket.total()}?", Confirmation)
        if not (isinstance(answer, Accept) and answer.content.buy):
            raise ToolError("The user does not want to buy it")
        await basket.delete()
        return f"Ordered for {basket.total()}"


class Shop(Server, name="shop", version="1.0.0"):
    tools = [Baskets]


if __name__ == "__main__":
    Shop().run()
