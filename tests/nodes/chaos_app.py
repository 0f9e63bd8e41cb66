"""The server of `chaos.py`: what it does is appended to a file, which all nodes share."""

import os
from pathlib import Path

import trio

from noizu_mcp import Accept, Context, Resource, Schema, Server, Toolkit, mcp

JOURNAL = Path(os.environ["CHAOS_JOURNAL"])


def note(line):
    with JOURNAL.open("a") as file:
        file.write(f"{line}\n")


class Form(Schema):
    number: int


class Kit(Toolkit):
    """Tools that note what they do."""

    @mcp
    async def run(self, *, key: str) -> str:
        """Do something that must not be done twice."""
        note(key)
        await trio.sleep(0.05)
        return key

    @mcp
    async def change(self, ctx: Context, *, key: str) -> str:
        """Change the resource."""
        note(key)
        ctx.notify.resource_updated("shop://tea")
        return key

    @mcp
    async def ask(self, ctx: Context, *, key: str) -> str:
        """Ask, and then do something once."""
        answer = await ctx.elicit(key, Form)
        assert isinstance(answer, Accept)

        async def pay() -> int:
            note(key)
            return 1

        await ctx.step(pay)
        return key

    @mcp(task="optional")
    async def work(self, *, key: str) -> str:
        """Work as a task."""
        note(key)
        await trio.sleep(1.0)
        return key


class Tea(Resource, uri="shop://tea", subscribable=True):
    """Tea."""

    async def read(self):
        return "tea"


class Shop(Server, name="shop", version="1.0.0", state_keys=["a key for tests of many nodes, 1"]):
    """A shop."""

    tools = [Kit]
    resources = [Tea]
