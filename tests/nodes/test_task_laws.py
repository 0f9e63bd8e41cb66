"""Laws of tasks on many nodes, under random faults: one end, and each attempt once."""

import random
from collections import Counter

import pytest
import trio

from noizu_mcp.backends import Memory

from .tasking import ENDED, fleet

PLACES = range(3)


class Chaos:
    """Random requests and faults, from a seed.

    Args:
        them: The nodes.
        seed: The seed.
    """

    def __init__(self, them, seed):
        self.them = them
        self.random = random.Random(seed)
        self.ids = []
        self.ends = {}
        self.finishing = {}

    async def run(self, steps):
        acts = [self.begin, self.begin, self.look, self.look, self.cancel, self.finish]
        acts += [self.cut, self.mend, self.mend, self.lose]
        for place in PLACES:
            await self.begin(place)
        async with trio.open_nursery() as nursery:
            for _ in range(steps):
                act = self.random.choice(acts)
                nursery.start_soon(act, self.random.choice(PLACES))
                await trio.sleep(self.random.choice([0, 0, 0, 0.01, 0.1, 0.3, 1, 4, 13]))

    async def begin(self, place):
        tool = self.random.choice(["work", "again"])
        what = {"what": f"again {len(self.ids)}"} if tool == "again" else {}
        self.ids.append(None)
        number = len(self.ids) - 1
        try:
            self.ids[number] = await self.them.begin(place, tool, what)
        except KeyError:
            return  # refused

    @property
    def some_id(self):
        return self.random.choice([None, *self.ids])

    async def look(self, place):
        if (id_ := self.some_id) is None:
            return
        answer = await self.them.send(place, "tasks/get", {"taskId": id_})
        if "error" in answer:
            assert "try again" in answer["error"]["message"], answer
        elif answer["result"]["status"] in ENDED:
            self.note_end(id_, answer["result"])

    def note_end(self, id_, task):
        end = {key: task.get(key) for key in ("status", "result", "error", "lastUpdatedAt")}
        assert self.ends.setdefault(id_, end) == end

    async def cancel(self, place):
        if (id_ := self.some_id) is not None:
            await self.them.send(place, "tasks/cancel", {"taskId": id_})

    async def finish(self, place):
        jobs = self.them.jobs[place]
        jobs.go_on.set()
        jobs.go_on = trio.Event()

    async def cut(self, place):
        if not any(line.down for line in self.them.lines):
            self.them.lines[place].down = True

    async def mend(self, place):
        self.them.lines[place].down = False

    async def lose(self, place):
        what = self.random.choice([("put", "t:"), ("put", "known:"), ("delete", ""), ("get", "")])
        self.them.lines[place].lost = [[*what, self.random.randrange(3)]]


@pytest.mark.parametrize("seed", range(25))
async def test_a_task_ends_once_and_each_attempt_runs_once(autojump_clock, seed, caplog):
    """At every node, whatever lines are cut and answers are lost meanwhile."""
    async with fleet(len(PLACES), Memory(start=0.0)) as them:
        chaos = Chaos(them, seed)
        await chaos.run(120)
        for line in them.lines:
            line.down, line.lost = False, []
        await trio.sleep(40)
        for _ in range(4):
            them.finish()
            await trio.sleep(5)
        ids = [id_ for id_ in chaos.ids if id_ is not None]
        for id_ in ids:
            for place in PLACES:
                task = await them.look(place, id_)
                assert task["status"] in ENDED
                chaos.note_end(id_, task)
    runs = Counter(
        (what, attempt)
        for what, _, attempt in them.log
        if what.startswith("again ") and not what.endswith("cancelled")
    )
    assert set(runs.values()) <= {1}
    assert all(attempt <= 3 for _, attempt in runs)
    assert "Traceback" not in caplog.text
    assert len(ids) >= len(PLACES)


@pytest.mark.parametrize("seed", range(10))
async def test_running_tasks_survive_losses_of_the_data(autojump_clock, seed):
    """They are at their nodes, and end with their results."""
    chance = random.Random(seed)
    async with fleet(len(PLACES), Memory(start=0.0)) as them:
        ids = [
            (place, await them.begin(place, chance.choice(["work", "again"])))
            for place in PLACES
            for _ in range(3)
        ]
        for _ in range(3):
            them.backend.clear()
            await trio.sleep(chance.choice([0.1, 1, 5]))
        await trio.sleep(4)
        for _, id_ in ids:
            for place in PLACES:
                assert (await them.look(place, id_))["status"] == "working"
        them.finish()
        for home, id_ in ids:
            for place in PLACES:
                assert await them.text(place, id_) == f"done at {home} in 1"
