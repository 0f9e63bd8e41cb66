"""Tasks of many nodes: any of them serves a task, and none of them loses it."""

import pytest
import trio

from noizu_mcp import Context, Limits, ToolProvider, mcp, tool
from noizu_mcp.auth import BearerAuth, Principal, StaticVerifier
from noizu_mcp.server import digest_of

from ..kit.messages import call
from .tasking import DEATH, KNOWS, Jobs, Line, fleet, heard, joined

ANN, BOB = {"authorization": "Bearer ann"}, {"authorization": "Bearer bob"}
POOR = {"authorization": "Bearer poor"}
VERIFIER = StaticVerifier(
    {
        "ann": Principal(subject="ann", scopes=["write"], claims={"groups": ["a"]}),
        "poor": Principal(subject="ann"),
        "bob": Principal(subject="bob", scopes=["write"]),
    }
)
AUTH = BearerAuth(VERIFIER, resource="http://localhost/mcp", authorization_servers=[])
UNKNOWN = (-32602, "Unknown task; it never was, or it is no longer kept")
AGAIN = (-32603, "The tasks cannot be reached now; try again in a moment")


async def test_any_node_serves_a_task(autojump_clock):
    """State, progress, questions, answers and the result."""
    async with fleet(3) as them:
        id_ = await them.begin(0, "ask")
        task = await them.until(1, id_, "input_required", seconds=1)
        ((key, question),) = task["inputRequests"].items()
        assert question["params"]["message"] == "Name?"
        assert await them.look(0, id_) == task
        answers = {key: {"action": "accept", "content": {"name": "Ann"}}, "other": {}}
        done = await them.send(2, "tasks/update", {"taskId": id_, "inputResponses": answers})
        assert done["result"]["resultType"] == "complete"
        assert await them.text(1, id_) == "Ann in 1"
        assert await them.look(0, id_) == await them.look(1, id_) == await them.look(2, id_)
        # An answer to a task that has ended is ignored.
        await them.send(2, "tasks/update", {"taskId": id_, "inputResponses": answers})
        assert await them.failure(1, id_, "tasks/update") == (
            -32602,
            "tasks/update requires an inputResponses object",
        )
        assert await them.failure(1, "none") == UNKNOWN


async def test_large_answers_reach_another_node(autojump_clock):
    """They are more than a message holds."""
    async with fleet() as them:
        id_ = await them.begin(0, "ask")
        ((key, _),) = (await them.until(1, id_, "input_required"))["inputRequests"].items()
        answers = {key: {"action": "accept", "content": {"name": "x" * 200_000}}}
        params = {"taskId": id_, "inputResponses": answers}
        them.lines[1].down = True
        assert await them.failure(1, id_, "tasks/update", inputResponses=answers) == AGAIN
        them.lines[1].down = False
        them.lines[1].lost = [["put", "m:", 0]]
        assert await them.failure(1, id_, "tasks/update", inputResponses=answers) == AGAIN
        await them.send(1, "tasks/update", params)
        assert len(await them.text(0, id_)) == 200_000 + len(" in 1")
        await them.send(1, "tasks/update", params)
        await them.send(1, "tasks/cancel", {"taskId": id_})


