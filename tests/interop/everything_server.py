"""The everything server, with what a foreign client needs to see the rest of it.

Beside the fixture: tools that change resources, and questions that the fixture does not ask. The
side effect of `confer` is a line in the file named by `INTEROP_JOURNAL`.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import trio

from noizu_mcp import Accept, Context, Resource, Schema, Toolkit, mcp

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))
Everything: Any = import_module("everything").Everything
journal: Any = import_module("fixture_server").journal

LOOK_UP = {
    "name": "look_up",
    "description": "Look a word up",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}},
}


class Word(Schema):
    word: str


async def ask(ctx: Context, message: str) -> str:
    answer = await ctx.elicit(message, Word)
    return answer.content.word if isinstance(answer, Accept) else answer.action


class Questions(Toolkit):
    """Questions that the fixture does not ask."""

    @mcp
    async def confer(self, args: dict, ctx: Context) -> str:
        """Ask in sequence, in a loop and concurrently, with a side effect in between."""
        said = [await ask(ctx, "first")]
        said.append(await ctx.step(journal, f"booked for {said[0]}"))
        said += [await ask(ctx, f"loop {number}") for number in range(2)]
        together: dict[str, str] = {}

        async def one(key: str) -> None:
            together[key] = await ask(ctx, key)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "left")
            nursery.start_soon(one, "right")
        return json.dumps([*said, dict(sorted(together.items()))])

    @mcp
    async def open_page(self, args: dict, ctx: Context) -> str:
        """Ask the user to open a page."""
        return (await ctx.elicit_url("Sign in", "https://example.com/login")).action

    @mcp
    async def roots(self, args: dict, ctx: Context) -> str:
        """Answer with the roots of the client."""
        return json.dumps([[root.uri, root.name] for root in await ctx.list_roots()])

    @mcp
    async def use_tools(self, args: dict, ctx: Context) -> str:
        """Offer a tool to the client's model."""
        answer = await ctx.sample(
            "What is a plum?",
            max_tokens=10,
            system_prompt="Be brief.",
            temperature=0.5,
            stop_sequences=["."],
            tools=[LOOK_UP],
            tool_choice={"mode": "auto"},
        )
        return f"{answer.model} {answer.stop_reason}: {answer.text}"

    @mcp
    async def linger(self, args: dict, ctx: Context) -> str:
        """Ask, and note in the journal that the call was cancelled."""
        try:
            return await ask(ctx, "linger")
        except trio.Cancelled:
            journal("gave up")
            raise


class Triggers(Toolkit):
    """Changes of resources."""

    @mcp
    async def touch(self, args: dict, ctx: Context) -> str:
        """Say that two resources changed, of which clients may watch one."""
        ctx.server.notify_resource_updated("test://static-text")
        ctx.server.notify_resource_updated("test://watched-resource")
        return "touched"

    @mcp
    async def trigger_resource_change(self, args: dict, ctx: Context) -> str:
        """Change the list of resources, and change it back."""
        ctx.server.resources.add(Passing)
        ctx.server.resources.remove("test://passing")
        return "Resources changed"


class Passing(Resource, uri="test://passing"):
    """A resource that is gone at once."""

    async def read(self) -> str:
        return "Still here"


class Asking(Resource, uri="test://asking", hidden=True):
    """A resource that asks who reads it."""

    async def read(self, uri: str, ctx: Context) -> str:
        return f"Read by {await ask(ctx, 'reader')}"


class Interop(Everything, name="everything", version="1.0.0"):
    """The everything server and more."""

    tools = [*Everything.tools, Questions, Triggers]
    resources = [*Everything.resources, Asking]
