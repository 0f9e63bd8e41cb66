"""The store of tasks: lifetimes, numbers, owners."""

import logging
import math
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import ConnectionClosed, Limits, McpError, RequestTimeout, Server
from noizu_mcp.auth import InsufficientScope, Principal, RequireScopes
from noizu_mcp.events import Telemetry
from noizu_mcp.server import RunningServer, ServerOptions, TaskStore
from noizu_mcp.types import InputRequest, Task

TTL = 100.0
ASK = InputRequest("roots/list")


class Bench:
    """A store in a nursery."""

    def __init__(self, nursery, **options):
        kept = ServerOptions("s", "1", task_ttl=TTL, **options)
        self.nursery = nursery
        self.store = TaskStore(kept, nursery.start_soon, Telemetry())
        self.go_on = trio.Event()

    def begin(self, work=None, *, owner=None, timeout=None):
        task = self.store.create(owner)
        self.store.start(task, work or self.wait, timeout)
        return task

    async def wait(self):
        await self.go_on.wait()
        return {"content": []}

    def is_known(self, task):
        return self.store.get(task.id) is task


async def done():
    return {"content": []}


async def settled():
    """Let all tasks run until they block."""
    await trio.testing.wait_all_tasks_blocked()


async def test_a_result_is_kept_as_long_as_the_task_might_run(nursery, autojump_clock):
    """A result is kept for the maximum lifetime after the task ended, and then dropped."""
    bench = Bench(nursery)
    task = bench.begin()
    assert task.to_wire()["ttlMs"] == 100_000
    await trio.sleep(60)
    bench.go_on.set()
    await settled()
    assert task.status == "completed"
    assert task.to_wire()["ttlMs"] == 160_000
    await trio.sleep(TTL - 1)
    assert bench.is_known(task)
    assert bench.store.find(task.id, None) is task
    await trio.sleep(1)
    assert bench.store.get(task.id) is None
    with pytest.raises(McpError, match="Unknown task") as caught:
        bench.store.find(task.id, None)
    assert caught.value.code == -32602
    await trio.sleep(TTL)
    assert len(bench.store) == 0


async def test_what_runs_for_too_long_is_cancelled(nursery, autojump_clock):
    """A task is cancelled at the end of its lifetime."""
    bench = Bench(nursery)
    task = bench.begin()
    asking = bench.begin(lambda: asking_task.ask(ASK, None))
    asking_task = asking
    await trio.sleep(TTL + 1)
    assert len(bench.store) == 0
    assert not bench.is_known(task)
    await bench.store.settle(10)  # nothing is running
    assert trio.current_time() < 2 * TTL


async def test_the_store_sweeps_only_while_there_is_something(nursery, autojump_clock):
    """After the last task the sweep stops; the next task starts it again."""
    for _ in range(2):
        bench = Bench(nursery)
        bench.begin(done)
        await trio.sleep(2 * TTL)
        assert len(bench.store) == 0
        assert nursery.child_tasks == frozenset()
        bench.begin(done)
        await trio.sleep(2 * TTL)
        assert len(bench.store) == 0
        assert nursery.child_tasks == frozenset()


async def test_a_timeout_is_a_result(nursery, autojump_clock):
    """The timeout of the tool can be moved; a task that runs out of it completes."""
    bench = Bench(nursery)
    task = bench.begin(timeout=10)
    await trio.sleep(9)
    task.expire_at(math.inf)
    await trio.sleep(50)
    task.expire_at(trio.current_time() + 1)
    await trio.sleep(0.5)
    assert task.status == "working"
    await trio.sleep(1)
    assert task.status == "completed"
    assert task.to_wire()["result"]["isError"] is True


async def test_a_task_is_its_owners(nursery):
    """Only its owner finds a task, and the ids are not guessable."""
    bench = Bench(nursery)
    task = bench.begin(owner="ann")
    anybodys = bench.begin()
    assert bench.store.find(task.id, "ann") is task
    for owner in ("bob", None):
        with pytest.raises(McpError, match="Unknown task"):
            bench.store.find(task.id, owner)
    with pytest.raises(McpError, match="Unknown task"):
        bench.store.find(anybodys.id, "ann")
    assert len(task.id) >= 32
    assert task.id != anybodys.id
    nursery.cancel_scope.cancel()


async def test_who_follows_a_task_is_forgotten_with_it(nursery, autojump_clock):
    """Listeners of a task are dropped when the task is removed or expires."""
    bench = Bench(nursery, limits=Limits(tasks=1))
    for is_told in (True, False):
        task = bench.begin(done)
        bench.store.follow(task.id, print)
        await settled()
        if is_told:
            bench.store.note_delivered(task)
        else:
            await trio.sleep(2 * TTL)
        assert bench.store.make_room(None)
        assert not bench.is_known(task)
        assert bench.store._followers == {}
        bench.store.unfollow(task.id, print)


