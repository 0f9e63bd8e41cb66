"""A server that shows every behaviour that a foreign client is asked to drive.

It writes what only the server can see (that a call was cancelled, that the lifespan ended) as
lines to the file named by `INTEROP_JOURNAL`.
"""

import base64
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from noizu_mcp import (
    Annotations,
    Content,
    Context,
    McpError,
    ResourceContents,
    Schema,
    Server,
    Tool,
    ToolError,
    Toolkit,
    field,
    mcp,
    tool,
)

PIXEL = base64.b64decode("iVBORw0KGgo=")


@attrs.define
class State:
    """A lifespan: its value lives as long as the server."""

    cancelled: trio.Event = attrs.field(factory=trio.Event)
    proceed: trio.Event = attrs.field(factory=trio.Event)
    arrived: int = 0
    together: trio.Event = attrs.field(factory=trio.Event)


def journal(line: str) -> str:
    path = os.environ.get("INTEROP_JOURNAL")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    return line


class Echo(Tool, title="Echo a text", annotations=Annotations(read_only_hint=True)):
    """Answer with the text that came."""

    class Input(Schema):
        message: str = field(min_length=1, description="What to say")
        repeat: int = field(default=1, min=1, max=100_000)

    async def call(self, args: Input) -> str:
        return args.message * args.repeat


class Weigh(Tool):
    """Answer with an object that has a schema."""

    class Input(Schema):
        city: str

    class Output(Schema):
        city: str
        celsius: float

    async def call(self, args: Input) -> Output:
        return self.Output(city=args.city, celsius=21.5)


class Count(Tool):
    """Answer with a bare integer that has a schema."""

    class Input(Schema):
        text: str

    async def call(self, args: Input) -> int:
        return len(args.text)


class Mixed(Tool):
    """Answer with one content block of each kind."""

    async def call(self) -> list[Content]:
        return [
            Content.text("words"),
            Content.image(PIXEL, "image/png"),
            Content.audio(b"RIFF", "audio/wav"),
            Content.resource_link("file:///notes.txt", "notes", mime_type="text/plain"),
            Content.resource(ResourceContents("file:///a.txt", text="inside")),
        ]


class Failures(Toolkit):
    """Each way in which a call can fail."""

    @mcp
    def refuse(self) -> str:
        """Fail in a way that a model can act on."""
        raise ToolError("the shop is closed")

    @mcp
    async def protocol_error(self) -> str:
        """Fail with an error of the protocol."""
        raise McpError(4004, "no such shelf", {"shelf": 7})

    @mcp
    async def crash(self) -> str:
        """Fail by a bug."""
        raise RuntimeError("secret detail")

    @mcp(timeout=0.05)
    async def stall(self) -> str:
        """Take longer than allowed."""
        await trio.sleep_forever()


class Reports(Toolkit):
    """Notices of a call while it runs."""

    @mcp
    async def steps(self, ctx: Context, *, count: int) -> str:
        """Report progress, then wait for `proceed`.

        The TypeScript clients forget who wanted progress as soon as they read the result, before
        they look at notices that came in the same read: a result that follows at once would make
        it a matter of luck what they see.
        """
        for number in range(1, count + 1):
            await ctx.report_progress(number, count, f"step {number}")
        with trio.fail_after(10):
            await ctx.state.proceed.wait()
        return "finished"

    @mcp
    async def proceed(self, args: dict, ctx: Context) -> str:
        """Let `steps` go on."""
        ctx.state.proceed.set()
        return "go"

    @mcp
    async def shout(self, args: dict, ctx: Context) -> str:
        """Log on several levels."""
        await ctx.debug("too quiet")
        await ctx.warning({"disk": "almost full"}, logger="disk")
        await ctx.error("on fire")
        return "logged"


class Endless(Tool):
    """Report once, then wait until cancelled."""

    async def call(self, args: dict, ctx: Context) -> str:
        await ctx.report_progress(1)
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            journal(f"cancelled {ctx.cancelled}")
            ctx.state.cancelled.set()
            raise


class WasCancelled(Tool):
    """Answer once a call of `endless` has been cancelled."""

    async def call(self, args: dict, ctx: Context) -> str:
        with trio.move_on_after(10):
            await ctx.state.cancelled.wait()
            return "yes"
        return "no"


class Meet(Tool):
    """Answer once as many calls as said are here at the same time."""

    class Input(Schema):
        number: int
        of: int

    async def call(self, args: Input, ctx: Context) -> str:
        state: State = ctx.state
        state.arrived += 1
        if state.arrived == args.of:
            state.together.set()
        with trio.fail_after(10):
            await state.together.wait()
        return f"{args.number} of {state.arrived}"


class Thread(Tool):
    """A plain function: it runs in a thread of its own."""

    def call(self) -> str:
        return "main" if threading.current_thread() is threading.main_thread() else "worker"


class Who(Tool):
    """Say what the server knows of its client."""

    class Output(Schema):
        version: str
        transport: str
        client: str | None

    async def call(self, args: dict, ctx: Context) -> Output:
        info = ctx.client_info
        return self.Output(
            version=ctx.protocol_version,
            transport=ctx.transport,
            client=None if info is None else info.name,
        )


class Memory(Toolkit):
    """The session."""

    @mcp
    async def remember(self, ctx: Context, *, word: str) -> str:
        """Store a word in the session."""
        await ctx.put_session("word", word)
        return "stored"

    @mcp
    async def recall(self, args: dict, ctx: Context) -> str:
        """Answer with the word of the session."""
        return str(ctx.session.get("word"))


class Extra(Tool):
    """A tool that is there only for a while."""

    async def call(self) -> str:
        return "extra"


class Install(Toolkit):
    """Change the list of tools."""

    @mcp
    async def add_extra(self, args: dict, ctx: Context) -> str:
        """Add a tool to the running server."""
        ctx.server.tools.add(Extra)
        return "added"

    @mcp
    def remove_extra(self, args: dict, ctx: Context) -> str:
        """Remove it again, from a thread."""
        ctx.server.tools.remove("extra")
        return "removed"


class Secret(Tool):
    """Not listed, but there."""

    async def call(self) -> str:
        return "found"


class Interop(
    Server,
    name="interop",
    version="1.2.3",
    title="Interoperability",
    instructions="Call anything.",
    page_size=5,
):
    """The server that foreign clients drive."""

    tools = [
        Echo,
        Weigh,
        Count,
        Mixed,
        Failures,
        Reports,
        Endless,
        WasCancelled,
        Meet,
        Thread,
        Who,
        Memory,
        Install,
        tool(Secret, hidden=True),
    ]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[State]:
        journal("started")
        try:
            yield State()
        finally:
            journal("ended")
