"""Limits on the number and size of tasks, and which ended tasks are removed to make room."""

import pytest
import trio
import trio.testing

from noizu_mcp import (
    Context,
    Limits,
    McpError,
    Server,
    TaskStarted,
    Toolkit,
    connect,
    mcp,
)
from noizu_mcp.auth import Principal
from noizu_mcp.events import Telemetry
from noizu_mcp.server import ServerOptions, TaskStore
from noizu_mcp.types import InputRequest

from .tasking import KNOWS, start

TTL = 100.0


class Bench:
    """A store of tasks without work."""

    def __init__(self, **limits):
        options = ServerOptions("s", "1", task_ttl=TTL, limits=Limits(**limits))
        self.store = TaskStore(options, lambda work: None, Telemetry())

    def begin(self, owner=None, *, told=False, size=0):
        """Make a running task, or an ended task whose owner was notified."""
        task = self.store.create(owner, size)
        if told:
            task.complete({"content": []})
        self.store.note_delivered(task)
        return task

    def has(self, *tasks):
        return [self.store.get(task.id) is task for task in tasks]


async def test_there_may_be_so_many(autojump_clock):
    """Ended tasks count while they are kept; expired tasks make room."""
    bench = Bench(tasks=2)
    bench.begin().complete({"content": []})
    await trio.sleep(TTL / 2)
    bench.begin().complete({"content": []})
    with pytest.raises(McpError, match="Too many tasks; try again in 50 s, or") as caught:
        bench.begin()
    assert (caught.value.code, caught.value.data) == (-32603, {"retryAfter": 50})
    await trio.sleep(TTL / 2)
    bench.begin()
    assert len(bench.store) == 2


async def test_each_principal_may_have_so_many(autojump_clock):
    """A principal at its limit does not limit others; anonymous callers have no own limit."""
    bench = Bench(tasks_per_principal=1)
    bench.begin("bob")
    await trio.sleep(TTL / 4)
    bench.begin("ann")
    with pytest.raises(McpError, match="Too many tasks") as caught:
        bench.begin("ann")
    assert caught.value.data == {"retryAfter": TTL}
    bench.begin()
    bench.begin()


async def test_a_refusal_never_says_to_come_back_at_once(autojump_clock):
    """The retry time is at least 1 s, also if an expired task still runs."""
    bench = Bench(tasks=1)
    task = bench.begin()
    bench.store.start(task, trio.sleep_forever, None)
    await trio.sleep(TTL)
    with pytest.raises(McpError, match="in 1 s"):
        bench.begin()


async def test_what_has_ended_and_been_told_makes_room():
    """The task whose end was reported first is removed first; running and unreported ones stay."""
    bench = Bench(tasks=4)
    running, untold = bench.begin(), bench.begin()
    untold.complete({"content": []})
    old, young = bench.begin(told=True), bench.begin(told=True)
    bench.begin()
    assert bench.has(running, untold, old, young) == [True, True, False, True]
    bench.begin()
    assert bench.has(running, untold, young) == [True, True, False]
    assert not bench.store.make_room(None)
    bench.store.note_delivered(untold)
    bench.begin()
    assert bench.has(running, untold) == [True, False]


async def test_the_callers_own_goes_first():
    """The caller's own ended task is removed first, then another's; at its own limit none."""
    bench = Bench(tasks=4, tasks_per_principal=3)
    bobs = bench.begin("bob", told=True)
    own = bench.begin("ann", told=True)
    bench.begin("ann")
    cyds = bench.begin("cyd")
    bench.begin("ann")
    assert bench.has(bobs, own) == [True, False]
    bench.begin("ann")
    assert bench.has(bobs) == [False]
    cyds.complete({"content": []})
    bench.store.note_delivered(cyds)
    assert not bench.store.make_room("ann")
    assert bench.has(cyds) == [True]


async def test_reported_tasks_of_others_make_room():
    """A principal gets room where reported tasks of others use up the whole store."""
    bench = Bench(tasks=4, tasks_per_principal=2)
    for owner in ("ann", "ann", "bob", "bob"):
        bench.begin(owner, told=True)
    for _ in range(2):
        bench.begin("cyd")
    assert len(bench.store) == 4
    for _ in range(2):
        bench.begin("bob")
    assert not bench.store.make_room("cyd")


