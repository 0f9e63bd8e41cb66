"""The asyncio loop of a trio program, and the trio loop of an asyncio program."""

import asyncio
import signal
import threading
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from noizu_mcp import ConnectionClosed, aio
from noizu_mcp.engine.aio import enter_trio, trio_side


@asynccontextmanager
async def nursery_of_trio():
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()


# The loop of a trio program


def test_its_timers_follow_the_clock_of_trio():
    """A mock clock also moves asyncio's timers."""

    async def hour():
        async with asyncio.timeout(7200):
            await asyncio.sleep(3600)

    async def main():
        begun = trio.current_time()
        await aio.run(hour)
        assert trio.current_time() - begun >= 3600

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_its_end_is_that_of_asyncio_run():
    """Tasks are cancelled, async generators closed, and the loop with its descriptors."""
    said, loops = [], []

    async def numbers():
        try:
            yield 1
        finally:
            said.append("generator")

    kept = numbers()

    async def leave():
        loops.append(asyncio.get_running_loop())
        await anext(kept)
        await asyncio.to_thread(len, "")
        tasks.append(asyncio.create_task(forever()))
        await asyncio.sleep(0)

    async def forever():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            said.append("task")
            raise

    tasks = []

    async def main():
        await aio.run(leave)

    trio.run(main)
    assert said == ["task", "generator"]
    assert loops[0].is_closed()
    assert tasks[0].cancelled()


def test_tasks_that_resist_are_abandoned():
    """The end of the trio loop waits for a bounded time."""
    tasks, resisting = [], threading.Event()

    async def leave():
        tasks.append(asyncio.create_task(resist()))
        await asyncio.sleep(0)

    async def resist():
        resisting.set()
        while resisting.is_set():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async def main():
        await aio.run(leave)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert not tasks[0].done()
    # Python would report a destroyed pending task.
    tasks[0]._log_destroy_pending = False
    tasks[0].get_coro().close() if not resisting.clear() else None


