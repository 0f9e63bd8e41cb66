"""Calls between trio and asyncio: in a thread of trio's, and with trio as a guest of asyncio."""

import asyncio
import contextvars
import gc
import signal
import socket
import sys
import threading
from contextlib import asynccontextmanager

import anyio
import pytest
import sniffio
import trio
import uvloop
from trio.testing import MockClock

from noizu_mcp import aio
from noizu_mcp.engine.aio import (
    Call,
    enter_asyncio,
    enter_trio,
    from_asyncio,
    run_asyncio,
    trio_side,
)
from noizu_mcp.engine.aio import _own_loop as own_loop

VARIABLE = contextvars.ContextVar("variable", default="unset")


def on_trio(main):
    trio.run(main)


def on_guest(main, run=asyncio.run):
    async def host():
        async with trio_side() as side:
            await side.run_trio(main)

    run(host())


def on_uvloop(main):
    on_guest(main, uvloop.run)


@pytest.fixture(params=[on_trio, on_guest, on_uvloop])
def run(request):
    """Run a coroutine function of trio, where trio owns the thread and where it is a guest."""
    return request.param


# asyncio code in trio tasks


def test_values_cross(run):
    """The arguments reach the coroutine function, and its value comes back."""

    async def double(number):
        await asyncio.sleep(0)
        return number * 2

    async def main():
        assert await aio.run(double, 4) == 8
        assert await aio.run(double, 4) == 8

    run(main)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), StopIteration(), EOFError()])
def test_exceptions_cross(run, error):
    """One failure is that exception, also one that would end an asyncio loop."""

    async def fail():
        await asyncio.sleep(0)
        raise error

    async def raising():
        # A coroutine cannot let a StopIteration pass.
        with pytest.raises(RuntimeError if isinstance(error, StopIteration) else type(error)):
            await aio.run(fail)

    run(raising)


def test_a_cancelled_future_is_a_failure(run):
    """A CancelledError that nobody asked for is raised as it is."""

    async def fail():
        raise asyncio.CancelledError

    async def main():
        with pytest.raises(asyncio.CancelledError):
            await aio.run(fail)

    run(main)


def test_a_timeout_cancels(run):
    """The asyncio code is cancelled once, cleans up, and then the timeout is over."""
    said = []

    async def wait():
        try:
            scope.deadline = trio.current_time()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # asyncio raises it once: the cleanup can wait
            said.append("cleaned up")
            raise

    async def main():
        with scope:
            await aio.run(wait)
        assert scope.cancelled_caught
        assert ["cleaned up"] == said

    scope = trio.CancelScope()

    run(main)


def test_a_cancellation_may_come_late(run):
    """Code that ends all the same has ended; its value counts."""
    waiting = trio.Event()

    async def resist():
        try:
            waiting.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"

    async def main():
        async with trio.open_nursery() as nursery:

            async def call():
                with trio.CancelScope() as scope:
                    nursery.start_soon(cancel, scope)
                    assert await aio.run(resist) == "done"
                assert not scope.cancelled_caught

            async def cancel(scope):
                await waiting.wait()
                scope.cancel()

            nursery.start_soon(call)

    run(main)


def test_context_variables_cross(run):
    """The code sees the variables of its caller, and sets them, as after an `await`."""

    async def change():
        assert VARIABLE.get() == "trio's"
        await asyncio.sleep(0)
        VARIABLE.set("asyncio's")

    async def main():
        VARIABLE.set("trio's")
        await aio.run(change)
        assert VARIABLE.get() == "asyncio's"

    run(main)


def test_libraries_find_the_right_loop(run):
    """sniffio and anyio see asyncio inside, and trio outside."""

    async def inside():
        assert sniffio.current_async_library() == "asyncio"
        async with anyio.create_task_group() as group, await anyio.open_file(__file__) as file:
            group.start_soon(anyio.sleep, 0)
            assert (await file.readline()).startswith('"""')
        with anyio.move_on_after(0) as scope:
            await anyio.sleep_forever()
        assert scope.cancelled_caught
        return await anyio.to_thread.run_sync(anyio.from_thread.run, anyio.lowlevel.checkpoint)

    async def main():
        await aio.run(inside)
        assert sniffio.current_async_library() == "trio"
        await anyio.sleep(0)

    run(main)


