"""`loop="asyncio"`: components and servers whose coroutine functions run on asyncio."""

import asyncio
import random
import threading
from contextlib import asynccontextmanager
from functools import partial

import aiosqlite
import pytest
import sniffio
import trio

from noizu_mcp import (
    Accept,
    ClientHandler,
    Context,
    DefinitionError,
    McpError,
    NoSessionError,
    Prompt,
    PromptMessage,
    Resource,
    ResourceTemplate,
    Root,
    SamplingResult,
    Schema,
    Server,
    TaskStarted,
    Tool,
    ToolError,
    Toolkit,
    aio,
    argument,
    connect,
    mcp,
    prompt,
    resource,
    resource_template,
    tool,
)
from noizu_mcp.testing import Transcript, assert_notification, assert_progress
from noizu_mcp.types import ClientCapabilities, Task

ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


async def library():
    """Wait on the current loop, and return its name."""
    name = sniffio.current_async_library()
    if name == "asyncio":
        await asyncio.sleep(0)
    else:
        await trio.lowlevel.checkpoint()
    return name


class Where(Tool):
    """Tool that says where it runs."""

    async def call(self):
        return await library()


class WhereOnAsyncio(Tool, loop="asyncio"):
    """Tool that runs on asyncio."""

    async def call(self):
        return await library()


class Kit(Toolkit, loop="asyncio"):
    """Kit on asyncio."""

    @mcp
    async def of_kit(self) -> str:
        return await library()

    @mcp(loop="trio")
    async def of_kit_on_trio(self) -> str:
        return await library()

    @mcp
    def sync(self) -> str:
        return threading.current_thread().name


@mcp(loop="asyncio")
async def marked() -> str:
    """Marked function."""
    return await library()


async def plain() -> str:
    """Plain function."""
    return await library()


class Data(Resource, uri="data://one", loop="asyncio"):
    """Resource."""

    async def read(self):
        return await library()


class Rows(ResourceTemplate, uri_template="rows://{name}", loop="asyncio"):
    """Template."""

    async def read(self, name: str):
        return f"{name} {await library()}"

    async def complete(self, variable, prefix):
        return [await library()]

    async def list(self):
        return [{"uri": "rows://listed", "name": await library()}]


async def complete_text(prefix, ctx):
    return [await library()]


class Ask(Prompt, loop="asyncio"):
    """Prompt."""

    class Arguments(Schema):
        text: str = argument(complete=complete_text)
        fixed: str | None = argument(default=None, complete=["one", "two"])

    async def get(self, args):
        return [PromptMessage.user(f"{args.text} {await library()}")]


async def text_prompt() -> str:
    return await library()


class Mixed(Server, name="mixed", version="1"):
    tools = [
        Where,
        WhereOnAsyncio,
        Kit,
        marked,
        tool(plain, loop="asyncio"),
        tool(Where, name="overridden", loop="asyncio"),
    ]
    resources = [
        Data,
        Rows,
        resource(plain, uri="data://two", loop="asyncio"),
    ]
    prompts = [Ask, prompt(text_prompt, name="function", loop="asyncio")]


@ERAS
async def test_every_kind_of_component(version):
    """Tools, kits, methods, functions, resources, prompts and registrations take the option."""
    async with connect(Mixed, version=version) as client:
        found = {}
        for each in await client.list_tools():
            found[each.name] = (await client.call_tool(each.name)).content[0].text
        assert found.pop("sync") != threading.current_thread().name
        on_trio = {name for name, text in found.items() if text == "trio"}
        assert on_trio == {"where", "of_kit_on_trio"}
        assert {*found.values()} == {"trio", "asyncio"}
        for uri, text in (
            ("data://one", "asyncio"),
            ("data://two", "asyncio"),
            ("rows://a", "a asyncio"),
        ):
            assert (await client.read_resource(uri)).contents[0].text == text
        assert "asyncio" in {each.name for each in await client.list_resources()}
        got = await client.get_prompt("ask", {"text": "on"})
        assert got.messages[0].content.text == "on asyncio"
        assert (await client.get_prompt("function")).messages[0].content.text == "asyncio"
        rows = {"type": "ref/resource", "uri": "rows://{name}"}
        asked = {"type": "ref/prompt", "name": "ask"}
        assert (await client.complete(rows, "name", "")).values == ("asyncio",)
        assert (await client.complete(asked, "text", "")).values == ("asyncio",)
        assert (await client.complete(asked, "fixed", "t")).values == ("two",)