async def test_a_task_is_cancelled_at_any_node(autojump_clock):
    """Within a second; its listeners hear it."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        heard_here, heard_there = them.listen(0, id_), them.listen(1, id_)
        await heard_there.event(1)
        await them.send(1, "tasks/cancel", {"taskId": id_})
        await trio.sleep(1)

        assert (await them.look(0, id_))["status"] == "cancelled"
        assert (await them.look(1, id_))["status"] == "cancelled"
        assert them.log == [("work", 0, 1), ("work cancelled", 0, 1)]
        assert heard(heard_here) == heard(heard_there) == ["working", "cancelled"]


async def test_a_task_is_its_owners_at_every_node(autojump_clock):
    """Scopes that its handler has required count at every node, too."""
    async with fleet(http={"auth": AUTH}) as them:
        id_ = await them.begin(0, "guarded", headers=ANN)
        await trio.sleep(1)
        assert (await them.look(1, id_, ANN))["status"] == "working"
        assert (await them.failure(1, id_, headers=POOR))[0] == -31403
        listeners = [them.listen(1, id_, headers=each) for each in (ANN, POOR, BOB)]
        for method in ("tasks/get", "tasks/cancel"):
            assert await them.failure(1, id_, method, headers=BOB) == UNKNOWN
        for each in listeners:
            await each.event(0)
        granted = [each.messages[0]["params"]["notifications"] for each in listeners]
        assert granted == [{"taskIds": [id_]}, {}, {}]
        them.finish()
        await trio.sleep(1)
        assert (await them.look(1, id_, ANN))["status"] == "completed"


async def test_the_changes_of_a_task_are_merged(autojump_clock):
    """A listener at another node hears some of them, and the last one."""
    async with fleet() as them:
        id_ = await them.begin(0, "counts")
        listener = them.listen(1, id_)
        await trio.sleep(3)
        them.finish()
        await trio.sleep(1)

        states = [each["params"] for each in listener.messages[1:]]
        assert 5 < len(states) < 40
        assert states[-1]["status"] == "completed"
        assert states[-2]["statusMessage"] == "99 of 100"
        listener.leave()
        await listener.ended.wait()


async def test_quotas_hold_over_all_nodes(autojump_clock):
    """A new task replaces one whose owner has seen the end, at whatever node."""
    limits = Limits(tasks=3, tasks_per_principal=2)
    async with fleet(http={"auth": AUTH}, limits=limits) as them:
        first = await them.begin(0, "again", headers=ANN)
        second = await them.begin(1, "work", headers=ANN)
        for place in (0, 1):
            error = await them.refused(place, "work", headers=ANN)
            assert error["code"] == -32603
            assert "Too many tasks; try again in 3" in error["message"]
            assert 0 < error["data"]["retryAfter"] <= 3600
        third = await them.begin(1, "work", headers=BOB)
        assert "Too many tasks" in (await them.refused(0, "work", headers=BOB))["message"]
        for jobs in them.jobs:
            jobs.go_on.set()
        await trio.sleep(1)
        # The end is there, and not seen.
        assert "Too many tasks" in (await them.refused(0, "work", headers=BOB))["message"]
        assert (await them.look(0, second, ANN))["status"] == "completed"
        assert (await them.look(1, second, ANN))["status"] == "completed"
        await trio.sleep(1)
        fourth = await them.begin(0, "work", headers=BOB)
        assert await them.failure(0, second, headers=ANN) == UNKNOWN
        assert (await them.look(1, first, ANN))["status"] == "completed"
        for id_ in (third, fourth):
            await trio.sleep(1)
            assert (await them.look(0, id_, BOB))["status"] == "completed"
        await trio.sleep(1)
        # One of the own tasks, since the share of the principal is full.
        await them.begin(1, "work", headers=BOB)
        assert (await them.look(0, first, ANN))["status"] == "completed"


async def test_without_principals_the_tasks_of_all_count(autojump_clock):
    """An expired task counts no more."""
    async with fleet(limits=Limits(tasks=1), task_ttl=60.0) as them:
        them.finish()
        first = await them.begin(0, "work")
        await trio.sleep(1)
        assert "try again in 60 s" in (await them.refused(1, "work"))["message"]
        await them.text(1, first)
        await them.text(0, first)
        await trio.sleep(1)
        second = await them.begin(1, "work")
        await trio.sleep(61)
        assert await them.failure(0, second) == UNKNOWN
        await them.begin(0, "work")


async def test_the_death_of_a_node_ends_its_tasks(autojump_clock):
    """Within the lease and three seconds; its listeners are told."""
    async with fleet(3) as them:
        id_ = await them.begin(0, "work")
        listener = them.listen(1, id_)
        await listener.event(1)
        them.lines[0].down = True
        await trio.sleep(them.backend.lease + 3)

        for place in (1, 2):
            task = await them.look(place, id_)
            assert task["status"] == "failed"
            assert task["error"]["code"] == -32603
            assert "node" in task["error"]["message"]
            assert task["statusMessage"] == task["error"]["message"]
        assert heard(listener) == ["working", "failed"]
        # At this node, which does not know yet.
        assert (await them.look(0, id_))["status"] == "working"
        them.lines[0].down = False
        await trio.sleep(3)
        assert (await them.look(0, id_))["status"] == "failed"
        assert them.log == [("work", 0, 1), ("work cancelled", 0, 1)]


async def test_a_restartable_task_runs_again(autojump_clock):
    """At most three times; its handler learns which time it is."""
    async with fleet(4) as them:
        id_ = await them.begin(0, "again", {"what": "tea"})
        listener = them.listen(3, id_)
        created = (await them.look(3, id_))["createdAt"]
        for number in range(2):
            (place,) = [place for what, place, n in them.log if (what, n) == ("tea", number + 1)]
            if place == 3:
                break
            them.lines[place].down = True
            await trio.sleep(them.backend.lease + 3)
        runs = [(n, place) for what, place, n in them.log if what == "tea"]
        assert [n for n, _ in runs] == list(range(1, len(runs) + 1))
        assert len({place for _, place in runs}) == len(runs)
        n, place = runs[-1]
        task = await them.look(3, id_)
        assert (task["status"], task["createdAt"]) == ("working", created)
        them.finish()
        assert await them.text(3, id_) == f"done at {place} in {n}"
        assert set(heard(listener)) == {"working", "completed"}


async def test_a_task_runs_three_times_at_most(autojump_clock):
    """Then it has failed."""
    async with fleet(1) as them:
        id_ = await them.begin(0, "again")
        for number in (1, 2, 3):
            async with joined(them, Line(them.backend), Jobs(number, them.log)):
                await trio.sleep(DEATH)
                them.lines[number - 1].down = True
                await trio.sleep(them.backend.lease + 3)
                last = await them.look(number, id_)
                them.lines[number].down = True
        assert last["status"] == "failed"
        assert "node" in last["error"]["message"]
        runs = [each for each in them.log if each[0] == "again"]
        assert runs == [("again", 0, 1), ("again", 1, 2), ("again", 2, 3)]


async def test_a_task_that_begins_itself_runs_again_with_its_answers(autojump_clock):
    """Answers and steps of the request are stored with the call."""
    async with fleet() as them:
        asked = (await them.wires[0].send_modern(call("later", **KNOWS))).json["result"]
        (key,) = asked["inputRequests"]
        params = {
            "inputResponses": {key: {"action": "accept", "content": {"name": "Ann"}}},
            "requestState": asked["requestState"],
        }
        answer = await them.wires[0].send_modern(call("later", **params, **KNOWS))
        id_ = answer.json["result"]["taskId"]
        await trio.sleep(1)
        them.lines[0].down = True
        await trio.sleep(them.backend.lease + 3)
        them.finish()

        assert await them.text(1, id_) == "Ann from 0: done at 1 in 2"
        assert [each for each in them.log if each[0] == "step"] == [("step", 0, 1)]


async def test_a_second_attempt_asks_under_other_keys(autojump_clock):
    """An answer to a question of the first attempt is ignored."""
    async with fleet(3) as them:
        id_ = await them.begin(0, "ask")
        (first,) = (await them.until(1, id_, "input_required"))["inputRequests"]
        them.lines[0].down = True
        await trio.sleep(them.backend.lease + 3)
        (second,) = (await them.until(1, id_, "input_required"))["inputRequests"]
        assert first != second
        for key, name in ((first, "old"), (second, "new")):
            answers = {key: {"action": "accept", "content": {"name": name}}}
            for place in (1, 2):
                params = {"taskId": id_, "inputResponses": answers}
                await them.send(place, "tasks/update", params)
            await trio.sleep(1)
        assert await them.text(2, id_) == "new in 2"


async def test_a_node_without_its_lease_gives_up_what_runs_again(autojump_clock):
    """By its own clock, before another node may run it."""
    async with fleet() as them:
        id_ = await them.begin(0, "again")
        them.lines[0].down = True
        await trio.sleep(them.backend.lease / 2)
        assert them.log == [("again", 0, 1)]
        await trio.sleep(them.backend.lease * 0.4)
        assert them.log == [("again", 0, 1), ("again cancelled", 0, 1)]
        assert (await them.look(0, id_))["status"] == "working"
        for method in ("tasks/cancel", "tasks/update"):
            assert await them.failure(0, id_, method, inputResponses={}) == AGAIN
        await trio.sleep(them.backend.lease)
        assert ("again", 1, 2) in them.log
        them.lines[0].down = False
        await trio.sleep(3)
        them.finish()
        assert await them.text(0, id_) == "done at 1 in 2"
        runs = [each for each in them.log if each[0] == "again"]
        assert runs == [("again", 0, 1), ("again", 1, 2)]


@pytest.mark.parametrize("is_emptied", [False, True])
async def test_after_an_outage_a_task_that_was_given_up_runs_again_here(autojump_clock, is_emptied):
    """No node may take another one for dead after an outage."""
    async with fleet() as them:
        id_ = await them.begin(0, "again")
        listener = them.listen(0, id_)
        for line in them.lines:
            line.down = True
        await trio.sleep(60)
        assert (await them.look(0, id_))["status"] == "working"
        assert await them.failure(1, id_) == AGAIN
        for line in them.lines:
            line.down = False
        if is_emptied:
            them.backend.clear()
        await trio.sleep(5)
        assert them.log == [("again", 0, 1), ("again cancelled", 0, 1), ("again", 0, 2)]
        them.finish()
        assert await them.text(1, id_) == "done at 0 in 2"
        await trio.sleep(1)
        assert heard(listener)[-1] == "completed"


async def test_in_an_outage_own_tasks_are_served(autojump_clock):
    """Clients see an end once it is stored; new tasks are refused, or run in their request."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        listener = them.listen(0, id_)
        for line in them.lines:
            line.down = True
        await trio.sleep(1)
        for place, jobs in enumerate(them.jobs):
            assert (await them.refused(place, "work"))["message"] == AGAIN[1]
            jobs.go_on.set()
        for seconds in (1, 30):
            await trio.sleep(seconds)
            assert (await them.look(0, id_))["status"] == "working"
            assert await them.failure(1, id_) == AGAIN
        refused = await them.wires[1].send_modern(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "subscriptions/listen",
                "params": {"notifications": {"taskIds": [id_]}, **KNOWS},
            }
        )
        assert refused.json["error"]["message"] == AGAIN[1]
        done = (await them.wires[1].send_modern(call("maybe", **KNOWS))).json["result"]
        assert done["content"][0]["text"] == "done at 1 in 1"
        assert heard(listener) == ["working"]
        for line in them.lines:
            line.down = False
        await trio.sleep(3)
        assert await them.text(1, id_) == "done at 0 in 1"
        assert heard(listener) == ["working", "completed"]
        # What was refused has left nothing behind.
        tasks = await them.backend.members("tasks")
        assert len(tasks) == 1


