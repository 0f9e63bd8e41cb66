"""`max_concurrency` of a tool, and the threads of tasks."""

import threading
from collections import defaultdict
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from noizu_mcp import (
    Accept,
    ClientHandler,
    Context,
    Limits,
    RequestTimeout,
    Resource,
    Schema,
    Server,
    Toolkit,
    connect,
    mcp,
    tool,
)

from .tasking import KNOWS, start

MODERN = "2026-07-28"


class Name(Schema):
    name: str


class Narrow(Toolkit):
    """Tools of which one call runs at a time."""

    def __init__(self):
        self.running = 0
        self.most = 0

    def note(self, more):
        self.running += more
        self.most = max(self.most, self.running)

    @mcp(task="optional", max_concurrency=1)
    async def ask(self, args, ctx: Context):
        self.note(1)
        self.note(-1)
        answer = await ctx.elicit("Name?", Name)
        self.note(1)
        await trio.sleep(1)
        self.note(-1)
        return answer.content.name

    @mcp(task="optional", max_concurrency=1)
    async def give_up(self, args, ctx: Context):
        try:
            await ctx.elicit("Name?", Name, timeout=5)
        except RequestTimeout:
            return "too late"


class Office(Server, name="office", version="1", task_poll_interval=0.1):
    tools = [Narrow]


async def answer(client, task):
    asked = (await client.request("tasks/get", task))["inputRequests"]
    answers = {key: {"action": "accept", "content": {"name": "Ann"}} for key in asked}
    await client.request("tasks/update", {**task, "inputResponses": answers})


async def end(client, task, pause=0.1):
    with trio.fail_after(50):
        while True:
            ended = await client.request("tasks/get", task)
            if "result" in ended:
                return ended["result"]["content"][0]["text"]
            await trio.sleep(pause)


async def test_a_call_that_asks_frees_its_slot(autojump_clock):
    """A call that waits for an answer frees its slot, and waits for one again afterwards."""
    kit = Narrow()

    class Own(Office, name="own", version="1"):
        tools = [kit]

    async with connect(Own, version=MODERN, capabilities=KNOWS) as client:
        tasks = [await start(client, "ask") for _ in range(3)]
        for task in tasks:
            assert (await client.request("tasks/get", task))["status"] == "input_required"
        for task in tasks:
            await answer(client, task)
        began = trio.current_time()
        assert [await end(client, task) for task in tasks] == ["Ann"] * 3
        assert trio.current_time() - began >= 3
    assert (kit.most, kit.running) == (1, 0)


async def test_a_live_call_that_asks_frees_its_slot(autojump_clock):
    """The slot is also freed up to 2025-11-25, where the handler waits within its request."""
    both = trio.Event()

    class People(ClientHandler):
        asked = 0

        async def handle_elicitation(self, params):
            self.asked += 1
            if self.asked == 2:
                both.set()
            await both.wait()
            return Accept({"name": "Ann"})

    with trio.fail_after(10):
        async with (
            connect(Office, version="2025-11-25", handler=People()) as client,
            trio.open_nursery() as nursery,
        ):
            for _ in range(2):
                nursery.start_soon(client.call_tool, "ask")
        assert both.is_set()


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_a_question_after_a_nested_call_takes_no_slot(version):
    """A handler that asks after it has called a tool with a limit takes no slot of that tool."""

    class Calls(Toolkit):
        @mcp(max_concurrency=1)
        async def one_at_a_time(self) -> str:
            return "done"

        @mcp
        async def call_and_ask(self, ctx: Context) -> str:
            await ctx.call_tool("one_at_a_time")
            answer = await ctx.elicit("Name?", Name)
            await ctx.call_tool("one_at_a_time")
            return answer.content.name

    class Nested(Server, name="nested", version="1"):
        tools = [Calls]

    class Ann(ClientHandler):
        async def handle_elicitation(self, params):
            return Accept({"name": "Ann"})

    with trio.fail_after(60):
        async with connect(Nested, version=version, handler=Ann()) as client:
            assert (await client.call_tool("call_and_ask")).text == "Ann"


async def test_a_question_of_a_task_may_have_a_time_of_its_own(autojump_clock):
    """A question of a task may have a timeout; without one it waits while the task lives."""
    async with connect(Office, version=MODERN, capabilities=KNOWS) as client:
        patient, hasty = [await start(client, tool) for tool in ("ask", "give_up")]
        began = trio.current_time()
        assert await end(client, hasty) == "too late"
        assert trio.current_time() - began == pytest.approx(5, abs=0.2)
        await trio.sleep(1000)
        assert (await client.request("tasks/get", patient))["status"] == "input_required"


class Answering(ClientHandler):
    """Answers each question when the test lets it."""

    def __init__(self):
        self.answers = defaultdict(trio.Event)

    async def handle_elicitation(self, params):
        await self.answers[params["message"]].wait()
        return Accept({"name": "Ann"})