class AllAsyncio(Server, name="all", version="1", loop="asyncio"):
    """A server whose own methods run on asyncio, and what says nothing else."""

    tools = [Where, tool(Where, name="trio", loop="trio")]
    resources = [Data]
    prompts = [Ask]

    def __init__(self):
        self.said = []

    @asynccontextmanager
    async def lifespan(self):
        self.said.append(await library())
        yield "state"
        self.said.append(await library())

    async def init(self, ctx):
        self.said.append(f"init {await library()}")
        await ctx.put_session("loop", "asyncio")

    async def list_tools(self, cursor, ctx):
        self.said.append(f"list {await library()}")
        return await super().list_tools(cursor, ctx)

    async def call_tool(self, name, args, ctx):
        self.said.append(f"call {await library()} {ctx.session.get('loop')} {ctx.state}")
        if name == "twice":
            await self.call_tool("where", args, ctx)
            return await self.call_tool("where", args, ctx)
        return await super().call_tool(name, args, ctx)

    async def read_resource(self, uri, ctx):
        return await super().read_resource(uri, ctx)

    async def get_prompt(self, name, args, ctx):
        return await super().get_prompt(name, args, ctx)

    async def complete(self, ref, argument, prefix, ctx):
        return await super().complete(ref, argument, prefix, ctx)

    async def can_watch(self, uri, ctx):
        self.said.append(f"watch {await library()}")
        return True


@ERAS
async def test_a_server_on_asyncio(version):
    """The lifespan and the methods run on asyncio, and can call `super()`."""
    server = AllAsyncio()
    async with connect(server, version=version) as client:
        assert {each.name for each in await client.list_tools()} == {"where", "trio"}
        assert (await client.call_tool("where")).content[0].text == "asyncio"
        assert (await client.call_tool("trio")).content[0].text == "trio"
        assert (await client.call_tool("twice")).content[0].text == "asyncio"
        with pytest.raises(McpError, match="Unknown tool"):
            await client.call_tool("nothing")
        assert (await client.read_resource("data://one")).contents[0].text == "asyncio"
        got = await client.get_prompt("ask", {"text": "on"})
        assert got.messages[0].content.text == "on asyncio"
        asked = {"type": "ref/prompt", "name": "ask"}
        assert (await client.complete(asked, "text", "")).values == ("asyncio",)
        if version == "2025-11-25":
            await client.subscribe("data://one")
            assert "watch asyncio" in server.said
            assert "init asyncio" in server.said
            assert "call asyncio asyncio state" in server.said
        server.tools.add(tool(plain, name="later"))
        assert (await client.call_tool("later")).content[0].text == "asyncio"
    assert (server.said[0], server.said[-1]) == ("asyncio", "asyncio")


class Form(Schema):
    """The form of the questions."""

    name: str


class Human(ClientHandler):
    """Answers every kind of question."""

    async def handle_elicitation(self, params):
        return Accept({"name": params["message"]})

    async def handle_sampling(self, params):
        return SamplingResult(role="assistant", content="sampled", model="m")

    async def list_roots(self):
        return [Root("file:///work")]


