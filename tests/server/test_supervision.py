"""Limits on the work of tools: waiting calls, shares, abandoned threads, sizes of results."""

import threading
from functools import partial

import pytest
import trio
import trio.testing

from noizu_mcp import (
    Accept,
    ClientHandler,
    Content,
    Context,
    DefinitionError,
    Limits,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Tool,
    Toolkit,
    ToolResult,
    argument,
    connect,
    mcp,
)
from noizu_mcp.server import AbandonedThreads, FairLimiter, QueueFull, TooManyAbandoned
from noizu_mcp.types import Reference

VERSIONS = ["2025-11-25", "2026-07-28"]
BUSY = "work is busy: too many calls wait for it; try again later"


class Name(Schema):
    name: str


# Calls that wait


def busy(max_queue=None, call_queue=1000, max_concurrency=1):
    """Make a server whose tool works until it is released."""
    release = trio.Event()

    class Work(Tool, max_concurrency=max_concurrency, max_queue=max_queue):
        async def call(self):
            await release.wait()
            return "done"

    class Office(Server, name="office", version="1", limits=Limits(call_queue=call_queue)):
        tools = [Work]

    return Office(), release


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("max_queue", "call_queue"), [(2, 1000), (None, 2), (2, 5)])
async def test_so_many_calls_wait_and_no_more(version, max_queue, call_queue):
    """The next call is refused at once; the limit is the tool's, or the server's."""
    server, release = busy(max_queue, call_queue)
    results = []

    async def call(client):
        results.append((await client.call_tool("work")).text)

    async with connect(server, version=version) as client, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(call, client)
        await trio.testing.wait_all_tasks_blocked()
        refused = await client.call_tool("work")
        assert (refused.is_error, refused.text) == (True, BUSY)
        assert results == []
        release.set()
    assert results == ["done"] * 3


async def test_no_call_waits_where_none_may():
    """With an empty queue a call runs at once, or is refused."""
    server, release = busy(0)
    async with connect(server) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "work")
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.call_tool("work")).text == BUSY
        release.set()
    async with connect(server) as client:
        assert (await client.call_tool("work")).text == "done"


async def test_a_call_that_was_answered_waits_whatever_the_queue():
    """A call with an answer waits even if the queue is full, so that its work is not lost."""
    turn = trio.Event()

    class Ask(Tool, max_concurrency=1, max_queue=0):
        async def call(self, ctx: Context, ask: bool) -> str:
            if ask:
                return (await ctx.elicit("Name?", Name)).content.name
            turn.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            return "other"

    class Asking(Server, name="asking", version="1"):
        tools = [Ask]

    class Waits(ClientHandler):
        async def handle_elicitation(self, params):
            await turn.wait()
            return Accept({"name": "Ann"})

    results = []

    async def call(client, *, ask):
        results.append((await client.call_tool("ask", {"ask": ask})).text)

    async with connect(Asking, version="2025-11-25", handler=Waits()) as client:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: call(client, ask=True))
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(lambda: call(client, ask=False))
    assert sorted(results) == ["Ann", "other"]


async def test_no_client_takes_all_places_nor_all_of_the_queue():
    """One client cannot fill all slots or the whole queue."""
    places = FairLimiter(4, queue=4)
    async with trio.open_nursery() as nursery:
        for _ in range(6):  # three run, three wait
            nursery.start_soon(places.acquire, "one")
        await trio.testing.wait_all_tasks_blocked()
        assert (places.borrowed_tokens, places.waiting) == (3, 3)
        with pytest.raises(QueueFull):
            await places.acquire("one")
        await places.acquire("other")
        nursery.start_soon(places.acquire, "other")
        await trio.testing.wait_all_tasks_blocked()
        assert (places.borrowed_tokens, places.waiting) == (4, 4)
        with pytest.raises(QueueFull):
            await places.acquire("third")
        nursery.cancel_scope.cancel()
    assert (places.borrowed_tokens, places.waiting) == (4, 0)


async def test_the_principal_is_the_client_that_has_a_share(monkeypatch):
    """Over HTTP the share is the principal's; a client with its own server has all slots."""
    server, release = busy(max_concurrency=4)
    seen = []
    acquire = FairLimiter.acquire

    async def note(self, client, **options):
        seen.append(client)
        await acquire(self, client, **options)

    monkeypatch.setattr(FairLimiter, "acquire", note)
    release.set()
    async with connect(server) as client:
        await client.call_tool("work")
    assert seen == [None]


# Threads that go on


