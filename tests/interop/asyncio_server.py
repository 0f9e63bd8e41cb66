"""A server whose lifespan and handlers run on asyncio; clients of other packages drive it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from noizu_mcp import Accept, Context, Schema, Server

Mails = asyncio.Queue[str]


class Name(Schema):
    name: str


async def order(what: str, ctx: Context) -> str:
    """Send a mail, and ask twice."""
    mails: Mails = ctx.state
    await mails.put(what)
    names = []
    for question in ("Who pays?", "Who gets it?"):
        answer = await ctx.elicit(question, Name)
        names.append(answer.content.name if isinstance(answer, Accept) else answer.action)
        await asyncio.sleep(0)
    return f"{len(names)} answers, {mails.qsize()} mails"


class Ordering(Server, name="ordering", version="1.0.0", loop="asyncio"):
    tools = [order]

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[Mails]:
        async with asyncio.TaskGroup():  # it needs an asyncio task
            yield asyncio.Queue()
