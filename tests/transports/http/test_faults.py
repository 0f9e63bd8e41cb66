"""Many clients that fail or leave: no other client loses an answer, and nothing leaks."""

import gc
import random
import tracemalloc

import pytest
import trio

from ...kit.messages import call, message
from .shop import Shop
from .wire import serving, settled

SESSIONS = 300
#: Calls in each of two runs.
CALLS = 1700
#: Bytes of an idle session after its handshake, without the data of its client.
BYTES = 4096
#: Bytes that may remain of each of many sessions, after as many before: less than the smallest
#: object. Tables of the process grow in steps, so it is not 0.
LEFT = 16


async def _visit(wire):
    """Connect, make a request, read, and leave without ending the session."""
    session = await wire.session()
    running = session.open(call("wait", {"seconds": 2}))
    standing = session.get()
    await standing.event(0)
    await trio.sleep(1.5)
    running.leave()
    standing.leave()
    await running.ended.wait()
    await standing.ended.wait()
    return session


@pytest.mark.slow
@pytest.mark.time_limit(360)
async def test_sessions_that_are_dropped_leave_nothing(autojump_clock):
    """Tables, tasks, listeners and memory are the same as before."""
    async with serving(Shop(), limits={"session_idle": 100}) as wire:
        await _visit(wire)
        await trio.sleep(200)
        tasks, left = trio.lowlevel.current_statistics().tasks_living, []
        tracemalloc.start()
        try:
            for _ in range(2):
                for _ in range(SESSIONS):
                    await _visit(wire)
                # Sessions of the last hundred seconds still exist.
                assert 0 < len(wire.endpoint.sessions) < SESSIONS
                await trio.sleep(200)
                gc.collect()
                left.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        assert len(wire.endpoint.sessions) == 0
        assert len(wire.tasks) == 2  # the tasks that end idle sessions and streams
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert (left[1] - left[0]) / SESSIONS < LEFT


@pytest.mark.slow
async def test_an_idle_session_is_small(autojump_clock):
    """Its objects are small, and created when needed."""
    async with serving(Shop()) as wire:
        for _ in range(10):
            await wire.session()
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(SESSIONS):
                await wire.session()
            gc.collect()
            size, _peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(wire.endpoint.sessions) == SESSIONS + 10
        assert size / SESSIONS < BYTES


class Crowd:
    """Clients that treat their calls at random."""

    def __init__(self, wire, sessions, seed):
        self.answered = self.fetched = 0
        self._wire = wire
        self._sessions = sessions
        self._chance = random.Random(seed)

    async def make(self, number):
        """Make a call, and treat it at random."""
        chance = self._chance
        await trio.sleep(chance.uniform(0, 20))
        arguments = {"seconds": chance.choice([0, 0.5, 2, 4]), "report": chance.random() < 0.5}
        body = call("wait", arguments, number, _meta={"progressToken": number})
        session = chance.choice([None, *self._sessions])
        running = self._wire.modern(body) if session is None else session.open(body)
        fate = chance.choice([self._stay, self._leave, self._stall, self._cancel, self._kill])
        await trio.sleep(chance.uniform(0, 5))
        await fate(running, session, number)
        await running.ended.wait()

    async def _stay(self, running, _session, _number):
        await running.ended.wait()
        messages = running.messages if running.is_stream else [running.json]
        assert messages[-1]["result"]["content"][0]["text"] == "done"
        self.answered += 1

    async def _leave(self, running, session, number):
        running.leave()
        await running.ended.wait()
        if session is None or not running.sent or not running.is_stream:
            return
        again = session.get(running.events[0]["id"])
        await again.ended.wait()
        if again.status == 200:  # else too many others have ended meanwhile
            assert again.messages[-1]["id"] == number
            self.fetched += 1

    async def _stall(self, running, _session, _number):
        running.stall()
        with trio.move_on_after(40):
            await running.ended.wait()
        running.read_on()

    async def _cancel(self, running, session, number):
        if session is None:
            await self._stay(running, session, number)
        else:
            body = message("notifications/cancelled", {"requestId": number})
            assert (await session.post(body)).status == 202

    async def _kill(self, running, _session, _number):
        running.cancel.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.time_limit(360)
async def test_no_answer_is_lost_for_other_clients(autojump_clock, seed):
    """Clients that leave, stall or are cancelled cost no other client its answer."""
    async with serving(Shop(), limits={"streams": CALLS, "stall": 5}) as wire:
        sessions = [await wire.session() for _ in range(20)]
        tasks = trio.lowlevel.current_statistics().tasks_living
        crowd = Crowd(wire, sessions, seed)
        async with trio.open_nursery() as nursery:
            for number in range(CALLS):
                nursery.start_soon(crowd.make, number)
        await settled()
        assert crowd.answered > CALLS // 10
        assert crowd.fetched > CALLS // 20
        assert len(wire.endpoint.app.streams) == 0
        assert wire.endpoint.open == 0
        assert len(wire.tasks) == 2  # the tasks that end idle sessions and streams
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        for session in sessions:
            assert session.served.peer.ledger.inbound == 0
            assert not session.served.requests
            assert not session.served.is_used