def test_a_task_that_would_end_the_loop_ends_alone(caplog):
    """SystemExit in a task of the author is logged, and the loop goes on."""

    async def leave():
        tasks.append(asyncio.create_task(end()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "went on"

    async def end():
        raise SystemExit(3)

    tasks = []

    async def main():
        assert await aio.run(leave) == "went on"

    trio.run(main)
    assert isinstance(tasks[0].exception(), SystemExit)
    assert "a task or callback of asyncio failed" in caplog.text


def test_a_loop_that_fails_goes_on(caplog, run_apart):
    """An exception of asyncio itself is logged, and no callback is lost."""

    async def confuse():
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        loop.slow_callback_duration = "short"  # compared with a number after each callback
        for _ in range(20):
            await asyncio.sleep(0)
        loop.slow_callback_duration = 1
        await asyncio.sleep(0.001)
        return "went on"

    async def main():
        assert await aio.run(confuse) == "went on"

    run_apart(main)
    assert "not supported between instances of 'float' and 'str'" in caplog.text


def test_a_time_that_is_no_number_is_refused(run_apart):
    """The call that schedules it fails; otherwise asyncio would fail in each iteration."""

    async def schedule():
        loop = asyncio.get_running_loop()
        with pytest.raises(ValueError, match="could not convert"):
            loop.call_at("soon", print)
        with pytest.raises(TypeError):
            loop.call_at(None, print)
        await asyncio.sleep(0.001)

    async def main():
        await aio.run(schedule)

    run_apart(main)


def test_a_thread_that_touches_the_loop_by_mistake(run_apart):
    """`set_result` in a thread is wrong, but takes effect; timers go on."""

    async def wait():
        loop = asyncio.get_running_loop()
        for schedule in (loop.call_soon, partial(loop.call_later, 0)):
            future = loop.create_future()
            thread = threading.Thread(target=schedule, args=(future.set_result, 1))
            thread.start()
            await future
            thread.join()
            await asyncio.sleep(0.001)

    async def main():
        await aio.run(wait)

    run_apart(main)


def test_a_trio_program_inside_of_an_asyncio_callback():
    """`trio.run` within a running asyncio loop, as in a notebook, has its own asyncio loop."""

    async def loop_of():
        return asyncio.get_running_loop()

    async def main():
        return await aio.run(loop_of)

    async def cell():
        outer = asyncio.get_running_loop()
        inner = trio.run(main)
        assert asyncio.get_running_loop() is outer
        assert inner is not outer

    asyncio.run(cell())


def test_ctrl_c_in_asyncio_code_reaches_trio():
    """The signal is delivered by trio, and the asyncio loop stays intact."""

    async def interrupt():
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    async def main():
        await aio.run(interrupt)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)


# The guest of an asyncio program


def test_users_of_one_loop_share_the_guest():
    """The trio loop ends with its last user, and another one can be started."""

    async def main():
        async with trio_side() as first:
            async with trio_side() as second:
                assert first is second
            await first.run_trio(trio.lowlevel.checkpoint)
        async with trio_side() as third:
            assert third is not first
            with pytest.raises(ConnectionClosed, match="has ended"):
                await first.run_trio(trio.lowlevel.checkpoint)

    asyncio.run(main())


def test_a_user_that_comes_while_the_guest_ends():
    """It waits for the end, and starts a new one; two such users share it."""
    ending, release = threading.Event(), threading.Event()

    async def slow_end():
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                ending.set()
                await trio.to_thread.run_sync(release.wait, 30)

    async def use():
        async with trio_side() as side:
            await side.run_trio(trio.lowlevel.checkpoint)
            return side

    async def first():
        async with trio_side() as side:
            asyncio.get_running_loop().create_task(left(side))
            await side.run_trio(trio.lowlevel.checkpoint)
            await asyncio.sleep(0)

    async def left(side):
        with pytest.raises(RuntimeError, match="was cancelled"):
            await side.run_trio(slow_end)

    async def main():
        async with asyncio.timeout(60):
            one = asyncio.create_task(first())
            await asyncio.to_thread(ending.wait, 30)
            others = [asyncio.create_task(use()) for _ in range(2)]
            await asyncio.sleep(0)
            release.set()
            await one
            assert len(await asyncio.gather(*others)) == 2

    asyncio.run(main())


def test_a_guest_in_the_loop_of_a_trio_program():
    """In a trio program asyncio code uses the trio loop that is already there."""

    async def inside():
        async with trio_side() as side:
            return await side.run_trio(token)

    async def token():
        return trio.lowlevel.current_trio_token()

    async def main():
        assert await aio.run(inside) is trio.lowlevel.current_trio_token()

    trio.run(main)


def test_a_trio_loop_that_the_program_has_beside_asyncio():
    """It is used, and goes on: a thread has one trio loop at most."""
    tokens = []

    async def token():
        return trio.lowlevel.current_trio_token()

    async def program(started):
        stop = trio.Event()
        tokens.append(await token())
        started.set_result(stop)
        await stop.wait()

    async def main():
        loop = asyncio.get_running_loop()
        started, ended = loop.create_future(), loop.create_future()
        trio.lowlevel.start_guest_run(
            program,
            started,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=ended.set_result,
            host_uses_signal_set_wakeup_fd=True,
        )
        stop = await started
        for _ in range(2):
            async with trio_side() as side:
                assert await side.run_trio(token) is tokens[0]
        stop.set()
        (await ended).unwrap()

    asyncio.run(main())


def test_a_guest_that_ends_slowly():
    """The loop of a trio program goes on until trio code of its tasks has ended."""
    said = []

    async def slow_end():
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(500)
            said.append("trio")

    async def inside():
        try:
            async with trio_side() as side:
                await side.run_trio(slow_end)
        finally:
            await asyncio.sleep(0)
            said.append("asyncio")

    async def leave():
        tasks.append(asyncio.create_task(inside()))

    async def main():
        nonlocal begun
        begun = trio.Event()
        await aio.run(leave)
        await begun.wait()

    begun, tasks = None, []
    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert said == ["trio", "asyncio"]
    assert tasks[0].cancelled()


def test_asyncio_run_in_a_trio_task_is_refused():
    """It would block the trio loop that it needs."""

    async def inside():
        async with trio_side():
            raise AssertionError

    async def main():
        with pytest.raises(RuntimeError, match=r"await noizu_mcp\.aio\.run\(function\)"):
            asyncio.run(inside())

    trio.run(main)


def test_ctrl_c_in_trio_code_of_an_asyncio_program():
    """The program ends with KeyboardInterrupt, and trio with it."""

    async def interrupt():
        signal.raise_signal(signal.SIGINT)
        await trio.sleep_forever()

    async def main():
        async with trio_side() as side:
            await side.run_trio(interrupt)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert not trio.lowlevel.in_trio_run()


def test_ctrl_c_without_another_handler():
    """The signal is handled by trio, as in a notebook: the block ends, and raises it."""

    async def main():
        async with trio_side() as side, enter_trio(side, nursery_of_trio()):
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(main())
    finally:
        loop.close()