async def test_a_question_may_have_a_time_of_its_own(nursery, autojump_clock):
    """A question that times out is removed; without a timeout it waits for the task's lifetime."""
    bench = Bench(nursery)
    task = bench.begin()
    with pytest.raises(RequestTimeout, match="roots/list was not answered within 5 s"):
        await task.ask(ASK, 5)
    assert trio.current_time() == 5
    assert task.status == "working"
    for _ in range(2):
        nursery.start_soon(task.ask, ASK, None)
    await trio.sleep(TTL / 2)
    assert len(task.to_wire()["inputRequests"]) == 2
    nursery.cancel_scope.cancel()


async def test_a_task_shows_what_its_call_needed(nursery):
    """A caller needs all scopes that the call required; the error lists all of them."""
    task = Bench(nursery).begin(done)
    task.admit(None)
    for needed in (RequireScopes("read"), RequireScopes("write", "mail"), RequireScopes("read")):
        task.require(needed)
    task.admit(Principal(subject="ann", scopes=["read", "write", "mail", "more"]))
    for caller in (None, Principal(subject="ann", scopes=["read", "write"])):
        assert not task.admits(caller)
        with pytest.raises(InsufficientScope) as caught:
            task.admit(caller)
        assert list(caught.value.scopes) == ["read", "write", "mail"]


async def test_changes_are_reported(nursery):
    """Each change is reported to the followers of the task, and nothing after its end."""
    bench = Bench(nursery)
    task, other = bench.begin(), bench.begin(partial(sleep_for, 1))
    changes, none = [], []
    bench.store.follow(task.id, changes.append)
    bench.store.follow(task.id, none.append)
    bench.store.unfollow(task.id, none.append)
    task.say("half")
    other.say("quarter")
    assert [change.id for change in changes] == [task.id]
    assert task.to_wire()["statusMessage"] == "half"
    bench.go_on.set()
    await settled()
    assert len(changes) == 2
    task.say("after all")
    task.cancel()
    task.answer({"roots-1": {}})
    assert len(changes) == 2
    assert none == []
    assert "statusMessage" not in task.to_wire()
    assert not task.cancelling
    nursery.cancel_scope.cancel()


async def test_a_result_is_a_copy(nursery):
    """Changes by the handler after its return do not affect the stored result."""
    bench = Bench(nursery)
    result = {"content": []}

    async def give():
        return result

    task = bench.begin(give)
    await settled()
    result["content"].append("more")
    assert task.to_wire()["result"] == {"resultType": "complete", "content": []}
    assert Task.from_wire(task.to_wire()).ended
    nursery.cancel_scope.cancel()


async def test_what_is_no_json(nursery, caplog):
    """A result that is not JSON is an internal error, and is logged."""
    bench = Bench(nursery)

    async def give():
        return {"content": [object()]}

    task = bench.begin(give)
    await settled()
    assert task.to_wire()["error"] == {"code": -32603, "message": "Result is not JSON"}
    assert task.outcome == ("crashed", -32603)
    assert "not JSON" in caplog.text
    nursery.cancel_scope.cancel()


async def fail_on_the_way_out():
    try:
        await trio.sleep_forever()
    finally:
        raise RuntimeError("on the way out")


async def test_failing_while_it_is_cancelled(nursery, caplog):
    """A task that fails during its cancellation is cancelled, and the failure is logged."""
    bench = Bench(nursery)

    async def work():
        async with trio.open_nursery() as inner:
            inner.start_soon(fail_on_the_way_out)
            await trio.sleep_forever()

    task = bench.begin(work)
    await settled()
    task.cancel()
    await settled()
    assert task.status == "cancelled"
    assert "on the way out" in caplog.text
    nursery.cancel_scope.cancel()


async def test_an_unexpected_failure(nursery, caplog):
    """An unexpected failure ends only its own task."""
    bench = Bench(nursery)

    async def work():
        raise RuntimeError("secret")

    task = bench.begin(work)
    await settled()
    assert task.to_wire()["error"] == {"code": -32603, "message": "Request handler failed"}
    assert "secret" in caplog.text
    nursery.cancel_scope.cancel()


async def test_work_that_is_done_is_done(nursery):
    """A task that is cancelled after its work ended is completed."""
    bench = Bench(nursery)

    async def work():
        with trio.CancelScope(shield=True):
            await bench.go_on.wait()
        return {"content": []}

    task = bench.begin(work)
    await settled()
    task.cancel()
    bench.go_on.set()
    await settled()
    assert task.status == "completed"
    nursery.cancel_scope.cancel()