async def test_one_at_its_bound_takes_no_room_of_others():
    """A principal at its limit does not remove ended tasks of others."""
    bench = Bench(tasks_per_principal=1)
    bobs, anns = bench.begin("bob", told=True), bench.begin("ann")
    assert not bench.store.make_room("ann")
    anns.complete({"content": []})
    assert not bench.store.make_room("ann")
    bench.store.note_delivered(anns)
    assert bench.store.make_room("ann")
    assert bench.has(bobs, anns) == [True, False]


RESULT = {"content": []}
RESULT_SIZE = len('{"resultType":"complete","content":[]}')


async def test_what_tasks_hold_is_bounded():
    """A running task holds its request, an ended one its result, a cancelled one nothing."""
    bench = Bench(task_memory=100)
    task = bench.begin(size=100)
    assert not bench.store.make_room(None, 1)
    task.complete(RESULT)
    assert bench.store.make_room(None, 100 - RESULT_SIZE)
    assert not bench.store.make_room(None, 101 - RESULT_SIZE)
    other = bench.begin(size=100 - RESULT_SIZE)
    with pytest.raises(McpError, match="Too many tasks; try again in 100 s") as caught:
        bench.begin(size=1)
    assert caught.value.data == {"retryAfter": TTL}
    bench.begin()
    other.end_cancelled()
    assert bench.store.make_room(None, 100 - RESULT_SIZE)


async def test_a_request_that_no_room_is_large_enough_for():
    """The request is refused without a retry time, and no task is removed for it."""
    bench = Bench(task_memory=100)
    told = bench.begin(told=True)
    for owner, most in ((None, 100), ("ann", 25)):
        with pytest.raises(McpError, match="The request is too large for a task") as caught:
            bench.begin(owner, size=most + 1)
        assert (caught.value.code, caught.value.data) == (-32603, None)
    assert bench.has(told) == [True]
    for owner, most in ((None, 100), ("ann", 25)):
        bench.begin(owner, size=most).end_cancelled()


async def test_what_one_principal_holds_is_bounded():
    """One principal has a quarter of the memory; the rest is for the others."""
    bench = Bench(task_memory=400)
    bobs = bench.begin("bob", told=True)
    bench.begin("ann", size=90)
    assert not bench.store.make_room("ann", 11)
    assert bench.store.make_room("ann", 10)
    assert bench.store.make_room("cyd", 100)
    assert bench.has(bobs) == [True]


async def test_as_many_go_as_make_room():
    """As many tasks are removed as needed, those that were reported longest ago first."""
    bench = Bench(task_memory=4 * RESULT_SIZE)
    old = [bench.begin(told=True) for _ in range(4)]
    bench.begin(size=2 * RESULT_SIZE - 1)
    assert bench.has(*old) == [False, False, True, True]


async def test_nothing_is_removed_for_a_result_that_never_fits():
    """No task is removed for a result or an answer that cannot fit."""
    bench = Bench(task_memory=1000)
    told = bench.begin(told=True)
    task = bench.begin(size=600)
    task.complete({"content": ["x" * 1000]})
    assert task.status == "failed"
    assert bench.has(told, task) == [True, True]


async def test_a_result_without_room_is_an_error(caplog):
    """Only reported results of others are removed for it; the log names the limit."""
    bench = Bench(task_memory=2 * RESULT_SIZE)
    told, untold = bench.begin(told=True), bench.begin()
    untold.complete(RESULT)
    task, unlucky = bench.begin(), bench.begin()
    task.complete(RESULT)
    assert bench.has(told, untold, task) == [False, True, True]
    unlucky.complete(RESULT)
    error = {"code": -32603, "message": "The result could not be kept: tasks hold too many bytes"}
    assert unlucky.to_wire()["error"] == error
    assert unlucky.outcome == ("error", -32603)
    assert task.to_wire()["result"] == {"resultType": "complete", **RESULT}
    assert "Limits.task_memory" in caplog.text


async def test_the_data_of_an_error_without_room_is_left_out():
    """The error is kept without its data."""
    bench = Bench(task_memory=100)
    task = bench.begin(size=10)
    task.fail(-32000, "no", "x" * 100)
    assert task.to_wire()["error"] == {"code": -32000, "message": "no"}
    assert task.size == len('{"code":-32000,"message":"no"}')