def test_the_whole_of_asyncio_works(run):
    """Tasks, timeouts, threads, processes, sockets and timers."""

    async def everything():
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0.001))
            assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "print('hi')", stdout=asyncio.subprocess.PIPE
            )
            assert (await process.communicate())[0].strip() == b"hi"
            ours, theirs = socket.socketpair()
            reader, writer = await asyncio.open_connection(sock=ours)
            with theirs:
                writer.write(b"ping\n")
                theirs.setblocking(False)
                assert await asyncio.get_running_loop().sock_recv(theirs, 9) == b"ping\n"
                theirs.send(b"pong\n")
                assert await reader.readline() == b"pong\n"
            writer.close()
            await writer.wait_closed()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        return threading.get_ident()

    async def main():
        assert await aio.run(everything) == threading.get_ident()

    run(main)


def test_neither_loop_starves_the_other(run):
    """Code that is always ready to run on one loop leaves turns to the other."""
    stop = threading.Event()

    async def spin():
        while not stop.is_set():
            await asyncio.sleep(0)

    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(aio.run, spin)
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            stop.set()
        stop.clear()
        async with trio.open_nursery() as nursery:

            async def spin_here():
                while not stop.is_set():
                    await trio.lowlevel.checkpoint()

            async def turns():
                for _ in range(100):
                    await asyncio.sleep(0)
                stop.set()

            nursery.start_soon(spin_here)
            await aio.run(turns)

    run(main)


def test_trio_code_in_asyncio_code_fails_at_once(run):
    """A call of trio fails with an error of trio's, and leaves nothing behind."""

    async def confused():
        for function in (trio.sleep_forever, trio.lowlevel.checkpoint):
            with pytest.raises(RuntimeError, match="async context|bad yield"):
                await function()
        with pytest.raises(RuntimeError, match="async context"):
            async with trio.open_nursery():
                pass

    async def main():
        await aio.run(confused)
        await trio.lowlevel.checkpoint()

    run(main)


def test_something_scheduled_from_outside_is_run(run):
    """A trio task, or a thread, may touch a future or a timer of the loop."""

    async def wait(loops, ready):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        loops.append((loop, future))
        ready.set()
        return await future

    async def main():
        loops, ready = [], trio.Event()
        async with trio.open_nursery() as nursery:
            results = []

            async def call():
                results.append(await aio.run(wait, loops, ready))

            for give in (
                lambda loop, future: future.set_result(1),
                lambda loop, future: loop.call_later(0.001, future.set_result, 1),
            ):
                ready = trio.Event()
                nursery.start_soon(call)
                await ready.wait()
                await trio.testing.wait_all_tasks_blocked()
                give(*loops.pop())
            ready = trio.Event()
            nursery.start_soon(call)
            await ready.wait()
            loop, future = loops.pop()
            await trio.to_thread.run_sync(loop.call_soon_threadsafe, future.set_result, 1)
        assert results == [1, 1, 1]

    run(main)


def calls():
    return sum(type(each) is Call for each in gc.get_objects())


def test_a_thousand_calls_leave_nothing(run):
    """Calls that end, fail or are cancelled leave no task and no garbage cycle of calls."""

    async def one(number):
        if number % 3 == 0:
            await asyncio.Event().wait()
        if number % 3 == 1:
            raise ValueError
        return number

    async def call(number):
        with trio.move_on_after(0):
            with pytest.raises(ValueError) if number % 3 == 1 else trio.CancelScope():
                await aio.run(one, number)

    async def main():
        present = await aio.run(pending_tasks)
        before = trio.lowlevel.current_statistics().tasks_living
        async with trio.open_nursery() as nursery:
            for number in range(1000):
                nursery.start_soon(call, number)
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert await aio.run(pending_tasks) == present

    async def pending_tasks():
        return len(asyncio.all_tasks())

    gc.collect()
    before = calls()
    run(main)
    gc.collect()
    assert calls() == before


# trio code in asyncio code


def test_trio_code_is_part_of_its_caller(run):
    """It runs within the scopes of the waiting task, and sees variables of the asyncio code."""

    async def main():
        call = Call()
        seen = []

        async def inside():
            VARIABLE.set("asyncio's")
            first = await call.run_trio(look)
            async with asyncio.TaskGroup() as group:
                both = [group.create_task(call.run_trio(look)) for _ in range(2)]
            with pytest.raises(KeyError):
                await call.run_trio(fail)
            return [first, *(each.result() for each in both)]

        async def look():
            seen.append(VARIABLE.get())
            await trio.lowlevel.checkpoint()
            return trio.current_effective_deadline()

        async def fail():
            raise KeyError

        with trio.CancelScope(deadline=trio.current_time() + 1000) as scope:
            assert await call.run(inside) == [scope.deadline] * 3
        assert seen == ["asyncio's"] * 3

    run(main)