class Asking(Toolkit, loop="asyncio"):
    """Tools that use the whole of the context."""

    def __init__(self):
        self.mails = 0

    @mcp
    async def everything(self, ctx: Context) -> list[str]:
        await ctx.report_progress(1, 2, "half")
        ctx.info("not awaited")
        await ctx.log("warning", "awaited", "here")
        sent = await ctx.step(self.send, 1)
        noted = await ctx.step(len, "four")
        one = await ctx.elicit("one", Form)
        sampled = await ctx.sample("?", max_tokens=5)
        roots = await ctx.list_roots()
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(ctx.elicit(name, Form)) for name in ("two", "three")]
        read = await ctx.read_resource("data://one")
        ctx.notify.tools()
        await ctx.release_stream()
        assert not ctx.cancelled
        assert ctx.state == "pool"
        ctx.server.tools.add(tool(plain, name=f"added_{ctx.request_id}"))
        return [
            str(sent + noted),
            one.content.name,
            sampled.content[0].text,
            roots[0].uri,
            *(each.result().content.name for each in both),
            read.contents[0].text,
            ctx.transport,
        ]

    async def send(self, number):
        assert await library() == "asyncio"
        self.mails += 1
        return number

    @mcp
    async def remember(self, ctx: Context) -> str:
        try:
            await ctx.put_session("key", "value")
        except NoSessionError:
            return "no session"
        return "kept"

    @mcp
    async def wrong_level(self, ctx: Context) -> str:
        with pytest.raises(ValueError, match="no log level"):
            ctx.log("loud", "x")
        with pytest.raises(AttributeError):
            ctx.nothing  # noqa: B018
        return str(isinstance(ctx, Context))


class Asker(Server, name="asker", version="1", loop="asyncio"):
    """A server that asks."""

    resources = [Data]

    @asynccontextmanager
    async def lifespan(self):
        yield "pool"


@ERAS
async def test_the_whole_of_the_context(version):
    """Progress, logs, questions, steps, resources, notices and sessions work on both eras."""
    kit = Asking()
    server = Asker()
    server.tools.add(kit)
    transcript = Transcript()
    async with connect(server, handler=Human(), version=version, tap=transcript) as client:
        await client.set_log_level("info")
        result = await client.call_tool("everything", progress=lambda _: None)
        expected = ["5", "one", "sampled", "file:///work", "two", "three", "asyncio", "memory"]
        assert result.structured == (
            expected if version == "2026-07-28" else {"result": expected}
        ), result
        assert kit.mails == 1
        await assert_progress(transcript, 1, total=2, message="half")
        for data in ("not awaited", "awaited"):
            await assert_notification(transcript, "notifications/message", data=data)
        kept = (await client.call_tool("remember")).content[0].text
        assert kept == ("no session" if version == "2026-07-28" else "kept")
        assert (await client.call_tool("wrong_level")).content[0].text == "True"


class Failing(Toolkit, loop="asyncio"):
    """Tools that do not return."""

    waiting = 0
    ended = 0

    @mcp
    async def tool_error(self) -> str:
        await asyncio.sleep(0)
        raise ToolError("told")

    @mcp
    async def protocol_error(self) -> str:
        raise McpError(-1, "told")

    @mcp
    async def group(self) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.tool_error())
        return "never"

    @mcp
    async def crash(self) -> str:
        raise SystemExit

    @mcp
    async def cancelled(self) -> str:
        raise asyncio.CancelledError

    @mcp(timeout=0.01)
    async def slow(self) -> str:
        await asyncio.Event().wait()
        return "never"

    @mcp
    async def wait(self) -> str:
        Failing.waiting += 1
        try:
            await asyncio.Event().wait()
        finally:
            Failing.ended += 1
        return "never"

    @mcp
    async def many(self) -> list[str]:
        for number in range(3):
            await asyncio.sleep(0)
            if number == 2:
                return [str(number)]
        return []


class Fails(Server, name="fails", version="1"):
    """A server with tools on asyncio that fail."""

    tools = [Failing]


@ERAS
async def test_failures_and_timeouts(version):
    """Failures and timeouts have the same results on asyncio as on trio."""
    async with connect(Fails, version=version) as client:
        for name, text in (
            ("tool_error", "told"),
            ("group", "told"),
            ("crash", "Tool execution failed"),
            ("cancelled", "Tool execution failed"),
            ("slow", "Tool execution timed out"),
        ):
            result = await client.call_tool(name)
            assert (result.is_error, result.content[0].text) == (True, text)
        with pytest.raises(McpError, match="told"):
            await client.call_tool("protocol_error")


