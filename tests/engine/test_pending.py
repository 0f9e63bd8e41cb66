"""Timeouts of our requests: extended while the peer waits for us, paused while we are busy."""

import pytest
import trio

from noizu_mcp import RequestTimeout
from noizu_mcp.engine._pending import MAX_EXTENSIONS, PendingRequest, PendingRequests


@pytest.fixture
async def requests(nursery):
    """Make pending requests with one of at most 10 s; return them and the times of its end."""
    made, pending, ended = PendingRequests(), PendingRequest("x", 10.0, None), []

    async def wait():
        with pytest.raises(RequestTimeout):
            await pending.wait()
        ended.append(trio.current_time())

    made.add(1, pending, nursery.start_soon)
    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    return made, ended


async def test_a_hold_has_a_maximum(requests, autojump_clock):
    """The peer cannot extend a request for ever."""
    made, ended = requests
    with made.hold_timeouts():
        await trio.sleep(1000)

    assert ended == [10.0 * MAX_EXTENSIONS]


async def test_a_pause_has_none(requests, autojump_clock):
    """A pause has no maximum; after it the timeout begins again."""
    made, ended = requests
    with made.pause_timeouts():
        await trio.sleep(1000)
    await trio.sleep(1000)

    assert ended == [1010.0]


async def test_a_pause_moves_the_maximum(requests, autojump_clock):
    """The maximum moves by the length of a pause, also of overlapping pauses."""
    made, ended = requests
    first, second = made.pause_timeouts(), made.pause_timeouts()
    with first:
        await trio.sleep(500)
        second.__enter__()
    await trio.sleep(500)
    second.__exit__(None, None, None)
    with made.hold_timeouts():
        await trio.sleep(1000)

    assert ended == [1000.0 + 10.0 * MAX_EXTENSIONS]


async def test_a_hold_in_a_pause(requests, autojump_clock):
    """The pause decides; progress does not end it."""
    made, ended = requests
    with made.pause_timeouts():
        with made.hold_timeouts():
            await trio.sleep(500)
        made.report_progress(1, {})
        await trio.sleep(500)
    await trio.sleep(9)
    assert ended == []
    await trio.sleep(2)
    assert ended == [1010.0]


async def test_a_hold_that_outlives_a_pause(requests, autojump_clock):
    """Afterwards only the maximum counts."""
    made, ended = requests
    with made.hold_timeouts():
        with made.pause_timeouts():
            await trio.sleep(500)
        await trio.sleep(1000)

    assert ended == [500.0 + 10.0 * MAX_EXTENSIONS]


async def test_a_request_in_a_pause(nursery, autojump_clock):
    """Its timeout begins at the end of the pause."""
    made, pending = PendingRequests(), PendingRequest("x", 10.0, None)
    with made.pause_timeouts():
        made.add(1, pending, nursery.start_soon)
        await trio.sleep(1000)
    with pytest.raises(RequestTimeout):
        await pending.wait()

    assert trio.current_time() == 1010.0