def test_cancelling_asyncio_code_cancels_its_trio_code(run):
    """An asyncio timeout reaches the trio side, and is waited for."""
    ended = []

    async def forever():
        try:
            await trio.sleep_forever()
        finally:
            ended.append("trio")

    async def main():
        call = Call()

        async def inside():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await call.run_trio(forever)
            return "went on"

        assert await call.run(inside) == "went on"
        assert ended == ["trio"]

    run(main)


def test_cancelling_the_caller_cancels_both(run):
    """A scope around the call ends the trio code inside, and the asyncio code."""
    ended = []

    async def main():
        call = Call()

        async def forever():
            scope.cancel()
            try:
                await trio.sleep_forever()
            finally:
                ended.append("trio")

        async def inside():
            try:
                await call.run_trio(forever)
            except asyncio.CancelledError:
                ended.append("asyncio")
                with pytest.raises(RuntimeError, match="was cancelled"):
                    await call.run_trio(trio.sleep_forever)
                raise

        with trio.CancelScope() as scope:
            await call.run(inside)
        assert scope.cancelled_caught
        assert ended == ["trio", "asyncio"]

    run(main)


def test_cleanup_cannot_call_trio_code(run):
    """Once the caller is cancelled, trio code that the cleanup begins is cancelled, too."""
    told = []

    async def main():
        call = Call()

        async def inside():
            scope.cancel()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                with pytest.raises(RuntimeError, match="was cancelled"):
                    await call.run_trio(trio.lowlevel.checkpoint)
                told.append("cancelled")
                raise

        with trio.CancelScope() as scope:
            await call.run(inside)
        assert scope.cancelled_caught
        assert told == ["cancelled"]

    run(main)


def test_a_task_that_outlives_its_call_is_told(run):
    """What a call has left behind cannot use the trio side any more."""
    told = []

    async def main():
        call, later = Call(), Call()

        async def leave():
            return asyncio.get_running_loop().create_task(late())

        async def late():
            for _ in range(2):
                with pytest.raises(RuntimeError, match="cancelled|has ended") as caught:
                    await call.run_trio(trio.sleep_forever)
                told.append(str(caught.value))

        async def wait(task):
            await task

        async def crossing():
            await call.run_trio(trio.lowlevel.checkpoint)
            return await leave()

        task = await call.run(crossing)
        await later.run(lambda: wait(task))
        assert "the handler has ended" in told[-1]

    run(main)


def test_one_failure_of_trio_code_beside_a_cancellation(run):
    """A group of a failure and a cancellation is raised as the failure."""

    async def main():
        call = Call()

        async def both():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail)
                scope.cancel()

        async def fail():
            raise KeyError

        async def inside():
            with pytest.raises((ExceptionGroup, asyncio.CancelledError)):
                await call.run_trio(both)

        with trio.CancelScope() as scope:
            await call.run(inside)

    run(main)


# Context managers


def test_a_manager_of_asyncio_has_one_task(run):
    """It is entered and left in one asyncio task, and its variables are seen in the block."""
    tasks = []

    @asynccontextmanager
    async def manager():
        tasks.append(asyncio.current_task())
        async with asyncio.timeout(1000):
            VARIABLE.set("the manager's")
            yield 5
        tasks.append(asyncio.current_task())

    async def main():
        async with enter_asyncio(manager()) as value:
            assert value == 5
            assert VARIABLE.get() == "the manager's"
        assert tasks[0] is tasks[1]

    run(main)


@pytest.mark.parametrize("swallows", [True, False])
def test_a_manager_of_asyncio_sees_the_failure_of_its_block(run, swallows):
    """It may handle the exception, or let it pass."""
    seen = []

    @asynccontextmanager
    async def manager():
        try:
            yield
        except KeyError as error:
            seen.append(error)
            if not swallows:
                raise

    async def main():
        error = KeyError()
        with pytest.raises(KeyError) if not swallows else trio.CancelScope():
            async with enter_asyncio(manager()):
                raise error
        assert seen == [error]

    run(main)


