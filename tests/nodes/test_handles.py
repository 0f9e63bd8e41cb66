"""Handles of a server with several nodes, and of a server that is mounted in it."""

import pytest

from noizu_mcp import Handle, Mount, Server, Toolkit, mcp

from ..kit.messages import call
from .kit import Faulty, nodes


class Basket(Handle):
    """A basket of a shop."""

    items: list[str] = []


class Baskets(Toolkit):
    @mcp
    async def open_basket(self) -> Basket:
        """Open a basket."""
        return Basket()

    @mcp
    async def add_item(self, basket: Basket, item: str) -> Basket:
        """Add an item."""
        basket.items = [*basket.items, item]
        return basket


class Shop(Server, name="shop", version="1"):
    tools = [Baskets]


class Mall(Server, name="mall", version="1"):
    providers = [Mount(Shop())]


async def ask(wire, name, **arguments):
    """Call a tool; return its result."""
    return (await wire.send_modern(call(name, arguments))).json["result"]


@pytest.mark.parametrize("make", [Shop, Mall])
async def test_every_node_knows_a_handle(autojump_clock, make):
    """Each node changes it; the backend does not learn its id, nor what it holds."""
    backend = Faulty()
    async with nodes(make, backend=backend) as (one, two):
        opened = (await ask(one, "open_basket"))["structuredContent"]
        for wire, item in ((one, "tea"), (two, "milk"), (one, "cake")):
            basket = await ask(wire, "add_item", basket=opened["id"], item=item)
        (key,) = await backend.members("handles")
        stored = await backend.get(key)

    assert basket["structuredContent"] == {"id": opened["id"], "items": ["tea", "milk", "cake"]}
    assert opened["id"] not in key
    assert b"tea" not in stored.value


async def test_a_handle_cannot_be_stored_in_an_outage(autojump_clock):
    """The result says to try again, and nothing is lost."""
    backend = Faulty()
    async with nodes(Shop, backend=backend) as (one, two):
        id_ = (await ask(one, "open_basket"))["structuredContent"]["id"]
        backend.down = True
        refused = await ask(two, "add_item", basket=id_, item="tea")
        backend.down = False
        basket = await ask(one, "add_item", basket=id_, item="milk")

    assert refused["isError"]
    assert "try again" in refused["content"][0]["text"]
    assert basket["structuredContent"]["items"] == ["milk"]
