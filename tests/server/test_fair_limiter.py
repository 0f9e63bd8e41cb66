"""The shares of clients in the worker threads of a server."""

import threading
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.server import FairLimiter


async def test_a_client_leaves_threads_to_others():
    """A client with its share leaves a quarter free; a client without a name may use all."""
    threads = FairLimiter(40)
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(threads.acquire, "one")
        await trio.testing.wait_all_tasks_blocked()
        assert threads.borrowed_tokens == 30
        await threads.acquire("other")
        for _ in range(9):
            await threads.acquire(None)
        assert threads.borrowed_tokens == 40
        nursery.cancel_scope.cancel()
    assert threads.borrowed_tokens == 40


async def test_who_waits_gets_what_becomes_free_in_turns():
    """Two clients with many calls get free threads in turns."""
    threads, order = FairLimiter(1), []

    async def work(client):
        await threads.acquire(client)
        order.append(client)

    await threads.acquire("busy")
    async with trio.open_nursery() as nursery:
        for client in ("one", "one", "one", "other"):
            nursery.start_soon(work, client)
            await trio.testing.wait_all_tasks_blocked()
        for holder in ("busy", "one", "other", "one"):
            threads.release(holder)
            await trio.testing.wait_all_tasks_blocked()
    assert order == ["one", "other", "one", "one"]


async def test_a_thread_given_in_the_moment_of_a_cancellation_is_given_back():
    """A token that is granted during a cancellation is released."""
    threads = FairLimiter(1)
    await threads.acquire("one")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(threads.acquire, "other")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        threads.release("one")
    assert threads.borrowed_tokens == 0


async def test_it_limits_the_threads_of_trio():
    """An abandoned thread keeps its token until it ends."""
    threads, release = FairLimiter(2), threading.Event()
    of_one = threads.of("one")
    run = partial(trio.to_thread.run_sync, release.wait, limiter=of_one, abandon_on_cancel=True)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert (of_one.total_tokens, of_one.borrowed_tokens) == (2, 2)
    release.set()
    with trio.fail_after(60):
        await threads.acquire("other")
        await threads.acquire("other")


_CLIENTS = st.sampled_from(["one", "two", "three", None])
_STEPS = st.lists(st.tuples(st.sampled_from(["take", "take", "give", "cancel"]), _CLIENTS))


@pytest.mark.slow
@settings(deadline=None)  # each step waits until all tasks are blocked
@given(st.integers(1, 9), _STEPS)
def test_threads_are_shared(total, steps):
    """A client without a thread only waits if none is free, and no token is lost."""

    async def run():
        threads = FairLimiter(total)
        held, waiting = [], []

        async def hold(client, end):
            waiting.append(me := (client, end))
            try:
                await threads.acquire(client)
            finally:
                waiting.remove(me)
            held.append(me)
            await end.wait()
            held.remove(me)
            threads.release(client)

        async with trio.open_nursery() as nursery:
            for action, client in steps:
                mine = [each for each in held if each[0] == client]
                if action == "take":
                    nursery.start_soon(hold, client, trio.Event())
                elif action == "give" and mine:
                    mine[0][1].set()
                elif action == "cancel" and waiting:
                    async with trio.open_nursery() as other:
                        other.start_soon(threads.acquire, client)
                        await trio.testing.wait_all_tasks_blocked()
                        if len(held) == threads.borrowed_tokens:
                            other.cancel_scope.cancel()
                        else:
                            threads.release(client)
                await trio.testing.wait_all_tasks_blocked()
                assert threads.borrowed_tokens == len(held) <= total
                free = total - len(held)
                having = {each for each, _ in held}
                assert not free or all(each in having and each for each, _ in waiting)
            while held:
                held[0][1].set()
                await trio.testing.wait_all_tasks_blocked()
        assert threads.borrowed_tokens == 0

    trio.run(run)