@pytest.mark.slow
@given(st.lists(st.integers(-3, 12), max_size=30))
def test_every_question_has_a_key_of_its_own(moves):
    """Each question has a new key.

    A move below 0 asks; another answers that key, whether or not it is open. Keys are not reused.
    """

    async def play():
        async with trio.open_nursery() as nursery:
            task = Bench(nursery).begin()
            waiting, seen, answered = set(), set(), {}

            async def ask():
                answer = await task.ask(ASK, None)
                answered[answer["key"]] = True

            for move in moves:
                keys = sorted(seen)
                if move < 0:
                    nursery.start_soon(ask)
                elif move < len(keys):
                    task.answer({keys[move]: {"key": keys[move]}, "unknown": {}})
                    waiting.discard(keys[move])
                await settled()
                asked = set(task.to_wire().get("inputRequests", ()))
                assert (asked - waiting).isdisjoint(seen)
                assert waiting <= asked
                assert task.status == ("input_required" if asked else "working")
                waiting, seen = asked, seen | asked
                assert answered.keys() == seen - waiting
            nursery.cancel_scope.cancel()

    trio.run(play)


async def test_asking_after_the_end(nursery):
    """A question from outside of the handler raises once the task has ended."""
    bench = Bench(nursery)
    task = bench.begin()

    async def ask(told):
        with pytest.raises(ConnectionClosed, match="before roots/list was"):
            await task.ask(ASK, None)
        told.set()

    pending, late = trio.Event(), trio.Event()
    nursery.start_soon(ask, pending)
    await settled()
    assert task.status == "input_required"
    bench.go_on.set()
    with trio.fail_after(60):
        await pending.wait()
    assert task.status == "completed"
    nursery.start_soon(ask, late)
    with trio.fail_after(60):
        await late.wait()
    assert task.status == "completed"
    nursery.cancel_scope.cancel()


async def test_the_end_of_the_store(nursery, autojump_clock, caplog):
    """Running tasks get the grace period, asking ones are cancelled, new ones are refused."""
    bench = Bench(nursery)
    quick = bench.begin(partial(sleep_for, 3))
    slow = bench.begin()
    asking = bench.begin(lambda: asking.ask(ASK, None))
    await settled()
    start = trio.current_time()
    async with trio.open_nursery() as settling:
        settling.start_soon(bench.store.settle, 5)
        await settled()
        assert asking.status == "cancelled"
        with pytest.raises(McpError, match="shutting down"):
            bench.store.create(None)
        await trio.sleep(4)
        assert (quick.status, slow.status) == ("completed", "working")
    assert trio.current_time() == start + 5
    await settled()
    assert slow.status == "cancelled"
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def sleep_for(seconds):
    await trio.sleep(seconds)
    return {"content": []}


async def test_the_end_of_a_store_where_all_ends_in_time(nursery, autojump_clock):
    """Closing takes no longer than the running tasks."""
    bench = Bench(nursery)
    tasks = [bench.begin(partial(sleep_for, seconds)) for seconds in (1, 2)]
    start = trio.current_time()
    await bench.store.settle(5)
    assert trio.current_time() == start + 2
    assert {task.status for task in tasks} == {"completed"}


@pytest.mark.parametrize("option", ["task_ttl", "task_poll_interval"])
@pytest.mark.parametrize("value", [0, -1, None, "1", True, float("inf")])
def test_wrong_options_of_a_server(option, value):
    """The lifetime and the poll interval of tasks are seconds above 0."""
    with pytest.raises(TypeError, match=f"{option}: must be seconds above 0"):
        type("S", (Server,), {"name": "s", "version": "1", option: value})


async def test_times_on_the_wire_are_never_nothing(nursery):
    """Short times are sent as one millisecond, not as zero."""
    bench = Bench(nursery, task_poll_interval=1e-9)
    task = bench.begin(done)
    assert task.to_wire()["pollIntervalMs"] == 1
    nursery.cancel_scope.cancel()


async def test_a_change_of_a_task_that_is_gone_is_not_sent(nursery):
    """Subscribers get the state of a task, so without the task they get nothing."""

    class Subscriber:
        def tell(self, change, notice):
            raise AssertionError

    bench, changes = Bench(nursery), []
    task = bench.begin()
    bench.store.follow(task.id, changes.append)
    task.say("half")
    server = type("Other", (Server,), {}, name="other", version="1")()
    merger = RunningServer(server, {}, None, "memory", nursery.start_soon).merger
    merger.subscribers[Subscriber()] = None
    merger.report(changes[0])
    nursery.cancel_scope.cancel()