@pytest.mark.parametrize("at", ["start", "end"])
def test_a_manager_of_asyncio_may_fail(run, at):
    """Its failure is raised, without a group."""

    @asynccontextmanager
    async def manager():
        if at == "start":
            raise KeyError
        yield
        raise KeyError

    async def main():
        with pytest.raises(KeyError):
            async with enter_asyncio(manager()):
                assert at == "end"

    run(main)


def test_a_manager_of_asyncio_that_fails_early_ends_its_block(run):
    """A task group in it fails: the block is cancelled, and the failure is raised."""

    @asynccontextmanager
    async def manager():
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            yield

    async def fail():
        raise KeyError

    async def main():
        with pytest.raises(KeyError):
            async with enter_asyncio(manager()):
                await trio.sleep_forever()

    run(main)


def test_a_manager_of_asyncio_outlives_a_cancelled_block(run):
    """The block ends first, and then the manager, which may wait."""
    said = []

    @asynccontextmanager
    async def manager():
        try:
            yield
        finally:
            await asyncio.sleep(0)
            said.append("manager")

    async def main():
        with trio.CancelScope() as scope:
            async with enter_asyncio(manager()):
                scope.cancel()
                try:
                    await trio.sleep_forever()
                finally:
                    with trio.CancelScope(shield=True):
                        await aio.run(asyncio.sleep, 0)
                        said.append("block")
        assert said == ["block", "manager"]

    run(main)


def test_entering_a_manager_of_asyncio_can_be_cancelled(run):
    """A timeout before the block ends the manager."""

    @asynccontextmanager
    async def manager():
        await asyncio.Event().wait()
        yield

    async def main():
        with trio.move_on_after(0) as scope:
            async with enter_asyncio(manager()):
                raise AssertionError
        assert scope.cancelled_caught

    run(main)


async def in_asyncio(main):
    async with asyncio.timeout(60), trio_side() as side:
        await main(side)


@asynccontextmanager
async def nursery_of_trio():
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()


def test_a_manager_of_trio_has_one_task():
    """It may have a nursery, and its value reaches the block."""

    async def main(side):
        async with enter_trio(side, nursery_of_trio()) as nursery:
            nursery.start_soon(trio.sleep_forever)
            await side.run_trio(trio.lowlevel.checkpoint)

    asyncio.run(in_asyncio(main))


@pytest.mark.parametrize("swallows", [True, False])
def test_a_manager_of_trio_sees_the_failure_of_its_block(swallows):
    """It may handle the exception, or let it pass."""

    @asynccontextmanager
    async def manager():
        try:
            yield
        except KeyError:
            if not swallows:
                raise

    async def main(side):
        failed = False
        try:
            async with enter_trio(side, manager()):
                raise KeyError
        except KeyError:
            failed = True
        assert failed is not swallows

    asyncio.run(in_asyncio(main))


@pytest.mark.parametrize("at", ["start", "end"])
def test_a_manager_of_trio_may_fail(at):
    """Its failure is raised where the block is entered or left."""

    @asynccontextmanager
    async def manager():
        if at == "start":
            raise KeyError
        yield
        raise KeyError

    async def main(side):
        with pytest.raises(KeyError):
            async with enter_trio(side, manager()):
                assert at == "end"

    asyncio.run(in_asyncio(main))


def test_a_manager_of_trio_that_fails_early_ends_its_block():
    """The asyncio task of the block is cancelled, and told why; it can go on."""

    async def fail():
        raise KeyError

    async def main(side):
        with pytest.raises(ExceptionGroup) as caught:
            async with enter_trio(side, nursery_of_trio()) as nursery:
                nursery.start_soon(fail)
                await asyncio.Event().wait()
        assert caught.group_contains(KeyError)
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(in_asyncio(main))


def test_a_cancelled_block_is_left_in_order():
    """A cancellation of the asyncio task ends the manager, and goes on."""
    said = []

    @asynccontextmanager
    async def manager():
        try:
            yield
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
                said.append("left")

    async def block(side, entered):
        async with enter_trio(side, manager()):
            entered.set()
            await asyncio.Event().wait()

    async def main(side):
        entered = asyncio.Event()
        task = asyncio.create_task(block(side, entered))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert said == ["left"]

    asyncio.run(in_asyncio(main))