@ERAS
async def test_a_thousand_calls_cancelled_at_random_leave_nothing(version):
    """Each cancelled call ends in its handler; no task and no thread remains."""
    choose = random.Random(5)
    Failing.waiting = Failing.ended = 0
    async with connect(Fails, version=version) as client:
        await client.call_tool("many")
        pending = partial(aio.run, pending_tasks)
        before = trio.lowlevel.current_statistics().tasks_living, await pending()
        threads = threading.active_count()

        async def call():
            name = choose.choice(["wait", "many", "tool_error"])
            with trio.move_on_after(choose.random() / 10):
                await client.call_tool(name)

        async with trio.open_nursery() as nursery:
            for _ in range(1000):
                nursery.start_soon(call)
        while Failing.ended < Failing.waiting:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        assert (trio.lowlevel.current_statistics().tasks_living, await pending()) == before
        assert threading.active_count() <= threads


async def pending_tasks():
    return len(asyncio.all_tasks())


class Library(Toolkit, loop="asyncio"):
    """A kit over an asyncio database."""

    @mcp
    async def titles(self, ctx: Context) -> list[str]:
        async with ctx.state.execute("select title from books order by title") as rows:
            return [title async for (title,) in rows]


class Books(Server, name="books", version="1", loop="asyncio"):
    """A server whose lifespan opens the database."""

    tools = [Library]

    @asynccontextmanager
    async def lifespan(self):
        async with aiosqlite.connect(":memory:") as database:
            await database.execute("create table books (title)")
            await database.execute("insert into books values ('Emma'), ('Dune')")
            yield database


@ERAS
async def test_an_asyncio_database(version):
    """Handlers can use a connection that the lifespan has opened on asyncio."""
    async with connect(Books, version=version) as client:
        result = await client.call_tool("titles")
        assert result.content[0].text == '["Dune","Emma"]'


class WrongLoop(Toolkit):
    """Tools that use the other loop."""

    @mcp
    async def sleeps(self) -> str:
        await asyncio.sleep(1)
        return "never"

    @mcp
    async def times_out(self) -> str:
        async with asyncio.timeout(1):
            await trio.lowlevel.checkpoint()
        return "never"

    @mcp
    async def waits(self, ctx: Context) -> str:
        await ctx.state
        return "never"

    @mcp(loop="asyncio")
    async def sleeps_on_trio(self) -> str:
        await trio.sleep(1)
        return "never"

    @mcp(loop="asyncio")
    async def checks_on_trio(self) -> str:
        await trio.lowlevel.checkpoint()
        return "never"

    @mcp(loop="asyncio")
    async def groups(self) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sleeps_on_trio())
            group.create_task(self.checks_on_trio())
        return "never"


class Wrong(Server, name="wrong", version="1"):
    """A server whose author mixes the loops up."""

    tools = [WrongLoop]

    @asynccontextmanager
    async def lifespan(self):
        async def future():
            return asyncio.get_running_loop().create_future()

        yield await aio.run(future)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("sleeps", 'write loop="asyncio"'),
        ("times_out", 'write loop="asyncio"'),
        ("waits", 'write loop="asyncio"'),
        ("sleeps_on_trio", "use asyncio"),
        ("checks_on_trio", "use asyncio"),
        ("groups", "use asyncio"),
    ],
)
async def test_the_wrong_loop_is_explained_in_the_log(name, cure, caplog):
    """The error about the wrong loop says what to write instead."""
    async with connect(Wrong) as client:
        assert (await client.call_tool(name)).content[0].text == "Tool execution failed"
    assert cure in caplog.text


def test_the_option_has_two_values():
    """Any value but "trio" and "asyncio" is refused when the class is made."""
    with pytest.raises(DefinitionError, match=r"loop: must be 'trio' or 'asyncio', got 'uvloop'"):

        class _Bad(Tool, loop="uvloop"):
            async def call(self):
                return ""

    with pytest.raises(DefinitionError, match=r"loop: must be 'trio' or 'asyncio', got None"):

        class _BadServer(Server, name="bad", version="1", loop=None):
            pass


def test_registrations_of_resources_have_the_option():
    """`resource_template` takes the `loop` option, too."""

    class One(Server, name="one", version="1"):
        resources = [resource_template(Rows, loop="trio"), resource(Data, loop="trio")]

    assert [spec.loop for spec in One().resources] == ["trio", "trio"]


