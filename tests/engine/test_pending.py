"""Requests that wait for an answer: their timeouts, and the end of their connection."""

import json
import math

import pytest
import trio
import trio.testing

from noizu_mcp import ConnectionClosed, RequestTimeout
from noizu_mcp.transports import memory_pair

from .served import Served

PROGRESS = (
    b'{"jsonrpc":"2.0","method":"notifications/progress",'
    b'"params":{"progressToken":%d,"progress":1}}'
)


class Asking:
    """Sends requests over a connection, and records when each of them timed out.

    Attributes:
        peer: The other end of the connection.
        ended: The time of each timeout, by the id of its request.
    """

    def __init__(self, served, peer, nursery):
        self.served = served
        self.peer = peer
        self.nursery = nursery
        self.ended = {}

    async def ask(self, seconds=10.0, text="ping was not answered within"):
        """Send a request in another task; return its id."""
        request = self.served.peer.ledger.open("ping", None)

        async def wait():
            with pytest.raises(RequestTimeout, match=text):
                await self.served.send_request(request, patience=seconds)
            self.ended[request.id] = trio.current_time()

        self.nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        return request.id

    async def progress(self, id_=1):
        """Send progress from the other end."""
        await self.peer.send([PROGRESS % id_])
        await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
async def asking(wired, nursery):
    """Open a connection without requests, at the time 0."""
    served, peer = await wired()
    return Asking(served, peer, nursery)


async def test_progress_gives_more_time_up_to_a_maximum(asking, autojump_clock):
    """Each report restarts the timeout, up to ten times its length."""
    await asking.ask(1.0, "ping was not answered within 1 s")
    for _ in range(20):
        await trio.sleep(0.9)
        await asking.progress(1)
        await asking.progress(8)

    assert asking.ended == {1: pytest.approx(10.0)}


async def test_a_hold_has_a_maximum(asking, autojump_clock):
    """The peer cannot extend a request for ever."""
    await asking.ask()
    with asking.served.hold_timeouts():
        await trio.sleep(1000)

    assert asking.ended == {1: 100.0}


async def test_a_pause_has_none(asking, autojump_clock):
    """A pause has no maximum; after it the timeout begins again."""
    await asking.ask()
    with asking.served.pause_timeouts():
        await trio.sleep(1000)
    await trio.sleep(1000)

    assert asking.ended == {1: 1010.0}


async def test_a_pause_moves_the_maximum(asking, autojump_clock):
    """The maximum moves by the length of a pause, also of overlapping pauses."""
    await asking.ask()
    first, second = asking.served.pause_timeouts(), asking.served.pause_timeouts()
    with first:
        await trio.sleep(500)
        second.__enter__()
    await trio.sleep(500)
    second.__exit__(None, None, None)
    with asking.served.hold_timeouts():
        await trio.sleep(1000)

    assert asking.ended == {1: 1100.0}


async def test_a_hold_in_a_pause(asking, autojump_clock):
    """The pause decides; progress does not end it."""
    await asking.ask()
    with asking.served.pause_timeouts():
        with asking.served.hold_timeouts():
            await trio.sleep(500)
        await asking.progress()
        await trio.sleep(500)
    await trio.sleep(9)
    assert asking.ended == {}
    await trio.sleep(2)
    assert asking.ended == {1: 1010.0}


async def test_a_hold_that_outlives_a_pause(asking, autojump_clock):
    """Afterwards only the maximum counts."""
    await asking.ask()
    with asking.served.hold_timeouts():
        with asking.served.pause_timeouts():
            await trio.sleep(500)
        await trio.sleep(1000)

    assert asking.ended == {1: 600.0}


async def test_a_request_in_a_pause(asking, autojump_clock):
    """Its timeout begins at the end of the pause."""
    with asking.served.pause_timeouts():
        await asking.ask()
        await trio.sleep(1000)
    await trio.sleep(1000)

    assert asking.ended == {1: 1010.0}


@pytest.mark.parametrize("answered", [True, False])
async def test_each_request_ends_at_its_own_deadline(asking, autojump_clock, answered):
    """Requests time out in any order; an answer ends only its own request."""
    for seconds in (20, 60, 5, 20):
        await asking.ask(seconds)
    if answered:
        await asking.peer.send([b'{"jsonrpc":"2.0","id":9,"result":{}}'])
        first = asking.served.peer.ledger.open("ping", None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asking.served.send_request, first)
            await trio.testing.wait_all_tasks_blocked()
            await asking.peer.send([b'{"jsonrpc":"2.0","id":%d,"result":{}}' % first.id])
        assert trio.current_time() == 0
    await trio.sleep(100)

    assert asking.ended == {1: 20, 2: 60, 3: 5, 4: 20}


async def test_the_end_of_a_connection_ends_the_wait(autojump_clock):
    """Every open request fails, later ones cannot be sent, and no task waits for a deadline."""
    ours, theirs = memory_pair()
    served = Served(theirs)

    async def ask(method, seconds, text):
        request = served.peer.ledger.open(method, None)
        with pytest.raises(ConnectionClosed, match=text):
            await served.send_request(request, patience=seconds)

    async with trio.open_nursery() as nursery:
        await nursery.start(served.loop.run)
        for seconds in (60, math.inf):
            nursery.start_soon(ask, "ping", seconds, "before ping was answered")
        await trio.testing.wait_all_tasks_blocked()
        await ours.aclose()
    assert trio.current_time() < 60
    await ask("c", 1, "before c was sent")
    with pytest.raises(ConnectionClosed), served.pending.end_with_connection():
        await trio.sleep_forever()


async def test_an_answer_finds_its_request(asking, autojump_clock):
    """Responses with an unknown id, or without an id, wake no task."""
    results = {}

    async def ask(request):
        results[request.id] = await asking.served.send_request(request, patience=None)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(ask, asking.served.peer.ledger.open("ping", None))
        for id_ in (None, 9, "1", 2):
            answer = {"jsonrpc": "2.0", "id": id_, "result": {"x": id_}}
            await asking.peer.send([json.dumps(answer).encode()])
            await trio.testing.wait_all_tasks_blocked()
        assert results == {2: {"x": 2}}
        await asking.peer.send([b'{"jsonrpc":"2.0","id":1,"result":{"x":1}}'])
    assert results == {2: {"x": 2}, 1: {"x": 1}}


async def test_an_answer_to_a_request_that_does_not_wait(asking):
    """Its answer and its progress wake no other request."""
    asking.served.peer.ledger.open("ping", None)
    async with trio.open_nursery() as nursery:
        request = asking.served.peer.ledger.open("ping", None)
        nursery.start_soon(asking.served.send_request, request)
        await asking.progress(1)
        await asking.peer.send([b'{"jsonrpc":"2.0","id":1,"result":{}}'])
        await trio.testing.wait_all_tasks_blocked()
        assert asking.served.peer.ledger.outbound == 1  # the second one
        await asking.peer.send([b'{"jsonrpc":"2.0","id":2,"result":{}}'])