class Called:
    """A call of a tool with a limit, whose handler is a function of the test.

    Attributes:
        limiter: The slots of the tool.
        answers: The event that answers a question, by its text.
    """

    def __init__(self, work, total=1):
        async def run(ctx: Context) -> None:
            await work(lambda text: ctx.elicit(text, Name))

        options = {"tools": [tool(run, max_concurrency=total, max_queue=9)]}
        self._server = type("One", (Server,), options, name="one", version="1")()
        self.limiter = self._server.registry.slots(self._server.registry.find_tool("run"), 9)

    @asynccontextmanager
    async def begin(self):
        """Begin the call; yields the cancel scope of the call. At the end the slot is free."""
        handler = Answering()
        self.answers = handler.answers
        with trio.fail_after(60):
            async with connect(self._server, version="2025-11-25", handler=handler) as client:
                async with trio.open_nursery() as nursery:
                    scope = trio.CancelScope()

                    @nursery.start_soon
                    async def call():
                        with scope:
                            await client.call_tool("run", {})

                    await trio.testing.wait_all_tasks_blocked()
                    yield scope
                await client.ping()
                await trio.testing.wait_all_tasks_blocked()
        assert self.limiter.borrowed_tokens == 0

    async def answer(self, text):
        self.answers[text].set()
        await trio.testing.wait_all_tasks_blocked()


async def test_a_place_is_taken_again_once():
    """The last task of a handler that stops asking takes the slot again, and only once."""
    taken = []

    async def work(ask):
        async def one(text):
            await ask(text)
            taken.append(called.limiter.borrowed_tokens)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "a")
            nursery.start_soon(one, "b")

    called = Called(work)
    async with called.begin():
        assert called.limiter.borrowed_tokens == 0
        await called.answer("a")
        assert taken == [0]
        await called.answer("b")
    assert taken == [0, 1]


@pytest.mark.parametrize("total", [1, 2])
async def test_two_tasks_that_wait_for_the_place_take_one(total):
    """Two tasks of a handler that wait for the slot acquire it once between them."""
    second, end = trio.Event(), trio.Event()

    async def work(ask):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "a")
            await second.wait()
            nursery.start_soon(ask, "b")
        await end.wait()

    called = Called(work, total)
    async with called.begin():
        for _ in range(total):  # other calls take every slot
            await called.limiter.acquire(None)
        await called.answer("a")
        second.set()
        await trio.testing.wait_all_tasks_blocked()
        await called.answer("b")
        for _ in range(total):
            called.limiter.release(None)
        await trio.testing.wait_all_tasks_blocked()
        assert called.limiter.borrowed_tokens == 1
        end.set()


async def test_a_place_that_comes_while_somebody_asks_again_is_left():
    """A slot that becomes free while a task of the handler asks is taken after the answer."""
    second, end = trio.Event(), trio.Event()

    async def work(ask):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "a")
            await second.wait()
            nursery.start_soon(ask, "b")
        await end.wait()

    called = Called(work)
    async with called.begin():
        await called.limiter.acquire(None)
        await called.answer("a")
        second.set()
        await trio.testing.wait_all_tasks_blocked()
        called.limiter.release(None)
        await trio.testing.wait_all_tasks_blocked()
        assert called.limiter.borrowed_tokens == 0
        await called.answer("b")
        assert called.limiter.borrowed_tokens == 1
        end.set()


@pytest.mark.parametrize("taken", [False, True])
async def test_a_place_is_free_after_cancellation(taken):
    """A cancelled call holds no slot, even if it waited for one or had released it."""

    async def work(ask):
        await ask("a")

    called = Called(work)
    async with called.begin() as scope:
        if taken:
            await called.limiter.acquire(None)
            await called.answer("a")
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        if taken:
            called.limiter.release(None)


async def test_who_stops_waiting_for_an_answer_has_the_place_again():
    """A task that gives up its question takes a free slot again without waiting."""
    taken = []

    async def work(ask):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, "a")
                await trio.testing.wait_all_tasks_blocked()
                taken.append(called.limiter.borrowed_tokens)
                scope.cancel()
        taken.append(called.limiter.borrowed_tokens)

    called = Called(work)
    async with called.begin():
        pass
    assert taken == [0, 1]


async def test_tasks_have_threads_of_their_own():
    """If all task threads are busy, other tools and resources still run, and tasks wait."""
    release = threading.Event()

    class Blocking(Toolkit):
        @mcp(task="required")
        def block(self) -> str:
            return "released" if release.wait(30) else "forgotten"

        @mcp
        def quick(self, args, ctx: Context) -> str:
            return f"{ctx.threads.total_tokens} threads"

        @mcp(task="required")
        async def read(self, args, ctx: Context) -> str:
            found = await ctx.read_resource("a://b")
            return f"{found.contents[0].text}, {ctx.threads.total_tokens} thread"

    class Text(Resource, uri="a://b"):
        def read(self):
            return "text"

    class Few(Server, name="few", version="1", limits=Limits(threads=2, task_threads=1)):
        tools = [Blocking]
        resources = [Text]

    server = Few()
    async with connect(server, version=MODERN, capabilities=KNOWS) as client:
        blocking = [await start(client, "block") for _ in range(3)]
        reading = await start(client, "read")
        assert server.task_threads.borrowed_tokens == 1
        assert (await client.call_tool("quick")).content[0].text == "2 threads"
        assert (await client.read_resource("a://b")).contents[0].text == "text"
        assert (await client.request("tasks/get", reading))["status"] == "working"
        release.set()
        for task in blocking:
            assert await end(client, task, 0) == "released"
        assert await end(client, reading, 0) == "text, 1 thread"