async def test_running_tasks_are_put_back_into_an_emptied_backend(autojump_clock):
    """Within three seconds, at every node."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        listener = them.listen(1, id_)
        await listener.event(1)
        them.backend.clear()
        await trio.sleep(1.1)
        error = await them.failure(1, "other")
        assert error == AGAIN
        await trio.sleep(2)
        assert (await them.look(1, id_))["status"] == "working"
        assert await them.failure(1, "other") in (AGAIN, UNKNOWN)
        them.finish()
        assert await them.text(1, id_) == "done at 0 in 1"
        await trio.sleep(1)
        assert heard(listener)[-1] == "completed"


async def test_a_call_whose_record_is_uncertain_is_refused_and_leaves_nothing(autojump_clock):
    """The record was written, and its answer lost."""
    async with fleet() as them:
        for tool in ("work", "again"):
            them.lines[0].lost = [["put", "t:", 0]]
            assert (await them.refused(0, tool))["message"] == AGAIN[1]
        await trio.sleep(1)
        assert await them.backend.members("tasks") == []
        assert them.log == []


async def test_a_node_that_leaves_hands_its_tasks_over(autojump_clock):
    """Others run them again, or fail them; ends are written first."""
    async with fleet(1) as them:
        leaving = joined(them, Line(them.backend), Jobs(1, them.log), {"limits": {"grace": 2}})
        async with leaving:
            await trio.sleep(DEATH)
            again, asking = await them.begin(1, "again"), await them.begin(1, "ask")
            work = await them.begin(1, "work")
            await trio.sleep(1)
        await trio.sleep(3)

        assert (await them.look(0, work))["status"] in ("cancelled", "failed")
        assert (await them.look(0, asking))["status"] == "input_required"
        them.finish()
        assert await them.text(0, again) == "done at 0 in 2"


async def test_the_attempt_of_any_other_call_is_the_first(autojump_clock):
    """Calls without a task have one."""
    async with fleet(1, settled=False) as them:
        answer = await them.wires[0].send_modern(call("quick"))
        assert answer.json["result"]["content"][0]["text"] == "1"


async def test_a_renewal_whose_answer_is_lost_is_no_death(autojump_clock, caplog):
    """The node goes on, with its tasks."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        them.lines[0].lost = [["put", "known:", 0], ["put", "t:", 0]]
        await trio.sleep(DEATH)
        assert (await them.look(1, id_))["status"] == "working"
        them.finish()
        assert await them.text(1, id_) == "done at 0 in 1"
    assert "for dead" not in caplog.text


