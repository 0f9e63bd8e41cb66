"""Laws of the asyncio loop of a trio program: calls end on time, whatever coincides.

A clock that jumps lets timers, callbacks and cancellations of both loops meet at one moment, which
a real clock seldom does.
"""

import asyncio
import math
from contextlib import suppress
from functools import partial

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from noizu_mcp import aio
from noizu_mcp.engine.aio import AsyncioCall

#: Seconds on the jumping clock, more than all calls of an example take.
PATIENCE = 100
SECONDS = st.integers(0, 3)


async def sleep(_, seconds):
    await asyncio.sleep(seconds)


async def time_out(_, seconds):
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


async def be_woken(call, seconds):
    future = asyncio.get_running_loop().create_future()

    async def wake():
        await trio.sleep(seconds)
        if not future.done():
            future.set_result(None)

    await asyncio.gather(call.run_trio(wake), future)


async def sleep_on_trio(call, seconds):
    await call.run_trio(partial(trio.sleep, seconds))


WAYS = (sleep, time_out, be_woken, sleep_on_trio)
LIMITS = st.one_of(st.just(math.inf), SECONDS)
#: When a call begins, how and how long it waits, when it is cancelled, and whether by a task.
CALLS = st.tuples(SECONDS, st.sampled_from(WAYS), SECONDS, LIMITS, st.booleans())


async def take(start, way, seconds, limit, by_task):
    """Make one call; return the time when it ended."""
    await trio.sleep(start)

    async def cancel():
        await trio.sleep(limit)
        scope.cancel()

    call = AsyncioCall()
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(math.inf if by_task else limit) as scope:
            if by_task:
                nursery.start_soon(cancel)
            await call.run(partial(way, call, seconds))
        nursery.cancel_scope.cancel()
        return trio.current_time()


def check(run, calls, left):
    """Make calls in one program, which leaves tasks running."""
    tasks = []

    async def leave():
        tasks.extend(asyncio.create_task(asyncio.sleep(each)) for each in left)

    async def one(start, way, seconds, limit, by_task):
        ended = await take(start, way, seconds, limit, by_task)
        assert ended == begun + start + min(seconds, limit)

    async def main():
        nonlocal begun
        begun = trio.current_time()
        with trio.fail_after(PATIENCE):
            await aio.run(leave)
            async with trio.open_nursery() as nursery:
                for each in calls:
                    nursery.start_soon(one, *each)
            then = trio.current_time()
            await aio.run(asyncio.sleep, 1)
            assert trio.current_time() == then + 1

    begun = 0.0
    run(main, clock=MockClock(autojump_threshold=0))
    assert all(each.done() for each in tasks)


def test_a_call_begins_when_a_timer_ends(run_apart):
    """Both happen in one iteration of the trio loop, in either order."""
    check(run_apart, [(0, sleep, 1, math.inf, False), (1, sleep, 0, math.inf, False)] * 8, [])


@pytest.mark.slow
@given(st.lists(CALLS, min_size=1, max_size=8), st.lists(SECONDS, max_size=3))
def test_calls_end_when_they_should(run_apart, calls, left):
    """They end after their time or when they are cancelled; other tasks end with the program."""
    check(run_apart, calls, left)
