"""The tools of the servers under test. Tests control them by calling some of them."""

import threading

import attrs
import trio

from noizu_mcp import (
    Annotations,
    Content,
    Context,
    Icon,
    McpError,
    ResourceContents,
    Schema,
    Tool,
    ToolError,
    Toolkit,
    ToolResult,
    field,
    mcp,
    tool,
)
from noizu_mcp import fields as f


@attrs.frozen
class Point:
    """An attrs class of a user's program."""

    x: int
    y: int


class Returns(Toolkit):
    """One tool for every row of the table of answers."""

    @mcp
    def text(self):
        return "plain"

    @mcp(output={"hits": f.integer(required=True)})
    def declared(self):
        return {"hits": 3}

    @mcp
    async def typed(self) -> Point:
        return Point(1, 2)

    @mcp
    def instance(self):
        return Point(3, 4)

    @mcp
    def mapping(self):
        return {"a": [1, None]}

    @mcp
    async def integers(self) -> list[int]:
        return [1, 2, 3]

    @mcp
    def number(self) -> int:
        return 7

    @mcp(output_schema={"type": ["integer", "null"]})
    def nothing_declared(self):
        return ToolResult.ok(structured=None)

    @mcp
    def bare_list(self):
        return [1, "two"]

    @mcp
    def content(self):
        return Content.text("block")

    @mcp
    def blocks(self):
        return [
            Content.text("one"),
            {"type": "text", "text": "two"},
            Content.image(b"\x89PNG", "image/png"),
            Content.audio(b"RIFF", "audio/wav"),
            Content.resource_link("file:///a.txt", "a", title="A file"),
            Content.resource(ResourceContents("file:///b.txt", text="b", mime_type="text/plain")),
        ]

    @mcp
    def verbatim(self):
        return ToolResult([Content.text("v")], {"v": 1}, is_error=True, meta={"example.com/k": 1})

    @mcp
    def nothing(self):
        return None

    @mcp
    def tool_error(self):
        raise ToolError("try another file")

    @mcp
    def tool_error_content(self):
        raise ToolError([Content.text("a"), Content.text("b")], meta={"example.com/k": 1})

    @mcp
    def mcp_error(self):
        raise McpError(4001, "not today", {"when": "tomorrow"})

    @mcp(inline=True)
    def inline_mcp_error(self):
        raise McpError(4002, "not inline")

    @mcp
    def broken_contract(self) -> list[int]:
        return ["secret"]

    @mcp
    def not_json(self):
        return {"value": object()}

    @mcp
    def not_finite(self):
        return {"value": float("nan")}


class Exiting(list):
    """A list that exits the program when it is read."""

    def __iter__(self):
        raise SystemExit("the secret of the author")


class Unreadable(list):
    """A list that raises when it is read."""

    def __iter__(self):
        raise RuntimeError("the secret of the author")


class Crashes(Toolkit):
    """Everything that a handler can do to end its program."""

    @mcp
    def raises(self):
        raise RuntimeError("the secret of the author")

    @mcp
    async def exits(self):
        raise SystemExit("the secret of the author")

    @mcp
    def exits_in_thread(self):
        raise SystemExit("the secret of the author")

    @mcp(inline=True)
    def exits_inline(self):
        raise SystemExit("the secret of the author")

    @mcp
    async def group(self):
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(self._fail)

    async def _fail(self):
        raise RuntimeError("the secret of the author")

    @mcp
    async def group_of_exits(self):
        raise BaseExceptionGroup("g", [SystemExit("the secret of the author")])

    @mcp(inline=True)
    def group_of_exits_inline(self):
        raise BaseExceptionGroup("g", [SystemExit("the secret of the author")])

    @mcp
    async def tool_error_in_a_nursery(self):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._advise)

    async def _advise(self):
        raise ToolError("advice from a nursery")

    @mcp
    def bad_content(self):
        raise ToolError(object())

    @mcp
    def worse_content(self):
        raise ToolError(Unreadable())

    @mcp
    def content_that_exits(self):
        raise ToolError(Exiting())


class Echo(
    Tool,
    title="Echo it",
    category="Talk",
    annotations=Annotations(read_only_hint=True),
    icons=[Icon("https://example.com/e.png")],
):
    """Say it again."""

    class Input(Schema):
        message: str = field(min_length=1, description="What to say")
        repeat: int = field(default=1, min=1, max=10)
        mode: str | None = None

    class Output(Schema):
        said: str

    async def call(self, args: Input) -> Output:
        return self.Output(said=args.message * args.repeat)


class Quick(Tool, inline=True):
    """Answers in the reader's task."""

    input = {"text": f.string(default="quick")}

    def call(self, args):
        return args.text