async def test_a_reader_ends_a_task_whose_node_is_gone(autojump_clock):
    """The node that found the death has died as well, before it could act; readers race."""
    async with fleet(4) as them:
        ids = [await them.begin(0, "work") for _ in range(5)]
        again = await them.begin(0, "again")
        them.lines[0].down = True
        for key in ("known", "alive"):
            await them.backend.delete(f"{key}:{them.node(0).id}")
        await trio.sleep(3)
        tasks = []

        async def look(place, id_):
            tasks.append(await them.look(place, id_))

        async with trio.open_nursery() as nursery:
            for id_ in [*ids, again] * 3:
                for place in (1, 2, 3):
                    nursery.start_soon(look, place, id_)
        await trio.sleep(1)
        for id_ in ids:
            states = [await them.look(place, id_) for place in (1, 2, 3)]
            assert states[0] == states[1] == states[2]
            assert states[0]["status"] == "failed"
        assert {each["status"] for each in tasks} <= {"working", "failed"}
        assert [n for what, _, n in them.log if what == "again"] == [1, 2]


async def test_listeners_hear_of_a_task_whose_death_was_lost(autojump_clock):
    """The node that found the death has died before it could act, and no client asks."""
    async with fleet(3) as them:
        id_ = await them.begin(0, "work")
        over = await them.begin(0, "work")
        await them.send(0, "tasks/cancel", {"taskId": over})
        await trio.sleep(1)
        listener = them.listen(1, id_, over)
        await listener.event(2)
        them.lines[0].down = True
        for key in ("known", "alive"):
            await them.backend.delete(f"{key}:{them.node(0).id}")
        await trio.sleep(4)
        assert heard(listener)[-1] == "failed"
        listener.leave()
        await trio.sleep(2)
        again = them.listen(1, id_)
        await again.event(1)
        assert heard(again) == ["failed"]