class Stuck(Toolkit):
    """Handlers that ignore their timeouts."""

    def __init__(self):
        self.release = threading.Event()

    @mcp(timeout=0.01)
    def stuck(self) -> str:
        self.release.wait()
        return "at last"

    @mcp
    def quick(self) -> str:
        return "quick"


async def until_abandoned(server, count):
    """Wait until this many threads are abandoned; one may begin after the timeout of its call."""
    with trio.fail_after(60):
        while True:
            if server.abandoned.count == count:
                return
            await trio.sleep(0.01)


@pytest.mark.parametrize("version", VERSIONS)
async def test_threads_that_outlive_their_calls_are_counted_and_bounded(version, caplog):
    """Abandoned threads are limited for each handler, so that others go on."""
    kit = Stuck()

    class Bench(Server, name="bench", version="1", limits=Limits(abandoned_threads=2)):
        tools = [kit]

    server = Bench()
    try:
        async with connect(server, version=version) as client:
            for _ in range(2):
                assert (await client.call_tool("stuck")).text == "Tool execution timed out"
            await until_abandoned(server, 2)
            refused = await client.call_tool("stuck")
            text = "Earlier calls have not ended yet; try again later"
            assert (refused.is_error, refused.text) == (True, text)
            assert "2 of its threads go on after their calls" in caplog.text
            assert (await client.call_tool("quick")).text == "quick"
            kit.release.set()
            await until_abandoned(server, 0)
            with trio.fail_after(60):
                # A thread may need longer than the timeout to begin.
                while (await client.call_tool("stuck")).text != "at last":
                    await trio.lowlevel.checkpoint()
    finally:
        kit.release.set()


@pytest.mark.parametrize("version", VERSIONS)
async def test_prompts_resources_and_completions_are_bounded_too(version):
    """Their callers get an error."""
    release = threading.Event()

    class Page(Resource, uri="page://one", timeout=0.01):
        def read(self, uri, ctx):
            release.wait()
            return "one"

    class Row(ResourceTemplate, uri_template="row://{n}", timeout=0.01):
        def read(self, uri, args, ctx):
            release.wait()
            return "one"

    class Greet(Prompt, timeout=0.01):
        class Arguments(Schema):
            name: str | None = argument(default=None, complete=lambda prefix, ctx: ["Ann"])

        def get(self, args, ctx):
            release.wait()
            return []

    class Bench(Server, name="bench", version="1", limits=Limits(abandoned_threads=1)):
        resources = [Page, Row]
        prompts = [Greet]

    server = Bench()
    try:
        async with connect(server, version=version) as client:
            for text in ("Request timed out", "Earlier calls have not ended yet; try again later"):
                for ask in (
                    lambda: client.read_resource("page://one"),
                    lambda: client.read_resource("row://1"),
                    lambda: client.get_prompt("greet"),
                ):
                    with pytest.raises(McpError, match=text):
                        await ask()
                # A thread may begin after its call has timed out.
                await until_abandoned(server, 3)
            ref = Reference("ref/prompt", name="greet")
            with pytest.raises(McpError, match="Earlier calls"):
                await client.complete(ref, "name", "")
            release.set()
            await until_abandoned(server, 0)
            assert (await client.complete(ref, "name", "")).values == ("Ann",)
    finally:
        release.set()


async def test_a_call_that_never_got_a_thread_leaves_none_behind():
    """A call that was cancelled while it waited for a thread counts no thread."""
    threads, abandoned = FairLimiter(1), AbandonedThreads(5)
    await threads.acquire("one")
    with trio.move_on_after(0.01):
        await abandoned.run("handler", lambda: None, threads.of("one"))
    assert abandoned.count == 0


async def test_a_thread_that_begins_after_its_call_was_left_counts(monkeypatch):
    """A thread whose call was cancelled before its handler began is counted while it runs."""
    abandoned, threads = AbandonedThreads(1), FairLimiter(1)
    counts, begun = [], []

    async def begin_late(function, **options):
        begun.append(function)
        await trio.sleep_forever()

    monkeypatch.setattr(trio.to_thread, "run_sync", begin_late)
    work = partial(abandoned.run, "handler", lambda: counts.append(abandoned.count))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, threads.of(None))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert abandoned.count == 0
    begun[0]()
    assert (counts, abandoned.count) == ([1], 0)


