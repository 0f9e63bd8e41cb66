"""Context managers of one loop around blocks of the other one."""

import asyncio
import contextvars
import threading
from contextlib import asynccontextmanager

import pytest
import trio

from noizu_mcp import aio
from noizu_mcp.engine.aio import (
    enter_asyncio,
    enter_trio,
    trio_side,
)

VARIABLE = contextvars.ContextVar("variable", default="unset")


# Context managers


def test_a_manager_of_asyncio_has_one_task(run):
    """It is entered and left in one asyncio task, and its variables are visible in the block."""
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
    """Its exception is raised, without a group."""

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
    """If a task group in it fails, the block is cancelled, and the exception is raised."""

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
    """It may have a nursery, and its value is available in the block."""

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
                await fail()
        except KeyError:
            failed = True
        assert failed is not swallows

    async def fail():
        raise KeyError

    asyncio.run(in_asyncio(main))


@pytest.mark.parametrize("at", ["start", "end"])
def test_a_manager_of_trio_may_fail(at):
    """Its exception is raised where the block is entered or left."""

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
    """The asyncio task of the block is cancelled with a reason; it can go on."""

    async def fail():
        raise KeyError

    async def main(side):
        async def block():
            async with enter_trio(side, nursery_of_trio()) as nursery:
                nursery.start_soon(fail)
                await asyncio.Event().wait()

        with pytest.raises(ExceptionGroup) as caught:
            await block()
        assert caught.group_contains(KeyError)
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(in_asyncio(main))


def test_a_cancelled_block_is_left_in_order():
    """Cancelling the asyncio task ends the manager, and then goes on."""
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
    """Its end is awaited nevertheless, but not after a second cancellation."""
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


def test_a_cancellation_while_the_guest_starts():
    """The trio loop ends again, and the next one can start."""

    async def use():
        async with trio_side():
            raise AssertionError

    async def main():
        task = asyncio.create_task(use())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not trio.lowlevel.in_trio_run()
        async with trio_side():
            pass

    asyncio.run(main())


def test_a_block_of_trio_may_be_dropped():
    """A generator that is not finished closes the manager without waiting."""
    left = threading.Event()

    @asynccontextmanager
    async def manager():
        try:
            yield
        finally:
            left.set()

    async def generator(side):
        async with enter_trio(side, manager()):
            yield

    async def main(side):
        entering = generator(side)
        await anext(entering)
        await entering.aclose()
        await asyncio.to_thread(left.wait, 30)
        assert left.is_set()

    asyncio.run(in_asyncio(main))
