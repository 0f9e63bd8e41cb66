"""Tools whose calls become tasks."""

from collections import defaultdict

import trio

from noizu_mcp import (
    Accept,
    Context,
    InputRequest,
    InputRequired,
    McpError,
    Schema,
    ToolError,
    Toolkit,
    mcp,
)


class Name(Schema):
    name: str


def form(message):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return InputRequest("elicitation/create", {"message": message, "requestedSchema": schema})


class Jobs(Toolkit):
    def __init__(self):
        self.released = defaultdict(trio.Event)
        self.counts = defaultdict(int)

    @mcp
    async def greet(self, *, name: str) -> str:
        return f"Hello, {name}!"

    @mcp
    async def release(self, *, name: str) -> str:
        """Let the work of a name go on."""
        self.released[name].set()
        return "released"

    @mcp(task="optional")
    async def work(self, *, name: str = "x") -> str:
        """Wait until the work of a name may go on."""
        await self.released[name].wait()
        return f"did {name}"

    @mcp(task="optional")
    def think(self, *, name: str) -> str:
        """Work in a thread."""
        return f"thought of {name}"

    @mcp(task="optional")
    def ponder(self, args, ctx: Context) -> str:
        """Work in a thread, and say so."""
        ctx.report_progress(1, message="pondering")
        return f"cancelled: {ctx.cancelled}"

    @mcp(task="required")
    async def fail(self) -> str:
        raise ToolError("no luck")

    @mcp(task="optional")
    async def crash(self) -> str:
        raise RuntimeError("secret")

    @mcp(task="optional")
    async def refuse(self, args, ctx: Context):
        raise McpError(4003, "not now", {"why": "because"})

    @mcp(task="optional")
    async def refuse_badly(self, args, ctx: Context):
        raise McpError(4003, "not now", object())

    @mcp(task="optional")
    async def babble(self):
        return {"content": [{"type": "text", "text": "x"}], "_meta": {"a": 1}}

    @mcp(task="optional", timeout=0.01)
    async def dawdle(self) -> str:
        await trio.sleep_forever()

    @mcp(task="optional", timeout=0.05)
    async def be_patient(self, args, ctx: Context):
        """Its time stands still while it asks."""
        answer = await ctx.elicit("Name?", Name)
        return answer.content.name

    @mcp(task="optional")
    async def confirm(self, args, ctx: Context):
        answer = await ctx.elicit("Name?", Name)
        return answer.content.name if isinstance(answer, Accept) else answer.action

    @mcp(task="optional")
    async def both(self, args, ctx: Context):
        """Ask two things at once, then a third one."""
        names = {}

        async def ask(what):
            names[what] = (await ctx.elicit(f"{what}?", Name)).content.name

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "first")
            nursery.start_soon(ask, "last")
        third = (await ctx.elicit("first?", Name)).content.name
        return f"{names['first']} {names['last']} {third}"

    @mcp(task="optional")
    async def model(self, args, ctx: Context):
        roots = await ctx.list_roots()
        answer = await ctx.sample(f"Where is {roots[0].uri}?", max_tokens=5)
        return answer.text

    @mcp(task="optional")
    async def by_hand(self, args, ctx: Context):
        """Ask by hand: run again with the answers, under keys of its own."""
        self.counts["by_hand"] += 1
        if not ctx.input_responses:
            return InputRequired({"a": form("a?"), "b": form("b?")}, state="asked")
        given = {key: each["content"]["name"] for key, each in ctx.input_responses.items()}
        return f"{given['a']} {given['b']} {ctx.request_state}"

    @mcp(task="optional")
    async def report(self, args, ctx: Context):
        """Say how far it is."""
        await ctx.info("not for anybody")
        await ctx.report_progress(1, 4)
        await self.released["a"].wait()
        await ctx.report_progress(2)
        await self.released["b"].wait()
        await ctx.report_progress(3, 4, "nearly")
        await self.released["c"].wait()
        return f"reported as {ctx.request_id}, cancelled: {ctx.cancelled}"

    @mcp(task="optional", starts_task=True)
    async def later(self, ctx: Context, *, go_on: bool = True):
        """Ask, do something once, and only then begin the task."""
        first = (await ctx.elicit("First?", Name)).content.name
        done = await ctx.step(self.count, first)
        if not go_on:
            return f"{first} {done}, at once"
        await ctx.start_task()
        last = (await ctx.elicit("Last?", Name)).content.name
        await ctx.start_task()  # it has begun
        again = await ctx.step(self.count, first)
        return f"{first} {last} {done} {again}"

    def count(self, name):
        self.counts[name] += 1
        return self.counts[name]

    @mcp(task="required", starts_task=True)
    async def by_hand_later(self, args, ctx: Context):
        """Ask by hand before the task begins."""
        if not ctx.input_responses:
            return InputRequired({"a": form("a?")}, state="asked")
        await ctx.start_task()
        return f"{ctx.input_responses['a']['content']['name']} {ctx.request_state}"

    @mcp(task="optional", starts_task=True)
    async def at_once(self, ctx: Context, *, stubborn: bool = False):
        """Begin the task before anything else, twice; the second time perhaps too late."""
        begun = trio.Event()

        async def first():
            try:
                await ctx.start_task()
            finally:
                begun.set()

        async def second():
            with trio.CancelScope(shield=stubborn) as scope:
                await begun.wait()
                scope.deadline = trio.current_time() + 0.01
                await ctx.start_task()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            nursery.start_soon(second)
        return "begun"

    @mcp(task="optional")
    async def begin_wrongly(self, args, ctx: Context):
        """Begin a task that the framework has begun."""
        await ctx.start_task()
