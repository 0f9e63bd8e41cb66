"""Tasks of many nodes: any of them serves a task, and none of them loses it."""

import pytest
import trio

from noizu_mcp import Limits
from noizu_mcp.auth import BearerAuth, Principal, StaticVerifier

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
        them.lines[1].lost = [("put", "m:")]
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
    """An end is told once it is stored; new tasks are refused, or run in their request."""
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
            them.lines[0].lost = [("put", "t:")]
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
        them.lines[0].lost = [("put", "known:"), ("put", "t:")]
        await trio.sleep(DEATH)
        assert (await them.look(1, id_))["status"] == "working"
        them.finish()
        assert await them.text(1, id_) == "done at 0 in 1"
    assert "for dead" not in caplog.text
