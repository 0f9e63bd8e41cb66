"""`max_concurrency` of a tool, and the threads of tasks."""

import threading
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
)
from noizu_mcp.engine import FairLimiter
from noizu_mcp.server.calls._concurrency_limit import current_slot, one_of

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


async def test_a_question_of_a_task_may_have_a_time_of_its_own(autojump_clock):
    """A question of a task may have a timeout; without one it waits while the task lives."""
    async with connect(Office, version=MODERN, capabilities=KNOWS) as client:
        patient, hasty = [await start(client, tool) for tool in ("ask", "give_up")]
        began = trio.current_time()
        assert await end(client, hasty) == "too late"
        assert trio.current_time() - began == pytest.approx(5, abs=0.2)
        await trio.sleep(1000)
        assert (await client.request("tasks/get", patient))["status"] == "input_required"


@asynccontextmanager
async def given_back():
    """Release the slot of the call while the block runs, as a question does."""
    slot = current_slot.get()
    slot.ask()
    try:
        yield
    finally:
        await slot.answered()


async def test_a_place_is_taken_again_once():
    """The last task of a handler that stops asking takes the slot again, and only once."""
    limiter = FairLimiter(1)
    taken, answers = [], [trio.Event() for _ in range(2)]

    async def ask(event):
        async with given_back():
            await event.wait()
        taken.append(limiter.borrowed_tokens)

    with trio.fail_after(60):
        async with one_of(limiter.of(None)), trio.open_nursery() as nursery:
            for event in answers:
                nursery.start_soon(ask, event)
            await trio.testing.wait_all_tasks_blocked()
            assert limiter.borrowed_tokens == 0
            answers[0].set()
            await trio.testing.wait_all_tasks_blocked()
            assert taken == [0]
            answers[1].set()
        assert taken == [0, 1]
        assert limiter.borrowed_tokens == 0


@pytest.mark.parametrize("total", [1, 2])
async def test_two_tasks_that_wait_for_the_place_take_one(autojump_clock, total):
    """Two tasks of a handler that wait for the slot acquire it once between them."""
    limiter = FairLimiter(total)
    answers = [trio.Event(), trio.Event()]

    async def ask(event):
        async with given_back():
            await event.wait()

    with trio.fail_after(5):
        async with one_of(limiter.of(None)), trio.open_nursery() as nursery:
            for number, event in enumerate(answers):
                nursery.start_soon(ask, event)
                await trio.testing.wait_all_tasks_blocked()
                for _ in range(total * (number == 0)):
                    await limiter.acquire(None)
                event.set()
                await trio.testing.wait_all_tasks_blocked()
            for _ in range(total):
                limiter.release(None)
            await trio.testing.wait_all_tasks_blocked()
            assert limiter.borrowed_tokens == 1
    assert limiter.borrowed_tokens == 0


async def test_a_place_that_comes_while_somebody_asks_again_is_left():
    """A slot that becomes free while a task of the handler asks is taken after the answer."""
    limiter = FairLimiter(1)
    first, second = trio.Event(), trio.Event()

    async def ask(event):
        async with given_back():
            await event.wait()

    with trio.fail_after(60):
        async with one_of(limiter.of(None)), trio.open_nursery() as nursery:
            nursery.start_soon(ask, first)
            await trio.testing.wait_all_tasks_blocked()
            await limiter.acquire(None)
            first.set()
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask, second)
            await trio.testing.wait_all_tasks_blocked()
            limiter.release(None)
            await trio.testing.wait_all_tasks_blocked()
            assert limiter.borrowed_tokens == 0
            second.set()
            await trio.testing.wait_all_tasks_blocked()
            assert limiter.borrowed_tokens == 1
        assert limiter.borrowed_tokens == 0


async def test_a_place_is_free_after_cancellation():
    """A cancelled call holds no slot, even if it waited for one or had released it."""
    limiter = FairLimiter(1)
    with trio.CancelScope() as scope:
        async with one_of(limiter.of(None)), given_back():
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert limiter.borrowed_tokens == 0
    with trio.CancelScope() as scope:
        async with one_of(limiter.of(None)), given_back():
            await limiter.acquire(None)
            scope.cancel()
            await trio.lowlevel.checkpoint()
    limiter.release(None)
    assert limiter.borrowed_tokens == 0


async def test_who_stops_waiting_for_an_answer_has_the_place_again():
    """A task that gives up its question takes a free slot again without waiting."""
    limiter = FairLimiter(1)
    async with one_of(limiter.of(None)):
        with trio.CancelScope() as scope:
            async with given_back():
                scope.cancel()
                await trio.lowlevel.checkpoint()
        assert limiter.borrowed_tokens == 1


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
