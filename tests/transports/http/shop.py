"""The server under test."""

import trio

from noizu_mcp import Resource, Schema, Server, Tool, field


class Echo(Tool):
    """Answers at once."""

    class Input(Schema):
        text: str = "x"

    async def call(self, args):
        return args.text


class Wait(Tool):
    """Answers after a while, and reports before it if asked to."""

    class Input(Schema):
        seconds: float = 0.0
        report: bool = False

    async def call(self, args, ctx):
        if args.report:
            await ctx.report_progress(1)
        await trio.sleep(args.seconds)
        return "done"


class Stuck(Tool, timeout=None):
    """Resists for a while when it is cancelled."""

    class Input(Schema):
        seconds: float = 3.0

    async def call(self, args):
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(args.seconds)


class Ask(Tool, timeout=None):
    """Asks the user."""

    class Input(Schema):
        name: str = "Ann"

    class Form(Schema):
        ok: bool

    async def call(self, args, ctx):
        answer = await ctx.elicit(f"Is it {args.name}?", self.Form, timeout=None)
        return type(answer).__name__


class Flood(Tool, timeout=None):
    """Sends a lot."""

    class Input(Schema):
        count: int = 100
        patient: bool = False

    async def call(self, args, ctx):
        for _ in range(args.count):
            sent = ctx.info("x" * 100)
            if args.patient:
                await sent
        await trio.sleep(1)
        return "done"


class Poll(Tool):
    """Lets the client come back."""

    class Input(Schema):
        sync: bool = False

    async def call(self, args, ctx):
        await ctx.release_stream(retry_after=0.5)
        await trio.sleep(2)
        await ctx.release_stream()
        return "polled"


class Local(Tool):
    """Mirrors arguments in headers."""

    class Input(Schema):
        region: str = field(default="", header="Region")
        count: int = field(default=0, header="Count")

    async def call(self, args):
        return f"{args.region} {args.count}"


class Keep(Tool):
    """Remembers something for the session."""

    class Input(Schema):
        value: str | None = None

    async def call(self, args, ctx):
        before = ctx.session.get("value", "nothing")
        if args.value:
            await ctx.put_session("value", args.value)
        return before


class Board(Resource, uri="board://all", subscribable=True):
    """The text of the board."""

    async def read(self, uri, ctx):
        return "text"


class Shop(Server, name="shop", version="1"):
    tools = [Echo, Wait, Stuck, Ask, Flood, Poll, Local, Keep]
    resources = [Board]

    def __init__(self):
        super().__init__()
        self.left = []

    async def unsubscribe(self, uri, ctx):
        await trio.lowlevel.checkpoint()
        self.left.append(uri)


class ShopBehind(Shop, name="shop", version="1"):
    """The same behind an override that passes everything through."""

    async def call_tool(self, name, args, ctx):
        return await super().call_tool(name, args, ctx)