async def test_the_end_of_an_outage_brings_the_ends(autojump_clock):
    """What ended in time is not given up."""
    async with fleet() as them:
        id_ = await them.begin(0, "again")
        for line in them.lines:
            line.down = True
        await trio.sleep(1)
        them.finish()
        await trio.sleep(60)
        for line in them.lines:
            line.down = False
        await trio.sleep(3)
        assert await them.text(1, id_) == "done at 0 in 1"
        assert them.log == [("again", 0, 1)]


async def test_a_node_that_comes_back_believes_the_record(autojump_clock):
    """Its own copy is out of date, also before it has renewed its lease."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        them.lines[0].down = True
        await trio.sleep(DEATH)
        assert (await them.look(1, id_))["status"] == "failed"
        them.finish()
        await trio.sleep(1)
        assert (await them.look(0, id_))["status"] == "working"
        them.lines[0].down = False
        assert (await them.look(0, id_))["status"] == "failed"
        await trio.sleep(3)
        assert (await them.look(1, id_))["status"] == "failed"


async def test_an_attempt_whose_record_is_uncertain_is_the_next_one(autojump_clock):
    """The handler runs once for each number, and the last of them at most."""
    async with fleet() as them:
        id_ = await them.begin(0, "again")
        them.lines[0].down = True
        them.lines[1].lost = [["put", "t:", 0]]
        await trio.sleep(DEATH)
        them.finish()
        assert await them.text(1, id_) == "done at 1 in 3"
        assert [each for each in them.log if each[1] == 1] == [("again", 1, 3)]


async def test_a_node_without_room_fails_a_task(autojump_clock):
    """It cannot run it again."""
    async with fleet(limits=Limits(tasks=2)) as them:
        first, second = await them.begin(0, "again"), await them.begin(0, "again")
        small = joined(
            them, Line(them.backend), Jobs(2, them.log), options={"limits": Limits(tasks=1)}
        )
        async with small:
            await trio.sleep(DEATH)
            them.lines[1].down = True
            await trio.sleep(DEATH)
            them.lines[0].down = True
            await trio.sleep(DEATH)
            states = [(await them.look(2, id_))["status"] for id_ in (first, second)]
            assert sorted(states) == ["failed", "working"]
            them.lines[0].down = them.lines[1].down = False
            them.finish()


async def test_answers_that_find_no_room_are_dropped(autojump_clock, caplog):
    """The node of the task says so in its log. Messages for no task do nothing."""
    async with fleet(limits=Limits(task_memory=20_000)) as them:
        id_ = await them.begin(0, "ask")
        ((key, _),) = (await them.until(1, id_, "input_required"))["inputRequests"].items()
        answers = {key: {"action": "accept", "content": {"name": "x" * 30_000}}}
        await them.send(1, "tasks/update", {"taskId": id_, "inputResponses": answers})
        for body in (("task-cancel", "t:no", 1), ("task-answers", "t:no", 1, {}, None)):
            them.node(1).tell(*body, to=them.node(0).id)
        them.node(1).tell("task-answers", "t:no", 1, None, "m:no", to=them.node(0).id)
        await trio.sleep(1)
        assert (await them.look(0, id_))["status"] == "input_required"
        assert "answers to a task were dropped" in caplog.text
        await them.send(1, "tasks/cancel", {"taskId": id_})
        assert (await them.until(0, id_))["status"] == "cancelled"


@pytest.mark.parametrize("value", [{}, {"scopes": 5}, {"scopes": [], "new": 1}, [1], "text"])
async def test_a_record_of_another_version_is_no_task(autojump_clock, value):
    """Nothing crashes."""
    async with fleet() as them:
        await them.node(0).records.put(f"t:{digest_of('abc')}", value, ttl=60)
        assert await them.failure(1, "abc") == UNKNOWN


@pytest.mark.parametrize("data", [b"", b"garbage", None])
async def test_garbage_in_the_place_of_a_task_is_replaced(autojump_clock, data):
    """The node of the task knows better."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        key = f"t:{digest_of(id_)}"
        if data is None:
            await them.backend.delete(key)
        else:
            await them.backend.put(key, data, ttl=60)
        assert await them.failure(1, id_) == UNKNOWN
        them.finish()
        await trio.sleep(1)
        assert await them.text(1, id_) == "done at 0 in 1"