async def abandon(abandoned, handler, limiter, release):
    """Cancel a call whose thread then waits for an event."""
    scope, began = trio.CancelScope(), threading.Event()

    def work():
        began.set()
        release.wait()

    async with trio.open_nursery() as nursery:

        async def call():
            with scope:
                await abandoned.run(handler, work, limiter)

        nursery.start_soon(call)
        await trio.to_thread.run_sync(began.wait)
        scope.cancel()


async def test_a_server_waits_for_the_last_of_its_abandoned_threads():
    """It waits for the threads of all handlers, and goes on when the last one ends."""
    abandoned, settled = AbandonedThreads(5), []
    limiters = {name: trio.CapacityLimiter(1) for name in ("first", "second")}
    releases = {name: threading.Event() for name in limiters}

    async def settle():
        await abandoned.settle(3600)
        settled.append(abandoned.count)

    try:
        for name, limiter in limiters.items():
            await abandon(abandoned, name, limiter, releases[name])
        assert abandoned.count == 2
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(settle)
                await trio.testing.wait_all_tasks_blocked()
                releases["first"].set()
                await limiters["first"].acquire()  # the thread has it until it ends
                assert (abandoned.count, settled) == (1, [])
                releases["second"].set()
    finally:
        for each in releases.values():
            each.set()
    assert settled == [0]


async def test_a_handler_that_fails_is_not_left_behind():
    """A handler that fails raises its exception, and its thread is not counted."""
    threads, abandoned = FairLimiter(1), AbandonedThreads(1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await abandoned.run("handler", lambda: 1 / 0, threads.of(None))
    assert abandoned.count == 0
    abandoned.add("other", 1)
    assert await abandoned.run("handler", lambda: "ran", threads.of(None)) == "ran"
    with pytest.raises(TooManyAbandoned):
        await abandoned.run("other", lambda: "ran", threads.of(None))


# Sizes of results


class Sizes(Toolkit, max_result_bytes=200):
    @mcp
    async def text(self, size: int) -> str:
        return "x" * size

    @mcp(inline=True)
    def inline(self, size: int) -> str:
        return "ü" * size

    @mcp
    def structured(self, size: int) -> list[str]:
        return ["x"] * size

    @mcp(max_concurrency=1)
    async def picture(self, size: int) -> Content:
        return Content.image(b"x" * size, "image/png")

    @mcp(max_result_bytes=None)
    async def unbound(self, size: int) -> str:
        return "x" * size


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tool", ["text", "inline", "structured", "picture"])
async def test_a_result_has_so_many_bytes_and_no_more(version, tool):
    """The error tells the model to ask for less."""

    class Bench(Server, name="bench", version="1"):
        tools = [Sizes]

    async with connect(Bench, version=version) as client:
        assert not (await client.call_tool(tool, {"size": 10})).is_error
        large = await client.call_tool(tool, {"size": 1000})
        assert large.is_error
        start, _, rest = large.text.partition(" has ")
        assert start == f"The result of {tool}"
        assert rest.endswith(" bytes, and may have 200: ask for less")
        assert not (await client.call_tool("unbound", {"size": 1000})).is_error


async def test_a_server_has_a_bound_for_all_of_its_tools():
    """The bound includes results of overrides; that of a tool takes precedence."""

    class Bench(Server, name="bench", version="1", max_result_bytes=500):
        tools = [Sizes]

        async def call_tool(self, name, args, ctx):
            if name == "own":
                return ToolResult.ok("x" * args["size"])
            return await super().call_tool(name, args, ctx)

    async with connect(Bench) as client:
        assert not (await client.call_tool("own", {"size": 100})).is_error
        assert (await client.call_tool("own", {"size": 1000})).text.startswith(
            "The result of the tool has 10"
        )
        assert (await client.call_tool("unbound", {"size": 1000})).is_error
        assert (await client.call_tool("text", {"size": 300})).text.endswith(
            "may have 200: ask for less"
        )


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ({"max_queue": -1}, "max_queue: must be a whole number of calls, or None for the limit"),
        ({"max_queue": True}, "max_queue: must be a whole number of calls, or None"),
        ({"max_result_bytes": 0}, "max_result_bytes: must be a whole number above 0"),
    ],
)
def test_a_wrong_bound_is_refused(statement, text):
    """An invalid bound is refused when the class statement runs."""
    with pytest.raises(DefinitionError, match=text):

        class Wrong(Tool, **statement):
            async def call(self):
                pass

    if "max_result_bytes" in statement:
        with pytest.raises(DefinitionError, match=text):

            class WrongServer(Server, name="wrong", version="1", **statement):
                pass
