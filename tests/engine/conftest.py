"""A message loop without a server, and the loops for calls between trio and asyncio."""

import asyncio
import threading
from concurrent.futures import Future

import pytest
import trio
import uvloop

from noizu_mcp import Limits
from noizu_mcp.engine.aio import trio_side
from noizu_mcp.transports import memory_pair

from .served import Served


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


@pytest.fixture(scope="session")
def run_apart():
    """Run a trio program in a thread, since no cancellation ends a call on a blocked loop."""

    def run(main, **options):
        ended = Future()

        def program():
            try:
                ended.set_result(trio.run(main, **options))
            except BaseException as error:
                ended.set_exception(error)

        threading.Thread(target=program, daemon=True).start()
        try:
            return ended.result(60)
        except TimeoutError:
            if ended.done():
                raise
            pytest.fail("the asyncio loop stands still")

    return run


@pytest.fixture
async def wired(nursery):
    """Return a function that starts a message loop, with the other end of its stream."""

    async def start(handle=None, **limits):
        ours, theirs = memory_pair()
        served = Served(theirs, handle, Limits(**limits))
        await nursery.start(served.loop.run)
        return served, ours

    return start
