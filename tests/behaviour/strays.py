"""Handlers that raise exceptions they must not: a `Cancelled` kept from a scope that has ended."""

import threading
from collections import defaultdict
from contextlib import AbstractAsyncContextManager

import attrs
import trio
from kept import keep, stray
from passing import PassesOn

from noizu_mcp import (
    Context,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
    ToolError,
    Toolkit,
    mcp,
)
from noizu_mcp import fields as f

#: A `Cancelled` of a scope that has ended; for handlers that cannot make one.
KEPT = []


class StrayList(list):
    """A list that cannot be read."""

    def __iter__(self):
        raise KEPT[0]


def refuse(_instance, _attribute, value):
    if value == "stray":
        raise KEPT[0]


@attrs.frozen
class Checked:
    """An input with a check of its own."""

    name: str = attrs.field(validator=refuse)


class Check(Tool):
    """Has arguments that are checked by the author."""

    input = Checked

    def call(self, args):
        return args.name


class Strays(Toolkit):
    """One tool for each way to let a stray exception out; all of them are failures."""

    @mcp
    async def at_first(self):
        raise KEPT[0]

    @mcp
    async def after_a_wait(self):
        await stray()

    @mcp
    def thread(self):
        raise KEPT[0]

    @mcp(inline=True)
    def inline(self):
        raise KEPT[0]

    @mcp
    async def scope_of_its_own(self):
        with trio.CancelScope(), trio.move_on_after(60):
            await stray()

    @mcp
    async def shield_of_its_own(self):
        with trio.CancelScope(shield=True):
            await stray()

    @mcp
    async def group(self):
        raise BaseExceptionGroup("g", [KEPT[0], BaseExceptionGroup("h", [KEPT[0]])])

    @mcp
    async def group_with_others(self):
        await trio.lowlevel.checkpoint()
        raise BaseExceptionGroup("g", [KEPT[0], ValueError("secret"), SystemExit("secret")])

    @mcp(inline=True)
    def group_inline(self):
        raise BaseExceptionGroup("g", [KEPT[0], GeneratorExit(), ValueError("secret")])

    @mcp
    def group_in_thread(self):
        raise BaseExceptionGroup("g", [KEPT[0], ValueError("secret")])

    @mcp
    def interrupt_in_thread(self):
        raise KeyboardInterrupt

    @mcp
    def interrupt_in_a_group_in_thread(self):
        raise BaseExceptionGroup("g", [KeyboardInterrupt(), ValueError("secret")])

    @mcp
    async def interrupt_in_a_step(self, args, ctx: Context):
        await ctx.step(interrupt)

    @mcp
    async def beside_a_nursery(self, args, ctx: Context):
        """A failure in the nursery must end it; a stray cancellation there would be lost."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ctx.read_resource, "x:stray")
        return "nothing failed"

    @mcp
    async def unreadable(self):
        return StrayList()

    @mcp
    def unreadable_content(self):
        raise ToolError(StrayList())

    @mcp(max_concurrency=1)
    async def with_a_place(self):
        await stray()


def interrupt():
    raise KeyboardInterrupt


class Beside(Toolkit):
    """Tools that answer, or are really cancelled."""

    def __init__(self):
        self._released = defaultdict(trio.Event)
        self._cancelled = defaultdict(trio.Event)

    @mcp(input={"key": f.string(required=True)})
    async def hold(self, args, ctx: Context):
        await ctx.report_progress(1)
        await self._released[args.key].wait()
        return f"held {args.key}"

    @mcp(inline=True, input={"key": f.string(required=True)})
    def release(self, args):
        self._released[args.key].set()
        return "released"

    @mcp
    async def passes_on(self, args, ctx: Context):
        """Calls a tool that fails, and goes on."""
        result = await ctx.server.call_tool("after_a_wait", {}, ctx)
        return f"isError: {result.is_error}"

    @mcp
    async def advises(self):
        raise BaseExceptionGroup("g", [await keep(), ToolError("advice")])

    @mcp(timeout=0.05)
    async def too_slow(self):
        await trio.sleep_forever()

    @mcp(timeout=0.05)
    async def too_slow_and_stray(self):
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise KEPT[0] from None

    @mcp(timeout=0.05)
    async def too_slow_in_a_shield(self):
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await stray()

    @mcp(timeout=0.05)
    async def too_slow_and_all_at_once(self):
        try:
            await trio.sleep_forever()
        except trio.Cancelled as error:
            raise BaseExceptionGroup("g", [error, KEPT[0], ValueError("secret")]) from None

    @mcp(timeout=0.05)
    def too_slow_in_thread(self, args, ctx: Context):
        done = threading.Event()
        while not ctx.cancelled:
            done.wait(0.001)
        raise KeyboardInterrupt

    @mcp(input={"key": f.string(required=True)})
    async def cancelled(self, args, ctx: Context):
        """Adds a stray cancellation to its real one."""
        await ctx.report_progress(1)
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            self._cancelled[args.key].set()
            raise KEPT[0] from None

    @mcp(input={"key": f.string(required=True)})
    async def outcome(self, args):
        await self._cancelled[args.key].wait()
        return "cancelled"


class StrayJob(Tool, task="optional"):
    """Fails as a task, where the client knows tasks."""

    async def call(self, args, ctx: Context):
        await stray()


class StrayResource(Resource, uri="x:stray", subscribable=True):
    async def read(self):
        await stray()


class StrayInThread(Resource, uri="x:thread"):
    def read(self):
        raise KeyboardInterrupt


class StrayTemplate(ResourceTemplate, uri_template="x:of/{a}"):
    async def read(self, uri, args):
        await stray()

    async def list(self):
        await stray()

    async def complete(self, variable, prefix, ctx):
        await stray()


class StrayPrompt(Prompt):
    async def get(self):
        await stray()


class StrayPromptInThread(Prompt):
    def get(self):
        raise KeyboardInterrupt


class Straying(Server, name="straying", version="1"):
    """Everything that it offers lets stray exceptions out."""

    tools = [Strays, Beside, Check, StrayJob]
    resources = [StrayResource, StrayInThread, StrayTemplate]
    prompts = [StrayPrompt, StrayPromptInThread]

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        return _Keeping()

    async def subscribe(self, uri, ctx):
        await stray()


class _Keeping:
    """Keeps an exception while a server is served."""

    async def __aenter__(self):
        KEPT[:] = [await keep()]

    async def __aexit__(self, *_):
        pass


class StrayingBehind(PassesOn, Straying, name="straying", version="1"):
    """The same, behind overrides that pass everything on."""


class StrayOverrides(Server, name="stray-overrides", version="1"):
    """Overrides that let stray exceptions out themselves."""

    async def list_tools(self, cursor, ctx):
        await stray()

    async def call_tool(self, name, args, ctx):
        await stray()

    async def list_resources(self, cursor, ctx):
        await stray()

    async def list_resource_templates(self, cursor, ctx):
        await stray()

    async def read_resource(self, uri, ctx):
        await stray()

    async def list_prompts(self, cursor, ctx):
        await stray()

    async def get_prompt(self, name, args, ctx):
        await stray()

    async def complete(self, ref, argument, prefix, ctx):
        await stray()


class StrayInit(Server, name="stray-init", version="1"):
    tools = [Beside]

    async def init(self, ctx):
        await stray()
