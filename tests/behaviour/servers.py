"""The servers under test, in memory and as a child process; their tools are in `kits.py`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pantry
import trio
from askers import Asked, AskedFor, AskedPrompt, Forgetful, Impatient, Questions
from holding import Holding
from jobs import Jobs
from kits import Changes, Control, Crashes, Echo, Notes, Quick, Returns
from passing import PassesOn
from providing import Workshop
from strays import Straying, StrayingBehind, StrayInit, StrayOverrides
from timely import Punctual, PunctualAlone, PunctualBehind

from noizu_mcp import Cache, Context, Icon, Limits, McpError, Server, Tool, prompt, tool
from noizu_mcp.tools import Catalog
from noizu_mcp.types import Page, ToolDefinition

# The servers of other modules, which tests find here by name.
__all__ = [
    "Holding",
    "Punctual",
    "PunctualAlone",
    "PunctualBehind",
    "StrayInit",
    "StrayOverrides",
    "Straying",
    "StrayingBehind",
    "Workshop",
]


class Kitchen(
    Server,
    name="kitchen",
    version="1.0",
    title="The kitchen",
    description="Everything on one server",
    website_url="https://example.com",
    icons=[Icon("https://example.com/k.png")],
    instructions="Try everything.",
    cache={"tools": Cache(ttl=1.5, scope="public")},
):
    tools = [
        Echo,
        tool(
            Echo, name="say_again", description="An alias of echo", title="Again", category="More"
        ),
        Quick,
        Returns,
        Crashes,
        Control,
        Notes,
        tool(Changes, hidden=True),
        tool(Catalog, hidden=True),
    ]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[Any]:
        yield trio.lowlevel.current_trio_token()


class Agency(Server, name="agency", version="1", task_poll_interval=0.01):
    """Calls that go on as tasks."""

    tools = [Jobs]


class Bureau(Server, name="bureau", version="1"):
    """The same, with a `call_tool` of its own."""

    tools = [Jobs]

    async def call_tool(self, name, args, ctx):
        if name == "work" and args.get("name") == "return":
            return f"{name} by hand"
        return await super().call_tool(name, args, ctx)


class Numbered(Tool, inline=True):
    """One of many."""

    def call(self):
        return "numbered"


class Paged(Server, name="paged", version="1", page_size=50):
    tools = [tool(Numbered, name=f"tool-{number:03}") for number in range(120)]


class Gated(Server, name="gated", version="1"):
    tools = [Notes, tool(Quick, name="secret", hidden=True), Changes]

    async def list_tools(self, cursor, ctx):
        if "unlocked" in ctx.session:
            return self.registry.list_tools(cursor, include_hidden=True)
        return await super().list_tools(cursor, ctx)


class Empty(Server, name="empty", version="1"):
    pass


class Bare(Server, name="bare", version="1"):
    """Declares every list, with nothing in it; overrides what the tests need to change them."""

    tools = []
    resources = ()
    prompts = []

    async def complete(self, ref, argument, prefix, ctx):
        changing = {"tools": self.tools, "prompts": self.prompts, "resources": self.resources}
        added = {"tools": Quick, "prompts": pantry.Review, "resources": pantry.File}
        for kind, offers in changing.items():
            if argument == f"add {kind}":
                offers.add(added[kind])
            if argument == f"remove {kind}":
                for item in list(offers):
                    offers.remove(item.definition.get("uriTemplate") or item.name)
        return [argument]


class Heir(Bare, name="heir", version="1"):
    """Inherits the lists, and declares none."""


class Hurried(Bare, name="hurried", version="1"):
    """Changes its lists as soon as `initialize` is being answered, and ever again."""

    def __init__(self):
        capabilities = self.registry.capabilities

        def replace_and_answer():
            self.tools.replace(Quick)
            return capabilities()

        self.registry.capabilities = replace_and_answer


class Broken(Server, name="broken", version="1"):
    """Has templates whose `list` fails in every way, between others."""

    tools = [Crashes, Echo]
    resources = [
        pantry.Text,
        pantry.Item,
        pantry.Failing,
        pantry.FailingInThread,
        pantry.FailingWithError,
        pantry.FailingInGroup,
        pantry.ListingWrong,
        pantry.Withheld,
        pantry.File,
    ]


class Overriding(Server, name="overriding", version="1"):
    """No registration at all."""

    async def list_tools(self, cursor, ctx):
        if cursor == "broken":
            return object()
        if cursor == "bad item":
            return [5]
        if cursor == "error":
            raise McpError(4003, "no such page")
        if cursor == "exit":
            raise SystemExit
        one = ToolDefinition("one", input_schema={"type": "object"})
        two = {"name": "two", "title": "Two", "inputSchema": {"type": "object"}}
        return Page([one], "next") if cursor is None else [two]

    async def call_tool(self, name, args, ctx):
        if name == "wait":
            await trio.sleep_forever()
        if name == "exit":
            raise SystemExit
        if name == "unknown":
            raise McpError(-32602, f"Unknown tool: {name}")
        if name == "parent":
            return await super().call_tool(name, args, ctx)
        return {"name": name, "args": args}


class Wrapping(Server, name="wrapping", version="1", tool_timeout=0.05):
    """Overrides what registered tools do."""

    tools = [Echo, Returns, Control]

    async def call_tool(self, name, args, ctx):
        return await super().call_tool(name, args, ctx)

    async def list_tools(self, cursor, ctx):
        await trio.sleep_forever()


class Open(Tool, inline=True):
    """Lets `init` go on; stateless requests do not wait for it."""

    def call(self, args, ctx: Context):
        ctx.server.opened.set()
        return "opened"


class Slow(Server, abstract=True):
    """Sets sessions up slowly."""

    def __init__(self):
        self.opened = trio.Event()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[Any]:
        yield trio.lowlevel.current_trio_token()


class Welcoming(Slow, name="welcoming", version="1", tool_timeout=0.05):
    tools = [Notes, Quick, Control, Open]

    async def init(self, ctx):
        await ctx.put_session("client", ctx.client_info.name)
        await ctx.info("hello")
        await trio.to_thread.run_sync(lambda: ctx.notice("from a thread"))
        await ctx.report_progress(1)
        try:
            ctx.request_id  # noqa: B018 - a property that raises
        except Exception as error:
            await ctx.put_session("id", str(error))
        await self.opened.wait()


class Unwelcoming(Slow, name="unwelcoming", version="1"):
    tools = [Quick, Open]

    async def init(self, ctx):
        await self.opened.wait()
        raise SystemExit("no")


class Tight(
    Server,
    name="tight",
    version="1",
    limits=Limits(message_size=2000, message_depth=10, in_flight=4, batch=3, subscriptions=2),
):
    tools = [Echo, Quick, Control]


class Asker(Server, name="asker", version="1.0"):
    """Asks in every way."""

    tools = [Questions]
    resources = [Asked, AskedFor, Impatient, Forgetful]
    prompts = [AskedPrompt]


class Replayer(Asker, name="asker", limits=Limits(parked=0)):
    """Runs its handlers again for each answer of 2026-07-28, as another process would."""


class OldNode(Asker, name="asker", state_keys=["the first secret of all servers, 1"]):
    """One of several nodes; its keys are about to be rotated."""


class NewNode(
    Asker,
    name="asker",
    state_keys=["the second secret of all servers", "the first secret of all servers, 1"],
):
    """A node with the new key, that still opens what the old one sealed."""


class Forgetting(Asker, name="forgetting", state_ttl=1e-9):
    """No client is fast enough for it."""


class Pantry(
    Server,
    name="pantry",
    version="1.0",
    cache={"read": Cache(ttl=2), "prompts": Cache(ttl=3, scope="public")},
):
    """Resources, templates, prompts and completion."""

    tools = [pantry.Touch]
    resources = [
        pantry.Text,
        pantry.Blob,
        pantry.Several,
        pantry.Json,
        pantry.Hidden,
        pantry.Crash,
        pantry.Nothing,
        pantry.Refuse,
        pantry.Slow,
        pantry.Item,
        pantry.Secret,
    ]
    prompts = [
        pantry.Review,
        pantry.Typed,
        pantry.Kinds,
        pantry.Raw,
        pantry.Hush,
        pantry.CrashPrompt,
        pantry.RefusePrompt,
        pantry.SlowPrompt,
        pantry.Many,
        pantry.ManyByMethod,
    ]


class Shelves(Server, name="shelves", version="1.0", page_size=2):
    """Lists in pages; a template that lists in a thread."""

    resources = [pantry.Text, pantry.Item, pantry.Json, pantry.File, pantry.Mute]
    prompts = [pantry.Review, pantry.Typed, pantry.Kinds]


class Computing(pantry.Computed, Server, name="computing", version="1.0"):
    """Registers nothing and computes all of it."""


class Unwatched(Server, name="unwatched", version="1.0"):
    """Has resources, and none that can be watched."""

    resources = [pantry.Json]


class Deciding(pantry.Decision, Server, name="deciding", version="1.0"):
    """Says itself who may watch what."""

    tools = [pantry.Touch, pantry.Heard]
    resources = [pantry.Text, pantry.Hidden]


class Inheriting(PassesOn, Server, name="inheriting", version="1.0"):
    """Overrides everything, and leaves everything as it is."""

    tools = [Quick]
    resources = [pantry.Text, pantry.Item]
    prompts = [pantry.Review, prompt(pantry.Raw, hidden=True)]