async def test_a_client_that_leaves_while_its_task_is_stored_leaves_no_task(autojump_clock):
    """The record is deleted."""
    async with fleet() as them:
        for tool in ("work", "again"):
            them.lines[0].hold = ("put", "t:")
            exchange = them.wires[0].modern(call(tool, **KNOWS))
            await trio.sleep(1)
            exchange.leave()
            await exchange.ended.wait()
            them.lines[0].release()
            await trio.sleep(1)
            assert await them.backend.members("tasks") == []
        assert them.log == []


async def test_a_call_that_could_not_become_a_task_can_ask(autojump_clock):
    """It is parked in its request, and goes on in the same outage."""
    async with fleet() as them:
        for line in them.lines:
            line.down = True
        asked = (await them.wires[0].send_modern(call("maybe_ask", **KNOWS))).json["result"]
        (key,) = asked["inputRequests"]
        params = {
            "inputResponses": {key: {"action": "accept", "content": {"name": "Ann"}}},
            "requestState": asked["requestState"],
        }
        done = await them.wires[0].send_modern(call("maybe_ask", **params, **KNOWS))
        assert done.json["result"]["content"][0]["text"] == "Ann"
        assert them.log == [("maybe_ask", 0, 1)]
        asked = (await them.wires[0].send_modern(call("later", **KNOWS))).json["result"]
        (key,) = asked["inputRequests"]
        params = {
            "inputResponses": {key: {"action": "accept", "content": {"name": "Ann"}}},
            "requestState": asked["requestState"],
        }
        them.finish()
        done = await them.wires[0].send_modern(call("later", **params, **KNOWS))
        text = done.json["result"]["content"][0]["text"]
        assert text == "Ann from 0: done at 0 in 1"


async def test_a_result_that_no_record_holds_fails_its_task(autojump_clock):
    """The others reach every node; the scope of a tool counts everywhere."""
    async with fleet(http={"auth": AUTH}) as them:
        for size, state in ((1_000_000, "completed"), (15 * 2**20, "failed")):
            id_ = await them.begin(0, "large", {"size": size}, headers=ANN)
            await trio.sleep(1)
            task = await them.look(1, id_, ANN)
            assert task["status"] == state
            assert (await them.failure(1, id_, headers=POOR))[0] == -31403


