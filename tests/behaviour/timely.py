"""Components with timeouts, headers, limits and output contracts, plain and behind overrides."""

from collections import defaultdict

import trio
from passing import PassesOn

from noizu_mcp import (
    Accept,
    Context,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Tool,
    Toolkit,
    field,
    mcp,
)
from noizu_mcp import fields as f


class Name(Schema):
    name: str


class Timely(Toolkit):
    """The name of each tool tells its time; `default` has the timeout of the server."""

    def __init__(self):
        self._released = defaultdict(trio.Event)

    @mcp(timeout=0.05)
    async def slow(self):
        await trio.sleep_forever()

    @mcp(timeout=0.05)
    def slow_thread(self, args, ctx: Context):
        while not ctx.cancelled:
            trio.from_thread.run(trio.lowlevel.checkpoint)

    @mcp(timeout=0.05)
    async def slow_and_crashing(self):
        """Fails while it is cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._crash_at_the_end)
            await trio.sleep_forever()

    async def _crash_at_the_end(self):
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("on the way out")

    @mcp
    async def default(self):
        await trio.sleep_forever()

    @mcp(timeout=None, input={"key": f.string(required=True)})
    async def patient(self, args, ctx: Context):
        await ctx.report_progress(1)
        await self._released[args.key].wait()
        return f"patient {args.key}"

    @mcp(inline=True, input={"key": f.string(required=True)})
    def release(self, args):
        self._released[args.key].set()
        return "released"

    @mcp(timeout=None, max_concurrency=1, input={"key": f.string(required=True)})
    async def one_at_a_time(self, args, ctx: Context):
        return await self.patient(args, ctx)

    @mcp(timeout=None, input={"name": str, "key": f.string()})
    async def calls(self, args, ctx: Context):
        """Call a tool of the server, whose time is its own."""
        arguments = {"key": args.key} if args.key else {}
        result = await ctx.server.call_tool(args.name, arguments, ctx)
        return f"{args.name}: {result.content[0].text}"

    @mcp(timeout=0.05)
    async def hurries(self, args, ctx: Context):
        """Call a tool that has more time than this one."""
        return await ctx.server.call_tool("patient", {"key": "never"}, ctx)

    @mcp(timeout=None, input={"uri": str})
    async def reads(self, args, ctx: Context):
        try:
            result = await ctx.read_resource(args.uri)
        except McpError as error:
            return f"{error.code} {error.message}"
        return result.contents[0].text

    @mcp(timeout=None, input={"name": str})
    async def gets(self, args, ctx: Context):
        try:
            result = await ctx.server.get_prompt(args.name, {}, ctx)
        except McpError as error:
            return f"{error.code} {error.message}"
        return result.to_wire()["messages"][0]["content"]["text"]

    @mcp(timeout=0.1)
    async def asks(self, args, ctx: Context):
        answer = await ctx.elicit("Name?", Name)
        return answer.content.name if isinstance(answer, Accept) else "nobody"

    @mcp(timeout=0.1)
    async def asks_twice_at_once(self, args, ctx: Context):
        names = {}

        async def ask(what):
            names[what] = (await ctx.elicit(what, Name)).content.name

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "first")
            nursery.start_soon(ask, "second")
        return f"{names['first']} {names['second']}"

    @mcp(timeout=0.1)
    async def asks_and_waits(self, args, ctx: Context):
        await ctx.elicit("Name?", Name)
        await trio.sleep_forever()

    @mcp
    async def crashes(self):
        raise RuntimeError("secret")

    @mcp
    async def breaks_its_contract(self) -> list[int]:
        return ["secret"]

    @mcp(requires="tools:guarded")
    async def guarded(self):
        return "secret"


class Regional(Tool):
    """Has arguments that a proxy reads from headers."""

    class Input(Schema):
        region: str = field(header="Region")

    def call(self, args: Input):
        return args.region


class TimelyJob(Tool, task="optional", timeout=0.05):
    """Runs out of time as a task, too."""

    async def call(self):
        await trio.sleep_forever()


class PatientJob(Tool, task="optional"):
    """Has the life of its task; the timeout of the server is for requests."""

    input = {"key": f.string(required=True)}

    async def call(self, args, ctx: Context):
        return await ctx.server.call_tool("patient", {"key": args.key}, ctx)


class SlowResource(Resource, uri="x:slow", timeout=0.05):
    async def read(self):
        await trio.sleep_forever()


class DefaultResource(Resource, uri="x:default"):
    async def read(self):
        await trio.sleep_forever()


class QuickResource(Resource, uri="x:quick", timeout=None):
    def read(self):
        return "read"


class SlowTemplate(ResourceTemplate, uri_template="x:slow/{a}", timeout=0.05):
    async def read(self, uri, args):
        await trio.sleep_forever()


class GuardedResource(Resource, uri="x:guarded", requires="read:guarded"):
    def read(self):
        return "secret"


class SlowPrompt(Prompt, timeout=0.05):
    async def get(self):
        await trio.sleep_forever()


class DefaultPrompt(Prompt):
    async def get(self):
        await trio.sleep_forever()


class QuickPrompt(Prompt, timeout=None):
    def get(self):
        return "got"


class GuardedPrompt(Prompt, requires="get:guarded"):
    def get(self):
        return "secret"


class Punctual(Server, name="punctual", version="1", tool_timeout=0.15, task_poll_interval=0.01):
    """Overrides nothing."""

    tools = [Timely, Regional, TimelyJob, PatientJob]
    resources = [SlowResource, DefaultResource, QuickResource, SlowTemplate, GuardedResource]
    prompts = [SlowPrompt, DefaultPrompt, QuickPrompt, GuardedPrompt]

    def __init__(self):
        self.heard = []
        self.telemetry.add(self.heard.append)


class PunctualBehind(PassesOn, Punctual, name="punctual", version="1"):
    """The same, behind overrides that pass everything on."""


class PunctualAlone(Punctual, name="punctual", version="1"):
    """Overrides that answer by themselves, too late."""

    async def call_tool(self, name, args, ctx):
        if name in ("release", "patient"):
            return await super().call_tool(name, args, ctx)
        if name == "alias":
            return await super().call_tool("slow", args, ctx)
        return await trio.sleep_forever()

    async def read_resource(self, uri, ctx):
        await trio.sleep_forever()

    async def get_prompt(self, name, args, ctx):
        await trio.sleep_forever()