class Control(Toolkit):
    """Tools that wait, and tools that say what became of the others."""

    def __init__(self):
        self._released = {}
        self._outcomes = {}
        self._running = 0
        self._threads = {}

    def _event(self, table, key):
        return table.setdefault(key, trio.Event())

    @mcp(input={"key": f.string(required=True)})
    async def hold(self, args, ctx: Context):
        """Report progress 1, wait for `release`, report progress 2; or be cancelled."""
        outcome = "cancelled"
        self._running += 1
        try:
            await ctx.report_progress(1, message="started")
            await self._event(self._released, args.key).wait()
            await ctx.report_progress(2)
            outcome = "released"
        finally:
            self._running -= 1
            self._outcomes[args.key, "how"] = outcome
            self._event(self._outcomes, args.key).set()
        return f"held {args.key}"

    @mcp(max_concurrency=1, input={"key": f.string(required=True)})
    async def one_at_a_time(self, args, ctx: Context):
        return await self.hold(args, ctx)

    @mcp(timeout=0.05)
    async def too_slow(self, args, ctx: Context):
        await trio.sleep_forever()

    @mcp(timeout=0.05)
    def too_slow_thread(self, args, ctx: Context):
        done = threading.Event()
        while not ctx.cancelled:
            done.wait(0.001)

    @mcp(timeout=0.05)
    async def crash_at_the_end(self):
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("on the way out")

    @mcp(inline=True, input={"key": f.string(required=True)})
    def release(self, args):
        self._event(self._released, args.key).set()
        return "released"

    @mcp(inline=True, input={"key": f.string(required=True)})
    def release_thread(self, args):
        self._threads.setdefault(args.key, threading.Event()).set()
        return "released"

    @mcp(input={"key": f.string(required=True)})
    async def outcome(self, args):
        await self._event(self._outcomes, args.key).wait()
        return self._outcomes[args.key, "how"]

    @mcp(inline=True)
    def running(self):
        return str(self._running)

    @mcp(timeout=None, input={"key": f.string(required=True)})
    def block(self, args, ctx: Context):
        """Block a thread, as a library would that knows nothing of cancellation."""
        ctx.report_progress(1)
        released = self._threads.setdefault(args.key, threading.Event())
        while not (released.wait(0.001) or ctx.cancelled):
            pass
        how = "cancelled" if ctx.cancelled else "released"
        ctx.report_progress(2)
        self._tell(args.key, how, ctx)
        return how

    def _tell(self, key, how, ctx):
        def tell():
            self._outcomes[key, "how"] = how
            self._event(self._outcomes, key).set()

        trio.from_thread.run_sync(tell, trio_token=ctx.state)

    @mcp
    async def shielded_crash(self, args, ctx: Context):
        """Fail while being cancelled."""
        await ctx.report_progress(1)
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("on the way out")


class Notes(Toolkit):
    """Progress, log messages, session state and what the context says."""

    @mcp
    async def progress(self, args, ctx: Context):
        for step in (0.5, 0.5, 0.25, 1, 2):
            await ctx.report_progress(step, total=2, message=f"step {step}")
        return "done"

    @mcp
    def progress_in_thread(self, args, ctx: Context):
        for step in (1, 2, 3):
            ctx.report_progress(step)
        return "done"

    @mcp(inline=True)
    def progress_inline(self, args, ctx: Context):
        ctx.report_progress(1)
        return "done"

    @mcp(input={"progress": f.string()})
    async def bad_progress(self, args, ctx: Context):
        try:
            await ctx.report_progress(args.progress or float("nan"))
        except ValueError as error:
            return str(error)

    @mcp
    async def log(self, args, ctx: Context):
        await ctx.debug("a debug")
        await ctx.info({"an": "info"})
        await ctx.notice("a notice")
        await ctx.warning("a warning", logger="my.logger")
        await ctx.error("an error")
        await ctx.critical("a critical")
        await ctx.alert("an alert")
        await ctx.emergency("an emergency")
        return "logged"

    @mcp
    async def log_badly(self, args, ctx: Context):
        try:
            await ctx.log("loud", "text")
        except ValueError as error:
            return str(error)

    @mcp(input={"key": f.string(required=True), "value": f.string(required=True)})
    async def put(self, args, ctx: Context):
        await ctx.put_session(args.key, args.value)
        return f"still {ctx.session.get(args.key)}"

    @mcp(inline=True, input={"key": f.string(required=True)})
    def get(self, args, ctx: Context):
        return f"{args.key}={ctx.session.get(args.key)}"

    @mcp(inline=True)
    def about(self, args, ctx: Context):
        info = ctx.client_info
        return {
            "id": ctx.request_id,
            "version": ctx.protocol_version,
            "client": None if info is None else info.name,
            "transport": ctx.transport,
            "server": ctx.server.options.name,
            "auth": ctx.auth,
            "state": ctx.state is not None,
            "sampling": ctx.client_capabilities.has("sampling"),
            "meta": sorted(ctx.meta),
            "cancelled": ctx.cancelled,
        }


class Changes(Toolkit):
    """Changes the set of tools while it is being served."""

    @mcp(input={"name": f.string(required=True), "count": f.integer(default=1)})
    async def add(self, args, ctx: Context):
        for index in range(args.count):
            name = args.name if index == 0 else f"{args.name}-{index}"
            ctx.server.tools.add(tool(Quick, name=name))
        return "added"

    @mcp(input={"name": f.string(required=True)})
    def add_in_thread(self, args, ctx: Context):
        ctx.server.tools.add(tool(Quick, name=args.name))
        return "added"

    @mcp(inline=True, input={"name": f.string(required=True)})
    def remove(self, args, ctx: Context):
        ctx.server.tools.remove(args.name)
        return "removed"

    @mcp(inline=True, input={"name": f.string(required=True)})
    def replace(self, args, ctx: Context):
        ctx.server.tools.replace(tool(Quick, name=args.name, description="replaced"))
        return "replaced"

    @mcp(inline=True)
    def say(self, args, ctx: Context):
        ctx.notify.tools()
        return "said"
