"""Calls between trio and asyncio: values, exceptions, cancellation and variables cross."""

import asyncio
import contextvars
import gc
import socket
import sys
import threading

import anyio
import pytest
import sniffio
import trio

from noizu_mcp import aio
from noizu_mcp.engine.aio import (
    AsyncioCall,
    from_asyncio,
    run_asyncio,
)

VARIABLE = contextvars.ContextVar("variable", default="unset")


# asyncio code in trio tasks


def test_values_cross(run):
    """The arguments reach the coroutine function, and its result is returned."""

    async def double(number):
        await asyncio.sleep(0)
        return number * 2

    async def main():
        assert await aio.run(double, 4) == 8
        assert await aio.run(double, 4) == 8

    run(main)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), StopIteration(), EOFError()])
def test_exceptions_cross(run, error):
    """A single exception is raised unchanged, even `StopIteration` and exits."""

    async def fail():
        await asyncio.sleep(0)
        raise error

    async def raising():
        # A coroutine cannot raise StopIteration.
        with pytest.raises(RuntimeError if isinstance(error, StopIteration) else type(error)):
            await aio.run(fail)

    run(raising)


def test_a_cancelled_future_is_a_failure(run):
    """A CancelledError without a cancellation is raised unchanged."""

    async def fail():
        raise asyncio.CancelledError

    async def main():
        with pytest.raises(asyncio.CancelledError):
            await aio.run(fail)

    run(main)


def test_a_timeout_cancels(run):
    """The asyncio code is cancelled once, cleans up, and then the timeout ends."""
    said = []

    async def wait():
        try:
            scope.deadline = trio.current_time()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # asyncio raises it once, so the cleanup can wait
            said.append("cleaned up")
            raise

    async def main():
        with scope:
            await aio.run(wait)
        assert scope.cancelled_caught
        assert said == ["cleaned up"]

    scope = trio.CancelScope()

    run(main)


def test_a_cancellation_may_come_late(run):
    """If the code completes in spite of the cancellation, its value is returned."""
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
    """Both sniffio and anyio detect asyncio inside, and trio outside."""

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
        await anyio.lowlevel.checkpoint()

    run(main)


def test_the_whole_of_asyncio_works(run):
    """Tasks, timeouts, threads, processes, sockets and timers work."""

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
    """If one loop always has work, the other one gets its turns."""
    stop = threading.Event()

    async def spin():
        for _ in iter(stop.is_set, True):
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
    """A call of trio raises trio's own error, and has no other effect."""

    async def confused():
        for function in (trio.sleep_forever, trio.lowlevel.checkpoint):
            with pytest.raises(RuntimeError, match=r"async context|bad yield"):
                await function()
        with pytest.raises(RuntimeError, match="async context"):
            async with trio.open_nursery():
                pass

    async def main():
        await aio.run(confused)
        await trio.lowlevel.checkpoint()

    run(main)


def test_something_scheduled_from_outside_is_run(run):
    """A trio task, or a thread, may set a future or a timer of the loop."""

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
    return sum(type(each) is AsyncioCall for each in gc.get_objects())


def test_a_thousand_calls_leave_nothing(run):
    """Calls that end, fail or are cancelled leave no task and no reference cycle."""

    async def one(number):
        if number % 3 == 0:
            await asyncio.Event().wait()
        if number % 3 == 1:
            raise KeyError
        return number

    async def call(number):
        with trio.move_on_after(0):
            with pytest.raises(KeyError) if number % 3 == 1 else trio.CancelScope():
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
    """It runs within the cancel scopes of the waiting task, and sees asyncio's variables."""

    async def main():
        call = AsyncioCall()
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
    """An asyncio timeout cancels the trio side, and waits for it."""
    ended = []

    async def forever():
        try:
            await trio.sleep_forever()
        finally:
            ended.append("trio")

    async def main():
        call = AsyncioCall()

        async def inside():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await call.run_trio(forever)
            return "went on"

        assert await call.run(inside) == "went on"
        assert ended == ["trio"]

    run(main)


def test_cancelling_the_caller_cancels_both(run):
    """A cancel scope around the call cancels the trio code inside, and the asyncio code."""
    ended = []

    async def main():
        call = AsyncioCall()

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
        call = AsyncioCall()

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


def test_a_task_that_outlives_its_call_gets_an_error(run):
    """A task that outlives its call gets an error when it uses the trio side."""
    told = []

    async def main():
        call, later = AsyncioCall(), AsyncioCall()

        async def leave():
            return asyncio.get_running_loop().create_task(late())

        async def late():
            for _ in range(2):
                with pytest.raises(RuntimeError, match=r"cancelled|has ended") as caught:
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
    """A group of an exception and a cancellation is raised as the exception."""

    async def main():
        call = AsyncioCall()

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


# Misuse


def test_aio_run_needs_a_trio_task():
    """Under asyncio the error says to await the function itself."""

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