async def test_asyncio_code_in_a_trio_handler():
    """`aio.run` works in any handler, and uses the loop of the asyncio handlers."""
    loops = []

    async def note():
        loops.append(asyncio.get_running_loop())
        return await library()

    class Notes(Toolkit):
        @mcp
        async def on_trio(self) -> str:
            return await aio.run(note)

        @mcp(loop="asyncio")
        async def on_asyncio(self) -> str:
            return await note()

    class Noting(Server, name="noting", version="1"):
        tools = [Notes]

    async with connect(Noting) as client:
        for name in ("on_trio", "on_asyncio"):
            assert (await client.call_tool(name)).content[0].text == "asyncio"
    assert loops[0] is loops[1]


@pytest.mark.parametrize("at", ["start", "end"])
async def test_a_lifespan_on_asyncio_that_fails(at):
    """The exception of a failed lifespan ends the connection, and is raised alone."""

    class Broken(Server, name="broken", version="1", loop="asyncio"):
        @asynccontextmanager
        async def lifespan(self):
            await asyncio.sleep(0)
            if at == "start":
                raise ValueError("no database")
            yield
            raise ValueError("no database")

    with pytest.raises(ValueError, match="no database"):
        async with connect(Broken):
            assert at == "end"


async def test_a_lifespan_on_the_wrong_loop_is_explained():
    """The error that ends the program says what to write instead."""

    class Confused(Server, name="confused", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            await asyncio.sleep(1)
            yield

    with pytest.raises(RuntimeError) as caught:
        async with connect(Confused):
            pass
    assert 'write loop="asyncio"' in "".join(caught.value.__notes__)


class Jobs(Toolkit, loop="asyncio"):
    """Tools whose calls go on as tasks."""

    @mcp(task="required")
    async def asks(self, ctx: Context) -> str:
        answer = await ctx.elicit("inside", Form)
        return f"{answer.content.name} {await library()}"

    @mcp(task="optional", starts_task=True)
    async def starts(self, ctx: Context) -> str:
        before = await ctx.elicit("before", Form)
        await ctx.start_task()
        after = await ctx.elicit("after", Form)
        return f"{before.content.name} {after.content.name} {await library()}"

    @mcp(task="required")
    async def hangs(self) -> str:
        Failing.waiting = 1
        try:
            await asyncio.Event().wait()
        finally:
            Failing.waiting = 0
        return "never"


class Office(Server, name="office", version="1"):
    """A server with tasks on asyncio."""

    tools = [Jobs]


@pytest.mark.parametrize(
    ("name", "asked", "text"),
    [("asks", "inside", "inside asyncio"), ("starts", "after", "before after asyncio")],
)
async def test_calls_that_go_on_as_tasks(name, asked, text):
    """A handler on asyncio can ask during its request and in its task."""
    extensions = {"io.modelcontextprotocol/tasks": {}}
    knows = ClientCapabilities(extensions=extensions, elicitation={})
    async with connect(Office, version="2026-07-28", capabilities=knows, handler=Human()) as client:
        with pytest.raises(TaskStarted) as started:
            await client.call_tool(name)
        which = {"taskId": started.value.task.task_id}
        await trio.testing.wait_all_tasks_blocked()
        task = Task.from_wire(await client.request("tasks/get", which))
        ((key, question),) = task.input_requests.items()
        assert question["params"]["message"] == asked
        answers = {key: {"action": "accept", "content": {"name": asked}}}
        await client.request("tasks/update", {**which, "inputResponses": answers})
        await trio.testing.wait_all_tasks_blocked()
        task = Task.from_wire(await client.request("tasks/get", which))
        assert task.result["content"][0]["text"] == text


async def test_a_task_can_be_cancelled():
    """Cancelling a task ends its handler on asyncio."""
    knows = ClientCapabilities(extensions={"io.modelcontextprotocol/tasks": {}})
    async with connect(Office, version="2026-07-28", capabilities=knows) as client:
        with pytest.raises(TaskStarted) as started:
            await client.call_tool("hangs")
        await trio.testing.wait_all_tasks_blocked()
        assert Failing.waiting == 1
        await client.request("tasks/cancel", {"taskId": started.value.task.task_id})
        await trio.testing.wait_all_tasks_blocked()
        assert Failing.waiting == 0