async def test_the_ends_of_a_node_that_leaves_are_written(autojump_clock):
    """It waits a second for the backend."""
    async with fleet(1) as them:
        line = Line(them.backend)
        async with joined(them, line, Jobs(1, them.log), {"limits": {"grace": 0.5}}):
            await trio.sleep(1)
            id_ = await them.begin(1, "work")
            await trio.sleep(1)
            line.hold = ("put", "t:")
            await them.send(1, "tasks/cancel", {"taskId": id_})

            async def release():
                await trio.sleep(0.3)
                line.release()

            them.wires[0].nursery.start_soon(release)
        assert (await them.look(0, id_))["status"] == "cancelled"
        await trio.sleep(3)
        assert (await them.look(0, id_))["status"] == "cancelled"


async def test_a_listener_that_leaves_is_forgotten(autojump_clock):
    """Also while the state is fetched for it, and where the task is gone."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        one, two = them.listen(1, id_), them.listen(1, id_)
        await one.event(1)
        one.leave()
        them.lines[1].hold = ("get", "t:")
        await them.send(0, "tasks/cancel", {"taskId": id_})
        await trio.sleep(1)
        two.leave()
        await two.ended.wait()
        them.lines[1].release()
        await trio.sleep(1)
        three = them.listen(1, id_)
        await three.event(1)
        await them.backend.delete(f"t:{digest_of(id_)}")
        them.node(0).tell("task", f"t:{digest_of(id_)}")
        await trio.sleep(1)
        assert heard(three) == ["cancelled"]
        assert await them.failure(1, id_) == UNKNOWN


async def test_a_listener_may_want_resources_as_well(autojump_clock):
    """The server is asked once for each."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        listener = them.listen(1, id_, "none", uris=["x:1"])
        granted = (await listener.event(0))["data"]["params"]["notifications"]
        assert granted == {"taskIds": [id_], "resourceSubscriptions": ["x:1"]}
        assert them.log == [("work", 0, 1), ("watched", "x:1")]


async def test_after_a_gap_a_listener_gets_the_state(autojump_clock):
    """A message about a change may have been dropped."""
    async with fleet() as them:
        id_ = await them.begin(0, "work")
        listener = them.listen(1, id_)
        await listener.event(1)
        them.lines[1].hold = ("read", "")
        await trio.sleep(6)
        await them.send(0, "tasks/cancel", {"taskId": id_})
        await trio.sleep(1)
        for _ in range(10_001):
            await them.backend.append("log", b"x", keep=10_000, ttl=60)
        assert heard(listener) == ["working"]
        them.lines[1].release()
        await trio.sleep(1)
        assert heard(listener) == ["working", "cancelled"]


async def test_another_version_of_a_tool_may_refuse_the_second_attempt(autojump_clock):
    """Its answer is the result of the task; a tool that is gone fails it."""

    class Stricter(Jobs):
        @mcp(task="required", restartable=True)
        async def again(self, ctx: Context, *, what: int) -> str:
            """Take a number."""
            return "never"

        ask = None

    async with fleet(1) as them:
        ids = [await them.begin(0, tool) for tool in ("ask", "again")]
        again = await them.begin(0, "again", {"what": "tea"})
        async with joined(them, Line(them.backend), Stricter(1, them.log)):
            await trio.sleep(DEATH)
            them.lines[0].down = True
            await trio.sleep(DEATH)
            assert (await them.look(1, again))["result"]["isError"] is True
            assert (await them.look(1, ids[1]))["result"]["isError"] is True
            assert (await them.look(1, ids[0]))["status"] == "failed"
            them.lines[0].down = False


async def test_a_task_that_could_be_stored_begins(autojump_clock):
    """The record that makes it restartable is written once the backend answers again."""
    async with fleet() as them:
        for number in (1, 2):
            them.lines[0].lost = [["put", "t:", number]]
            id_ = await them.begin(0, "again", {"what": f"{number}"})
            await trio.sleep(1)
            assert (await them.look(1, id_))["status"] == "working"
        them.lines[0].down = True
        await trio.sleep(DEATH)
        assert [n for _, place, n in them.log if place == 1] == [2, 2]


async def test_the_second_attempt_has_the_caller_of_the_first(autojump_clock):
    """Its scopes count for each access, and the token is not stored."""
    async with fleet(http={"auth": AUTH}) as them:
        meta = {
            **KNOWS["_meta"],
            "m": "n",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        }
        exchange = await them.wires[0].send_modern(call("own", _meta=meta), ANN)
        id_ = exchange.json["result"]["taskId"]
        await trio.sleep(1)
        them.lines[0].down = True
        await trio.sleep(DEATH)
        them.finish()
        await trio.sleep(1)
        assert (await them.failure(1, id_, headers=POOR))[0] == -31403
        task = await them.look(1, id_, ANN)
        assert task["result"]["content"][0]["text"] == "ann ('a',) c n"