async def test_a_question_that_is_no_json_is_the_handlers_to_hear_of(autojump_clock):
    """A question that is not JSON raises in the handler, and is not shown in the task."""
    task = Bench().begin()
    with pytest.raises(ValueError, match="Out of range"):
        await task.ask(InputRequest("roots/list", {"at": float("nan")}), None)
    assert task.to_wire()["status"] == "working"


async def test_answers_count(autojump_clock):
    """An answer without room is refused, and its question stays open.

    An answer to an unknown question uses no room.
    """
    bench = Bench(task_memory=1000)
    task = bench.begin()
    answers = []

    async def ask():
        answers.append(await task.ask(InputRequest("roots/list", {}), None))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        (key,) = task.to_wire()["inputRequests"]
        task.answer({"other": "x" * 1000})
        with pytest.raises(McpError, match="too many bytes to take more answers") as caught:
            task.answer({key: "x" * 1000})
        assert (caught.value.code, task.status, task.size) == (-32603, "input_required", 0)
        task.answer({key: "x"})
    assert answers == ["x"]
    assert 0 < task.size < 1000


class Jobs(Toolkit):
    """Tools of which one task fills the room."""

    def __init__(self):
        self.turns = 0

    @mcp(task="optional")
    async def think(self) -> str:
        return "thought"

    @mcp(task="required")
    async def work(self) -> str:
        return "worked"

    @mcp(task="required")
    async def hold(self) -> str:
        await trio.sleep_forever()

    @mcp(task="optional", starts_task=True)
    async def begin(self, args, ctx: Context) -> str:
        self.turns += 1
        await ctx.start_task()
        await ctx.start_task()
        return f"turn {self.turns}"


class Full(Server, name="full", version="1", limits=Limits(tasks=1)):
    tools = [Jobs]


@pytest.fixture
async def client():
    who = Principal(subject="ann")
    given = {"version": "2026-07-28", "capabilities": KNOWS, "principal": who}
    async with connect(Full, **given) as client:
        yield client


async def test_without_room_an_optional_task_is_not_created(autojump_clock, client):
    """The call is answered in its request, as for a client without tasks."""
    await start(client, "hold")
    assert (await client.call_tool("think")).content[0].text == "thought"
    assert (await client.call_tool("begin")).content[0].text == "turn 1"


async def test_without_room_a_tool_that_must_have_one_is_refused(autojump_clock, client):
    """The error has the time until a retry."""
    await start(client, "hold")
    with pytest.raises(McpError, match="Too many tasks; try again in 3600 s") as caught:
        await client.call_tool("work")
    assert caught.value.code == -32603


async def test_asking_for_the_end_makes_room(client):
    """The room is free as soon as the response has reported the end of the task."""
    params = await start(client, "hold")
    await client.request("tasks/get", params)
    assert (await client.call_tool("think")).content[0].text == "thought"
    await client.request("tasks/cancel", params)
    await trio.testing.wait_all_tasks_blocked()
    assert (await client.call_tool("think")).content[0].text == "thought"
    assert (await client.request("tasks/get", params))["status"] == "cancelled"
    await start(client, "work")
    with pytest.raises(McpError, match="no longer kept"):
        await client.request("tasks/get", params)


async def test_hearing_of_the_end_makes_room(client):
    """The room is free as soon as the notification was sent."""
    params = await start(client, "work")
    wanted = {"notifications": {"taskIds": [params["taskId"]]}}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.request, "subscriptions/listen", wanted)
        await trio.testing.wait_all_tasks_blocked()
        await start(client, "think")
        nursery.cancel_scope.cancel()


async def test_the_arguments_of_tasks_count():
    """A call whose arguments exceed the room is answered in its request, or refused."""

    class Eager(Toolkit):
        @mcp(task="optional")
        async def think(self, args) -> str:
            return f"{len(args['text'])} characters"

        @mcp(task="required")
        async def work(self, args) -> str:
            return "worked"

    class Small(Server, name="small", version="1", limits=Limits(task_memory=10_000)):
        tools = [Eager]

    async with connect(Small, version="2026-07-28", capabilities=KNOWS) as client:
        with pytest.raises(TaskStarted):
            await client.call_tool("think", {"text": "x" * 1000})
        answer = await client.call_tool("think", {"text": "x" * 10_000})
        assert answer.content[0].text == "10000 characters"
        with pytest.raises(McpError, match="The request is too large for a task"):
            await client.call_tool("work", {"text": "x" * 10_000})