def test_entering_a_manager_of_trio_can_be_cancelled():
    """A timeout before the block ends the manager."""

    @asynccontextmanager
    async def manager():
        await trio.sleep_forever()
        yield

    async def main(side):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0), enter_trio(side, manager()):
                raise AssertionError

    asyncio.run(in_asyncio(main))


def test_leaving_a_manager_of_trio_can_be_cancelled():
    """The end is waited for all the same; a second cancellation is not."""
    leaving, release = threading.Event(), threading.Event()

    @asynccontextmanager
    async def manager():
        yield
        leaving.set()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(release.wait, 30)

    async def block(side):
        async with enter_trio(side, manager()):
            pass

    async def main(side):
        for times in (1, 2):
            leaving.clear()
            release.clear()
            task = asyncio.create_task(block(side))
            await asyncio.to_thread(leaving.wait, 30)
            for _ in range(times):
                task.cancel()
                await asyncio.sleep(0)
            assert task.done() == (times == 2)
            release.set()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(in_asyncio(main))


def test_a_block_of_trio_may_be_dropped():
    """A generator that nobody finishes closes the manager without waiting."""
    left = threading.Event()

    @asynccontextmanager
    async def manager():
        try:
            yield
        finally:
            left.set()

    async def main(side):
        entering = enter_trio(side, manager())
        await entering.__aenter__()
        await entering.gen.aclose()
        await asyncio.to_thread(left.wait, 30)
        assert left.is_set()

    asyncio.run(in_asyncio(main))


# The loop of a trio program


def test_its_timers_follow_the_clock_of_trio():
    """A test clock that jumps moves asyncio's timers, too."""

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


def test_tasks_that_resist_are_abandoned(monkeypatch):
    """The end of the trio loop is bounded."""
    monkeypatch.setattr(own_loop, "PATIENCE", 0.01)
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

    trio.run(main)
    assert not tasks[0].done()
    # Python would complain that a pending task is dropped.
    tasks[0]._log_destroy_pending = False
    tasks[0].get_coro().close() if not resisting.clear() else None


def test_a_task_that_would_end_the_loop_ends_alone(caplog):
    """SystemExit in a task of the author's is logged; the loop goes on."""

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
    assert "a task of asyncio failed" in caplog.text


def test_a_trio_program_inside_of_an_asyncio_callback():
    """`trio.run` in a running asyncio loop, as in a notebook, has an asyncio loop of its own."""

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
    """The signal is delivered by trio, and does not tear the asyncio loop."""

    async def interrupt():
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    async def main():
        await aio.run(interrupt)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)


# The guest of an asyncio program


def test_users_of_one_loop_share_the_guest():
    """The trio loop ends with its last user, and another one can begin."""

    async def main():
        async with trio_side() as first:
            async with trio_side() as second:
                assert first is second
            await first.run_trio(trio.lowlevel.checkpoint)
        async with trio_side() as third:
            assert third is not first
            with pytest.raises(RuntimeError, match="has ended"):
                await first.run_trio(trio.lowlevel.checkpoint)

    asyncio.run(main())


def test_a_user_that_comes_while_the_guest_ends():
    """It waits for the end, and begins anew; two of them begin one."""
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
    """asyncio code of a trio program has trio beside it already; it uses that loop."""

    async def inside():
        async with trio_side() as side:
            return await side.run_trio(token)

    async def token():
        return trio.lowlevel.current_trio_token()

    async def main():
        assert await aio.run(inside) is trio.lowlevel.current_trio_token()

    trio.run(main)


def test_asyncio_run_in_a_trio_task_is_refused():
    """It would stop the trio loop that it needs."""

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


def test_ctrl_c_where_nobody_else_handles_it():
    """trio takes the signal, as in a notebook: the block ends, and raises it."""

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


# Misuse


def test_aio_run_needs_a_trio_task():
    """Under asyncio the function itself is awaited."""

    async def main():
        with pytest.raises(RuntimeError, match="await the function itself"):
            await aio.run(asyncio.sleep, 0)

    asyncio.run(main())


def test_from_asyncio_keeps_the_arguments(run):
    """A coroutine function of asyncio becomes one of trio."""

    async def add(first, second):
        await asyncio.sleep(0)
        return first + second

    async def main():
        assert await from_asyncio(add)(1, 2) == 3
        assert await run_asyncio(lambda: add(1, 2)) == 3

    run(main)