async def test_a_mark_without_its_task_makes_no_room(autojump_clock):
    """The next one does."""
    async with fleet(limits=Limits(tasks=2)) as them:
        them.finish()
        ids = [await them.begin(0, "work") for _ in range(2)]
        for id_ in ids:
            await them.text(1, id_)
        (first, *_) = await them.backend.members("told")
        await them.backend.delete(first.replace("d:", "t:"))
        await them.begin(1, "work")
        await trio.sleep(1)
        await them.begin(1, "work")
        assert len(await them.backend.members("tasks")) == 2


async def test_a_task_is_given_up_once(autojump_clock):
    """Its record is of another node, and this one was taken for dead meanwhile."""
    async with fleet(http={"auth": AUTH}) as them:
        id_ = await them.begin(0, "guarded", headers=ANN)
        await trio.sleep(1)
        node, key = them.node(1), f"t:{digest_of(id_)}"
        stored = await node.records.get(key)
        await node.records.put(key, {**stored.value, "node": node.id}, ttl=60)
        them.lines[0].hold = ("get", "t:")
        them.finish()
        await trio.sleep(1)
        await them.backend.delete(f"known:{them.node(0).id}")
        await trio.sleep(3)
        them.lines[0].release()
        await trio.sleep(3)
        # The other node does not run it either, so the next reader there ends it.
        assert (await them.look(1, id_, ANN))["status"] == "failed"
        assert (await them.look(0, id_, ANN))["status"] == "failed"


async def test_the_handler_of_a_task_that_is_given_up_changes_nothing(autojump_clock):
    """Whatever it does on its way out."""
    async with fleet(http={"auth": AUTH}) as them:
        id_ = await them.begin(0, "guarded", headers=ANN)
        await trio.sleep(1)
        them.lines[0].down = True
        await trio.sleep(DEATH)
        them.lines[0].down = False
        await trio.sleep(3)
        assert them.log == [("guarded", 0, 1), ("guarded cancelled", 0, 1)]
        assert (await them.look(0, id_, ANN))["status"] == "failed"


async def test_a_node_that_comes_back_may_run_the_task_once_more(autojump_clock):
    """The node that ran it meanwhile is gone, and the own end came too late."""
    async with fleet(1) as them:
        id_ = await them.begin(0, "again")
        them.lines[0].down = True
        them.finish()
        await trio.sleep(1)
        async with joined(them, Line(them.backend), Jobs(1, them.log)):
            await trio.sleep(2 * DEATH)
            assert them.log[-1] == ("again", 1, 2)
            them.lines[1].down = True
            for key in ("known", "alive"):
                await them.backend.delete(f"{key}:{them.node(1).id}")
            them.lines[0].down = False
            assert (await them.look(0, id_))["status"] == "working"
            await trio.sleep(3)
            assert await them.text(0, id_) == "done at 0 in 3"
            them.lines[1].down = False


async def test_a_tool_of_a_provider_runs_again(autojump_clock):
    """Its provider is asked first."""
    ran = []

    async def job(ctx: Context) -> str:
        ran.append(ctx.attempt)
        await trio.sleep(60)
        return f"attempt {ctx.attempt}"

    class Jobless(ToolProvider):
        async def tools(self, ctx):
            return [tool(job, name="job", task="required", restartable=True)]

    async with fleet(providers=[Jobless()]) as them:
        ids = [await them.begin(0, "job") for _ in range(2)]
        them.lines[0].down = True
        await trio.sleep(DEATH)
        for id_ in ids:
            assert await them.text(1, id_) == "attempt 2"
        assert sorted(ran) == [1, 1, 2, 2]


async def test_listeners_of_telemetry_hear_of_the_second_attempt(autojump_clock):
    """It has a start and an end at the node that runs it."""
    async with fleet() as them:
        heard = [[], []]
        for place in (0, 1):
            telemetry = them.wires[place].app.server.telemetry
            telemetry.add(heard[place].append)
        id_ = await them.begin(0, "again")
        them.lines[0].down = True
        await trio.sleep(DEATH)
        them.finish()
        await them.text(1, id_)
        kinds = [[each.kind for each in place if each.task] for place in heard]
        assert kinds[1] == ["start", "stop"]
